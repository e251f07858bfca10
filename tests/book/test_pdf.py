"""The book as one PDF: made small pages, printed by the real browser and joined."""

from __future__ import annotations

from pathlib import Path

import pytest
from pypdf import PdfReader

from book._tools import pdf
from book._tools.build import read_toc
from tests.book.browser import find_browser
from tests.require import missing

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><head><title>{title}</title></head><body>
<div class="bd-sidebar">SIDEBAR <!-- pdf-link {up}ttutor.pdf --></div>
<article class="bd-article"><section><h1>{title}</h1><p>The text of {title}.
See <a href="{other}.html">the other page</a>.</p>{more}</section></article></body></html>"""
EXERCISE = """<div class="exercise admonition"><p class="admonition-title">Exercise 1 (Add up)</p><p>Add.</p></div>
<details class="sd-dropdown"><summary>Hint 1: begin</summary><p>THE HINT</p></details>
<div class="solution dropdown toggle-hidden admonition"><p>THE SOLUTION</p></div>
<details><summary>An aside</summary><p>THE ASIDE</p></details>"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PdfReader]:
    """A book of two pages, printed."""
    if find_browser() is None:
        missing("browser", "no Chromium on this machine: install one or set TTUTOR_CHROMIUM")
    folder = tmp_path_factory.mktemp("html")
    (folder / "book").mkdir()
    first = PAGE.format(title="First", other="two", up="../", more="")
    second = PAGE.format(title="Second", other="one", up="../", more=EXERCISE)
    (folder / "book" / "one.html").write_text(first, encoding="utf-8")
    (folder / "book" / "two.html").write_text(second, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "HTML", folder)
        assert pdf.main(["book/one", "book/two"]) == 0
    return folder, PdfReader(folder / "ttutor.pdf")


def words(reader: PdfReader) -> list[str]:
    """The text of every sheet, in one line each."""
    return [" ".join(sheet.extract_text().split()) for sheet in reader.pages]


def test_pages_come_in_order_behind_title_and_contents(printed: tuple[Path, PdfReader]) -> None:
    title, contents, first, second, answers = words(printed[1])
    assert "The Transformer, built and tested" in title
    assert "First 3 Second 4 Hints and solutions Second 5" in contents
    assert first.startswith("First The text of First.")
    assert second.startswith("Second The text of Second.")
    assert answers.startswith("Second Exercise 1 (Add up)")


def test_hints_and_solutions_stand_at_the_end_alone(printed: tuple[Path, PdfReader]) -> None:
    *_, second, answers = words(printed[1])
    assert "THE ASIDE" in second
    assert "THE HINT" not in second
    assert "THE SOLUTION" not in second
    assert answers.index("THE HINT") < answers.index("THE SOLUTION")
    assert "THE ASIDE" not in answers


def test_every_sheet_has_its_number_and_no_sidebar(printed: tuple[Path, PdfReader]) -> None:
    for number, text in enumerate(words(printed[1]), start=1):
        assert text.endswith(str(number))
        assert "SIDEBAR" not in text


def test_the_outline_and_the_links_lead_to_the_sheets(printed: tuple[Path, PdfReader]) -> None:
    reader = printed[1]
    entries = [entry for entry in reader.outline if not isinstance(entry, list)]
    where = {entry.title: reader.get_destination_page_number(entry) for entry in entries}
    assert where == {"Contents": 1, "First": 2, "Second": 3, "Hints and solutions": 4}
    links = [annotation.get_object() for annotation in reader.pages[2]["/Annots"]]
    assert [reader.get_page_number(link["/Dest"][0].get_object()) for link in links] == [3]


def test_no_address_of_this_machine_is_left(printed: tuple[Path, PdfReader]) -> None:
    assert str(printed[0]).encode() not in (printed[0] / "ttutor.pdf").read_bytes()
    annotations = (a.get_object() for sheet in printed[1].pages for a in sheet.get("/Annots", ()))
    assert [str(a["/A"]) for a in annotations if "/A" in a and "file:" in str(a["/A"])] == []


def test_the_sidebar_leads_to_it(printed: tuple[Path, PdfReader]) -> None:
    text = (printed[0] / "book" / "one.html").read_text(encoding="utf-8")
    assert '<a href="../ttutor.pdf">The whole book as a PDF</a>' in text


def test_a_page_that_is_not_built_is_named(capsys: pytest.CaptureFixture) -> None:
    assert pdf.main(["book/99-nothing"]) == 1
    assert "book/99-nothing" in capsys.readouterr().err


def test_what_is_left_out_is_in_the_book() -> None:
    assert set(pdf.LEFT_OUT) <= set(read_toc())
