"""The book as one PDF: two made pages, printed by the real browser and read by pypdf."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from pypdf import PdfReader

from book._tools import build, pdf

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><head><title>{title}</title>
<link rel="stylesheet" href="../_static/print.css"></head><body>
<div class="bd-sidebar">SIDEBAR <!-- pdf-link ../ttutor.pdf --></div>
<article class="bd-article"><section id="top"><h1>{title}<a class="headerlink" href="#top">#</a></h1>
<p>The text of {title}. See <a href="{other}.html#deep">the other page</a>, <a href="api.html#x">the reference</a>
and <a href="https://example.org/">elsewhere</a>.</p>{more}</section></article></body></html>"""
EXERCISE = """<div class="exercise admonition"><p class="admonition-title">Exercise 1 (Add up)</p><p>Add.</p></div>
<details class="sd-dropdown"><summary>Hint 1: begin</summary><p>THE HINT</p></details>
<div class="solution dropdown admonition"><p>THE SOLUTION</p></div>
<details><summary>An aside</summary><p>THE ASIDE</p></details>"""
LONG = f"""<div style="height: 245mm; box-shadow: 2px 2px 9px #888; filter: blur(2px)">HIGH</div>
<h2 id="deep">Deep</h2><p>Far down.</p><div class="highlight-python"><pre>{"x" * 900}</pre></div>"""


def make_book(folder: Path) -> None:
    """Two built pages with the real style sheet for paper."""
    (folder / "book").mkdir(parents=True)
    (folder / "_static").mkdir()
    shutil.copy(build.ROOT / "book" / "_static" / "print.css", folder / "_static")
    for page, title, other, more in (("one", "First", "two", LONG), ("two", "Second", "one", EXERCISE)):
        text = PAGE.format(title=title, other=other, more=more)
        (folder / "book" / f"{page}.html").write_text(text, encoding="utf-8")


def print_to(folder: Path, *arguments: str) -> int:
    """Print the two pages of a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "HTML", folder)
        return pdf.main([*arguments, "book/one", "book/two"])


@pytest.fixture(scope="module")
def printed(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PdfReader]:
    """A book of two pages, printed."""
    folder = tmp_path_factory.mktemp("html")
    make_book(folder)
    assert print_to(folder) == 0
    return folder, PdfReader(folder / "ttutor.pdf")


def words(reader: PdfReader) -> list[str]:
    """The text of every sheet, in one line each."""
    return [" ".join(sheet.extract_text().split()) for sheet in reader.pages]


def test_pages_come_in_order_behind_title_and_contents(printed: tuple[Path, PdfReader]) -> None:
    title, contents, first, _, second, answers = words(printed[1])
    assert "The Transformer, built and tested" in title
    for listed in ("First", "Second", "Hints and solutions"):
        assert listed in contents
    assert "The text of First." in first
    assert "The text of Second." in second
    assert "Exercise 1 (Add up)" in answers


def test_hints_and_solutions_stand_at_the_end_alone(printed: tuple[Path, PdfReader]) -> None:
    *_, second, answers = words(printed[1])
    assert "THE ASIDE" in second
    assert "THE HINT" not in second
    assert "THE SOLUTION" not in second
    assert answers.index("Exercise 1") < answers.index("THE HINT") < answers.index("THE SOLUTION")
    assert "THE ASIDE" not in answers


def test_every_sheet_has_its_number_and_its_heading_and_no_sidebar(printed: tuple[Path, PdfReader]) -> None:
    heads = ["", "Contents", "First", "First", "Second", "Hints and solutions"]
    for number, (text, head) in enumerate(zip(words(printed[1]), heads, strict=True), start=1):
        assert number == 1 or str(number) in text.split()  # the title bears none
        assert "SIDEBAR" not in text
        assert head in text


def nested(reader: PdfReader, entries: list) -> list:
    """The outline as titles with the sheets that they lead to."""
    return [
        nested(reader, entry)
        if isinstance(entry, list)
        else (entry.title, reader.get_destination_page_number(entry) + 1)
        for entry in entries
    ]


def test_the_outline_follows_the_headings(printed: tuple[Path, PdfReader]) -> None:
    assert nested(printed[1], printed[1].outline) == [
        ("Contents", 2),
        ("First", 3),
        [("Deep", 4)],
        ("Second", 5),
        ("Hints and solutions", 6),
        [("Second", 6), [("Exercise 1 (Add up)", 6)]],
    ]


def targets(reader: PdfReader, sheet: int) -> list[object]:
    """Where the links of a sheet lead: to the number of a sheet, or to an address."""
    places = {name: reader.get_destination_page_number(place) + 1 for name, place in reader.named_destinations.items()}
    links = [annotation.get_object() for annotation in reader.pages[sheet - 1].get("/Annots", ())]
    return [str(link["/A"]["/URI"]) if "/A" in link else places[link["/Dest"]] for link in links]


def test_links_lead_to_their_places_or_elsewhere_or_nowhere(printed: tuple[Path, PdfReader]) -> None:
    """Each page links to the other; only the first has the place that is meant."""
    assert targets(printed[1], 2) == [3, 5, 6]
    assert targets(printed[1], 3) == ["https://example.org/"]
    assert targets(printed[1], 5) == [4, "https://example.org/"]


def test_it_has_title_language_and_structure(printed: tuple[Path, PdfReader]) -> None:
    reader = printed[1]
    assert reader.metadata.title == "ttutor: the Transformer, built and tested"
    catalog = reader.trailer["/Root"]
    assert catalog["/Lang"] == "en"
    assert catalog["/MarkInfo"]["/Marked"]
    assert catalog["/StructTreeRoot"]["/K"]


def test_the_sidebar_leads_to_it(printed: tuple[Path, PdfReader]) -> None:
    text = (printed[0] / "book" / "one.html").read_text(encoding="utf-8")
    assert '<a href="../ttutor.pdf">The whole book as a PDF</a>' in text


def test_it_can_be_printed_on_american_paper(tmp_path: Path, browser: Browser) -> None:
    make_book(tmp_path)
    assert print_to(tmp_path, "--paper", "letter") == 0
    sheet = PdfReader(tmp_path / "ttutor.pdf").pages[0].mediabox
    assert (round(sheet.width), round(sheet.height)) == (612, 792)


def test_what_is_missing_stops_the_print(tmp_path: Path, browser: Browser) -> None:
    make_book(tmp_path)
    with pytest.raises(RuntimeError, match=r"missing: .*nowhere\.png"):
        pdf.print_to(tmp_path / "ttutor.pdf", "<img src='nowhere.png'>")
    assert not (tmp_path / "ttutor.pdf").exists()
