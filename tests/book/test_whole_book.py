"""All pages as one for the printer: what becomes of anchors, links, folded parts and answers."""

from __future__ import annotations

from pathlib import Path

import lxml.html
import pytest

from book._tools.whole_book import END, Chunk, Heading, whole_book

ONE = """<html><head><link rel="stylesheet" href="../_static/a.css"><script src="../_static/menu.js"></script>
<script src="../_static/explorers.js"></script></head><body><nav>MENU</nav>
<article class="bd-article"><h1 id="x">One</h1>
<p id="y" aria-labelledby="x y">Text <a href="two.html#x">there</a> <a href="two.html#gone">here</a>
<a href="#y">up</a> <a href="api.html">code</a> <a href="https://example.org/">out</a></p>
<svg><marker id="tip"></marker><path marker-end="url(#tip)"></path></svg>
<img src="../_images/i.png"></article></body></html>"""
TWO = """<html><head><link rel="stylesheet" href="../_static/a.css"></head><body>
<article class="bd-article"><h1 id="x">Two</h1>
<div class="cell tag_hide-input"><details class="hide above-input"><summary>Show</summary><pre>PLOTTING</pre></details>
<div class="cell_output">DRAWN</div></div>
<div class="cell"><details class="hide below-input"><summary>Show</summary><pre>OUTPUT</pre></details></div>
<div class="exercise"><p class="admonition-title">Exercise 1</p></div>
<div class="solution"><p id="z">SOLVED</p></div> AFTER <a href="#z">to the solution</a></article></body></html>"""


@pytest.fixture
def chunks(tmp_path: Path) -> list[Chunk]:
    """Two pages to be printed: the front, each page, the answers of the second."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "one.html").write_text(ONE, encoding="utf-8")
    (tmp_path / "book" / "two.html").write_text(TWO, encoding="utf-8")
    return whole_book(tmp_path, ["book/one", "book/two"], version="1")


@pytest.fixture
def parsed(chunks: list[Chunk]) -> list[lxml.html.HtmlElement]:
    """What is printed, in the same order."""
    return [lxml.html.document_fromstring(chunk.markup) for chunk in chunks]


def test_no_two_elements_of_the_book_share_an_id(parsed: list[lxml.html.HtmlElement]) -> None:
    ids = [anchor for page in parsed for anchor in page.xpath("//main//@id") if not anchor.startswith("heading-")]
    assert len(ids) == len(set(ids))
    assert {"contents", "p1", "p1-x", "p2-x", "p2-z", "answers-p2"} <= set(ids)


def test_each_chunk_ends_with_links_to_all_its_anchors(parsed: list[lxml.html.HtmlElement]) -> None:
    for page in parsed:
        listed = page.xpath(f"//div[@id='{END}']/a/@href")
        assert listed == [f"#{END}", *(f"#{anchor}" for anchor in page.xpath("//main//@id"))]


def test_links_lead_to_the_place_or_the_page_or_nowhere(parsed: list[lxml.html.HtmlElement]) -> None:
    links = {link.text: link.get("href") for page in parsed for link in page.xpath("//article//a")}
    assert links == {
        "there": "ttutor-book:p2-x",
        "here": "ttutor-book:p2",
        "up": "ttutor-book:p1-y",
        "code": None,
        "out": "https://example.org/",
        "to the solution": "ttutor-book:p2-z",
    }


def test_the_contents_list_pages_and_answers(parsed: list[lxml.html.HtmlElement]) -> None:
    lines = {link.text: link.get("href") for link in parsed[0].xpath("//nav//a[contains(@href, ':p')]")}
    assert lines == {"One": "ttutor-book:p1", "Two": "ttutor-book:p2"}
    assert parsed[0].xpath("//nav//a/@href")[-1] == "ttutor-book:answers-p2"


def test_headings_are_known_with_their_levels(chunks: list[Chunk]) -> None:
    assert chunks[0].headings == [Heading(1, "contents", "Contents")]
    assert [(heading.level, heading.title) for heading in chunks[3].headings] == [
        (1, "Hints and solutions"),
        (2, "Two"),
        (3, "Exercise 1"),
    ]


def test_what_names_an_id_follows_it(parsed: list[lxml.html.HtmlElement]) -> None:
    assert parsed[1].xpath("//@aria-labelledby") == ["p1-x p1-y"]
    assert parsed[1].xpath("//@marker-end") == ["url(#p1-tip)"]


def test_only_what_draws_is_loaded(parsed: list[lxml.html.HtmlElement]) -> None:
    assert [source.rpartition("/")[2] for source in parsed[2].xpath("//script/@src")] == ["explorers.js"]
    assert len(parsed[2].xpath("//link")) == 1
    assert parsed[1].xpath("//img/@src")[0].startswith("file:")
    assert "MENU" not in parsed[1].text_content()


def test_folded_code_is_left_out_and_folded_outputs_are_shown(parsed: list[lxml.html.HtmlElement]) -> None:
    text = parsed[2].text_content()
    assert "PLOTTING" not in text
    assert "DRAWN" in text
    assert [block.text for block in parsed[2].xpath("//pre[not(ancestor::details)]")] == ["OUTPUT"]


def test_solutions_stand_at_the_end_and_what_followed_them_stays(parsed: list[lxml.html.HtmlElement]) -> None:
    _, _, two, answers = parsed
    assert "AFTER" in two.text_content()
    assert "SOLVED" not in two.text_content()
    assert "SOLVED" in answers.text_content()
    assert "AFTER" not in answers.text_content()


def test_a_page_without_an_article_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.html").write_text("<html><body></body></html>", encoding="utf-8")
    with pytest.raises(ValueError, match=r"empty\.html has no article"):
        whole_book(tmp_path, ["empty"], version="1")
