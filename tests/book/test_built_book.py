"""The built book as a reader meets it: from disk and from a server, with no network (build it with `make book`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import lxml.html
import pytest
from playwright.sync_api import Browser

from book._tools.build import read_toc
from tests.book.browser import HTML, Reader, reader, serve, settle, visit

pytestmark = pytest.mark.browser

BUILT = sorted(path.relative_to(HTML).as_posix() for path in HTML.rglob("*.html") if "_static" not in path.parts)
# index.html only sends the browser on. `make soak` looks at all others at every width, with every rule of axe-core.
PAGES = [page for page in BUILT if page != "index.html"]
# The listings of source code, the reference and the exercises are made by programs, each from one kind of source: of
# the latter two the first is read here.
MADE = re.compile(r"^_modules/|/api-(?!attention)|/(?!02-)\d\d-\w+-exercises")
READ = [page for page in PAGES if not MADE.search(page)]
# The others are made of the same parts as these.
AUDITED = frozenset(
    "02-attention 02-attention-deeper 02-attention-exercises 08-training api-attention bibliography claims gallery "
    "genindex glossary intro minimal notation search setup symptoms tour".split()
)
FORMULA = re.compile(r'<(span|div) class="math notranslate nohighlight"[^>]*>(.*?)</\1>', re.DOTALL)
SET = """
async (formulas) => {
  const article = document.querySelector("article");
  article.innerHTML = formulas.map((formula) => `<p>${formula}</p>`).join("");
  await MathJax.typesetPromise([article]);
  return [...article.children].filter((one) => !one.querySelector("mjx-container") ||
    one.querySelector("[data-mml-node=merror]")).map((one) => one.textContent);
}
"""


@cache
def anchors(path: Path) -> tuple[set[str], list[str]]:
    """What a page can be linked at, and what it links to."""
    root = lxml.html.parse(path, lxml.html.HTMLParser(encoding="utf-8", huge_tree=True))
    return set(root.xpath("//@id | //@name")), root.xpath("//@href | //@src")


def broken_links(path: Path) -> list[str]:
    """Return the links within the book that lead nowhere."""
    broken = []
    for link in anchors(path)[1]:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        anchor = unquote(parts.fragment) if target.suffix == ".html" else ""
        if not target.is_file() or (anchor and anchor not in anchors(target)[0]):
            broken.append(link)
    return broken


@pytest.fixture(scope="module", autouse=True)
def _built(html: Path) -> None:
    """All of this is about the built book."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve(HTML) as address:
        yield address


@pytest.fixture(scope="module")
def someone(browser: Browser) -> Iterator[Reader]:
    with reader(browser, widths=(1200, 360), audit="quick") as one:
        yield one


def test_every_page_of_the_table_of_contents_is_built() -> None:
    assert [page for page in read_toc() if f"{page}.html" not in PAGES] == []


def test_the_index_sends_readers_to_the_first_page() -> None:
    assert f"url={read_toc()[0]}.html" in (HTML / "index.html").read_text(encoding="utf-8")


def test_links_within_the_book_lead_somewhere() -> None:
    assert {page: broken for page in PAGES if (broken := broken_links(HTML / page))} == {}


def from_elsewhere(path: Path) -> list[str]:
    """Return the tags of a page that ask another host for something."""
    text = path.read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=[\"'](?:https?:)?//[^>]*>", text)
    links = re.findall(r"<link\b[^>]*href=[\"'](?:https?:)?//[^>]*>", text)
    return tags + [link for link in links if "stylesheet" in link or "preload" in link]


def test_nothing_comes_from_another_host() -> None:
    assert {page: tags for page in PAGES if (tags := from_elsewhere(HTML / page))} == {}


# A page is opened once, and all that can be asked of it is asked in this visit: at two widths, in both modes.
@pytest.mark.parametrize("page", READ)
def test_page_as_a_reader_meets_it(someone: Reader, server: str, page: str) -> None:
    result = someone.visit(f"{server}/{page}", audited=Path(page).stem in AUDITED)
    assert not result.findings, str(result)
    assert result.own_bytes > 10_000, "nothing was weighed"


def test_what_is_audited_is_read() -> None:
    assert {Path(page).stem for page in READ} >= AUDITED


def test_every_formula_of_the_book_is_set(browser: Browser) -> None:
    texts = [(HTML / page).read_text(encoding="utf-8") for page in PAGES]
    formulas = sorted({found for text in texts for _, found in FORMULA.findall(text)})
    assert len(formulas) > 1000
    with reader(browser) as one:
        one.page.goto((HTML / "book" / "notation.html").as_uri())
        settle(one.page, one.now, 60)
        assert one.page.evaluate(SET, formulas) == []


@pytest.mark.parametrize("page", ["book/02-attention.html", "search.html"])
def test_page_from_disk_on_a_phone_in_the_dark(browser: Browser, page: str) -> None:
    result = visit(browser, (HTML / page).as_uri(), widths=(360,), dark=True)
    assert not result.findings, str(result)


@pytest.mark.soak
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 360, 768, 1400])
@pytest.mark.parametrize("page", PAGES)
def test_page_at_every_width_in_both_colours(browser: Browser, page: str, width: int, dark: bool) -> None:
    result = visit(browser, (HTML / page).as_uri(), patience=60, widths=(width,), dark=dark, audit="whole")
    assert not result.findings, str(result)
