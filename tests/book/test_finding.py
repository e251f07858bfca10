"""Finding one's way in the built pages: what is under each page, what comes before and after."""

from __future__ import annotations

import re

import pytest

from book._tools.address import address
from book._tools.build import read_toc
from book._tools.notebook_io import BESIDE
from tests.book.browser import HTML
from tests.require import missing

PAGES = read_toc()


def text_of(page: str) -> str:
    path = HTML / f"{page}.html"
    if not path.exists():
        missing("browser", "the book is not built: run `make book`")
    return path.read_text(encoding="utf-8")


def neighbour(text: str, side: str) -> str | None:
    """The page that the link to the previous or the next page leads to."""
    found = re.search(rf'<a class="{side}"\s+href="([^"]+)\.html"', text)
    return found and f"book/{found[1]}"


@pytest.mark.browser
def test_previous_and_next_are_the_neighbours_in_the_table_of_contents() -> None:
    """From a chapter's road the way goes to the next chapter, past the pages beside it."""
    for page in PAGES:
        beside = page.endswith(BESIDE)
        pages, text = [p for p in PAGES if beside or not p.endswith(BESIDE)], text_of(page)
        before, after = ([None, *pages, None][pages.index(page) + step] for step in (0, 2))
        assert (neighbour(text, "left-prev"), neighbour(text, "right-next")) == (before, after), page


@pytest.mark.browser
def test_every_page_says_what_it_was_built_from_and_loads_no_search_index() -> None:
    for page in PAGES:
        text = text_of(page)
        (facts,) = re.findall(r'<div class="page-facts">.*?</div>', text, re.DOTALL)
        assert "ttutor 0." in facts, page
        (source,) = re.findall(r'<a href="([^"]+)" download>', facts)
        assert (HTML / f"{page}.html").parent.joinpath(source).is_file(), page
        assert ("Report an error on this page</a>" in facts) is (address() is not None), page
        assert re.findall(r'<script[^>]*src="[^"]*(?:searchindex|searchtools|records)\.js', text) == [], page
