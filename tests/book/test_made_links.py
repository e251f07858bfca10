"""Links that the build makes: names of code to the reference, and the works of callouts to the bibliography."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from book._tools.claims_ledger import chapter_pages, records
from tests.book.browser import HTML
from ttutor.claims import chapters

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = re.compile(
    r'<a class="reference internal" href="api-\w+\.html#(ttutor[\w.]+)"[^>]*><code[^>]*>(.*?)</code></a>'
)


@pytest.fixture(scope="module", autouse=True)
def _built(html: Path) -> None:
    """All of this is about the built book."""


def text_of(stem: str) -> str:
    pages = [HTML / "book" / f"{page.stem}.html" for page in chapter_pages(ROOT, stem)]
    return "".join(page.read_text(encoding="utf-8") for page in pages)


@pytest.mark.parametrize("stem", chapters())
def test_a_name_leads_to_what_it_names(stem: str) -> None:
    """The last part of the anchor is the name; a call's arguments, and what stands before the last dot, may differ."""
    links = [(full, re.sub(r"<[^>]+>", "", shown)) for full, shown in REFERENCE.findall(text_of(stem))]
    assert links
    wrong = [(full, shown) for full, shown in links if shown.partition("(")[0].split(".")[-1] != full.split(".")[-1]]
    assert wrong == []


@pytest.mark.parametrize("stem", chapters())
def test_the_work_that_a_callout_cites_is_a_link_into_the_bibliography(stem: str) -> None:
    pages = chapter_pages(ROOT, stem)
    cited = [record.source for page in pages for record in records(page) if record.source]
    text = text_of(stem)
    links = re.findall(r'Source:</strong> <a href="bibliography\.html#(id\d+)">[^<]+, \d{4}</a>', text)
    anchors = set(re.findall(r'id="(id\d+)"', (HTML / "book" / "bibliography.html").read_text(encoding="utf-8")))
    assert len(links) == len(cited)
    assert set(links) <= anchors
    assert "(see the bibliography)" not in text


def test_a_bold_term_leads_to_its_entry_and_the_entry_back() -> None:
    entry = '<a class="reference internal" href="glossary.html#term-self-attention"><strong id="bold-self-attention">'
    assert entry in text_of("attention")
    glossary = (HTML / "book" / "glossary.html").read_text(encoding="utf-8")
    assert 'href="02-attention.html#bold-self-attention">2</a>' in glossary
