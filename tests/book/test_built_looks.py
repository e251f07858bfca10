"""How the built pages look: their heads lead to what is there, lines have a book's length, code fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from book._tools.build import read_toc
from tests.book.browser import HTML

pytestmark = pytest.mark.browser

BUILT = [page for page in read_toc() if (HTML / f"{page}.html").exists()]
SENTENCE = "Queries come from the decoder, keys and values from what the encoder"
LINE = """(sentence) => {
  const paragraph = document.querySelector('section > p');
  const style = getComputedStyle(paragraph);
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = `${style.fontSize} ${style.fontFamily}`;
  return paragraph.clientWidth / (pen.measureText(sentence).width / sentence.length);
}"""
CODE_FITS = """(columns) => {
  const pre = document.querySelector('div.highlight pre');
  pre.textContent = 'x'.repeat(columns);
  for (let box = pre; box.tagName !== 'ARTICLE'; box = box.parentElement) {
    if (box.scrollWidth > box.clientWidth + 1) return false;
  }
  return true;
}"""
FONTS = "() => [...document.fonts].filter((font) => font.family.includes('ttutor')).map((font) => font.status)"


@pytest.fixture(scope="module", autouse=True)
def _built(html: Path) -> None:
    """All of this is about the built book."""


def test_the_icons_of_every_page_are_there() -> None:
    for page in BUILT:
        head = (HTML / f"{page}.html").read_text(encoding="utf-8").split("</head>")[0]
        links = re.findall(r'<link rel="(?:icon|apple-touch-icon)" href="([^"]+)"', head)
        assert sorted(Path(link).name for link in links) == ["apple-touch-icon.png", "favicon.ico", "favicon.svg"]
        assert [link for link in links if not (HTML / page).parent.joinpath(link).is_file()] == [], page


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    tab = browser.new_page()
    tab.goto((HTML / "book" / "setup.html").as_uri())
    yield tab
    tab.close()


@pytest.mark.parametrize("width", [768, 1200, 1400, 1920])
def test_a_line_of_text_has_60_to_75_characters(tab: Page, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    assert 60 <= tab.evaluate(LINE, SENTENCE) <= 77


@pytest.mark.parametrize(("width", "columns"), [(1200, 88), (1400, 92), (1920, 92)])
def test_formatted_code_fits_on_a_desk(tab: Page, width: int, columns: int) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    assert tab.evaluate(CODE_FITS, columns)
    assert not tab.evaluate(CODE_FITS, 2 * columns)


def test_the_text_is_set_in_the_books_own_typefaces(tab: Page) -> None:
    tab.evaluate("() => document.fonts.ready.then(() => true)")
    assert set(tab.evaluate(FONTS)) <= {"loaded", "unloaded"}
    assert "loaded" in tab.evaluate(FONTS)
