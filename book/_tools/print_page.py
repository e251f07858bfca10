"""The whole book as one page of HTML, made from the built pages: `make pdf` lets a browser print it.

Each page's article follows the one before, without menus and with everything open that the book folds away; hints and
solutions stand at the end. An anchor gets the name of its page in front, so that no two are the same, and links between
pages lead to these anchors.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import lxml.html
from book._tools.build import table_of_contents, toc_pages
from lxml.etree import _Element as Element
from lxml.html.builder import H2

TITLE = "The Transformer, built and tested"
ANSWERS = "Hints and solutions"
SHORT_BLOCK = 12
"""Lines of code up to which a block is not split between two sheets."""
LINKS = ("href", "{http://www.w3.org/1999/xlink}href")
NAMING = ("id", "for", "list", "aria-labelledby", "aria-describedby", "aria-controls")
"""Attributes that hold ids."""
UNPRINTED = ("headerlink", "copybtn", "toggle-button", "sd-summary-state-marker", "d-print-none", "ledger-controls")
"""Classes of what only a screen can use."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A built page's text, or the answers to its exercises."""

    name: str  # its anchor
    page: str  # the name of the built page's file, without the ending
    title: str
    part: str  # of the table of contents, the answers, or nothing
    elements: list[Element]


def whole_book(folder: Path, pages: Iterable[str], *, version: str, paper: str = "A4") -> str:
    """The page to be printed. It is written for a place beside the built pages: relative addresses stay as they are.

    Args:
        folder: the folder of the built book.
        pages: names of the pages in their order, such as ``book/02-attention``.
        version: what the title says of it.
        paper: a size that CSS knows, such as ``A4`` or ``letter``.
    """
    parts = captions()
    documents = {page: lxml.html.parse(folder / f"{page}.html", parser()).getroot() for page in pages}
    texts = [text_of(document, Path(page).name, parts.get(page, "")) for page, document in documents.items()]
    sections = texts + [answers for text in texts if (answers := answers_of(text)).elements]
    anchors = {text.page for text in texts}
    for section in sections:
        anchors |= {f"{section.page}--{name}" for root in section.elements for name in root.xpath("@id | .//@id")}
    for section in sections:
        for root in section.elements:
            rename(root, section.page, anchors)
    loaded = "".join(dict.fromkeys(tag for document in documents.values() for tag in head(document)))
    running = "".join(running_head(section) for section in sections)
    sheets = f"@page {{ size: {paper} }} @page :first {{ @bottom-center {{ content: none }} }} {running}"
    return (
        '<!doctype html><html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">'
        f"<title>ttutor: {TITLE.replace('T', 't', 1)}</title>{loaded}{typefaces(folder)}<style>{sheets}</style></head>"
        f'<body class="whole-book">{front(version)}{contents(sections)}'
        f'<main class="bd-article-container">{"".join(markup(sections))}</main></body></html>'
    )


def parser() -> lxml.html.HTMLParser:
    """Reads pages of any size as UTF-8."""
    return lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)


def captions() -> dict[str, str]:
    """The caption of the part of the table of contents that holds each page."""
    return {page: part["caption"] for part in table_of_contents()["parts"] for page in toc_pages(part["chapters"])}


def has(element: Element, *classes: str) -> bool:
    """Whether an element has one of the classes."""
    return not set(classes).isdisjoint((element.get("class") or "").split())


def text_of(document: Element, page: str, part: str) -> Section:
    """A page's article, made ready for paper."""
    articles = document.xpath("//article[contains(@class, 'bd-article')]")
    if not articles or articles[0].find(".//h1") is None:
        raise ValueError(f"the built page {page}.html has no article with a heading: build the book anew")
    article = articles[0]
    for element in [found for name in UNPRINTED for found in article.find_class(name)]:
        element.drop_tree()
    unfold(article)
    for block in article.iter("pre"):
        if block.text_content().strip().count("\n") < SHORT_BLOCK:
            block.set("class", f"{block.get('class') or ''} brief".strip())
    title = " ".join(article.find(".//h1").text_content().split())
    return Section(name=page, page=page, title=title, part=part, elements=[article])


def unfold(article: Element) -> None:
    """Open what is folded. Of a cell whose code the book folds away, only what it shows is printed."""
    for cell in article.find_class("tag_hide-input"):
        for folded in cell.find_class("above-input"):
            folded.drop_tree()
    for folded in list(article.iter("details")):
        if has(folded, "hide"):
            folded.find("summary").drop_tree()
            folded.tag = "div"
            folded.set("class", "unfolded")
        else:
            folded.set("open", "")


def answers_of(text: Section) -> Section:
    """Take hints and solutions out of a page's text, each behind a heading with the name of its exercise."""
    kept: list[Element] = []
    for element in list(text.elements[0].iter()):
        if not isinstance(element.tag, str) or any(map(is_answer, element.iterancestors())):
            continue
        if has(element, "admonition-title") and has(element.getparent(), "exercise"):
            kept.append(H2(" ".join(element.text_content().split())))
        elif is_answer(element):
            kept.append(element)
    answers = [element for element in kept if is_answer(element)]
    for element in answers:
        element.drop_tree()
        element.tail = None
    name = f"answers-{text.page}"
    return Section(name=name, page=text.page, title=text.title, part=ANSWERS, elements=kept if answers else [])


def is_answer(element: Element) -> bool:
    """Whether an element is a solution or a hint."""
    if has(element, "solution", "tag_solution"):
        return True
    return has(element, "sd-dropdown") and element.text_content().strip().startswith("Hint")


def rename(root: Element, page: str, anchors: set[str]) -> None:
    """Put the page's name in front of every id, and lead links within the book to them.

    A link to a page that is not printed keeps its words and loses its address.
    """
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        for name, value in element.attrib.items():
            if name in NAMING:
                element.set(name, " ".join(f"{page}--{word}" for word in value.split()))
            elif "url(#" in value:
                element.set(name, value.replace("url(#", f"url(#{page}--"))
            elif name in LINKS and element.tag in ("a", "use"):
                place = within_book(value, page)
                if place is None or place in anchors:
                    element.set(name, value if place is None else f"#{place}")
                else:
                    del element.attrib[name]


def within_book(link: str, page: str) -> str | None:
    """The anchor that a link of a page leads to in the whole book; None for a link to elsewhere.

    >>> within_book("#masks", "02-attention"), within_book("setup.html", "02-attention")
    ('02-attention--masks', 'setup')
    """
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = Path(unquote(parts.path)).stem if parts.path else page
    return f"{target}--{unquote(parts.fragment)}" if parts.fragment else target


def head(document: Element) -> Iterator[str]:
    """Yield the style sheets of a page, and the scripts that set formulas and draw explorers."""
    for element in document.head:
        words = (element.get("src") or "") + (element.text or "")
        draws = element.tag == "script" and any(name in words for name in ("MathJax", "mathjax", "explorers.js"))
        if element.get("rel") == "stylesheet" or draws:
            yield lxml.html.tostring(element, encoding="unicode", with_tail=False)


def typefaces(folder: Path) -> str:
    """The typefaces, to be waited for: a page on a screen does without one that comes late."""
    sheet = folder / "_static" / "fonts.css"
    text = sheet.read_text(encoding="utf-8") if sheet.exists() else ""
    return f"<style>{text.replace('optional', 'block').replace('url(fonts/', 'url(../_static/fonts/')}</style>"


def running_head(section: Section) -> str:
    """The style that puts a page's title at the top of its sheets."""
    title = section.title.replace("\\", "\\\\").replace('"', '\\"').replace("</", "<\\/")
    words = f"{ANSWERS}: {title}" if section.part == ANSWERS else title
    name = f"sheet-{section.name}"
    return f'@page {name} {{ @top-left {{ content: "{words}" }} }} section[id="{section.name}"] {{ page: {name} }} '


def front(version: str) -> str:
    """The title's sheet."""
    return (
        f'<section class="book-title"><p class="book-name">{TITLE}</p>'
        f"<p>ttutor {html.escape(version)}</p><p>Text: CC BY 4.0. Code: MIT.</p><p>Explorers stand here as pictures, "
        "and code that the book folds away is left out; both live in the notebooks. Hints and solutions stand at the "
        "end.</p></section>"
    )


def contents(sections: list[Section]) -> str:
    """The table of contents: a link for each section under the name of its part."""
    rows, part = [], ""
    for section in sections:
        if section.part != part:
            part = section.part
            rows.append(f'<li class="book-part">{html.escape(part)}</li>')
        rows.append(f'<li><a href="#{section.name}">{html.escape(section.title)}</a></li>')
    return f'<nav class="book-contents"><h1>Contents</h1><ul>{"".join(rows)}</ul></nav>'


def markup(sections: list[Section]) -> Iterator[str]:
    """Yield the sections as HTML; the first of a part stands under the part's name, and headings one level down."""
    part = ""
    for section in sections:
        opening = f'<h1 class="book-part">{html.escape(section.part)}</h1>' if section.part != part else ""
        part = section.part
        if part == ANSWERS:
            opening += f"<h2>{html.escape(section.title)}</h2>"
        for element in section.elements:
            demote(element, 1 if part else 0)
        body = "".join(lxml.html.tostring(one, encoding="unicode", with_tail=False) for one in section.elements)
        body = f'<article class="bd-article">{body}</article>' if part == ANSWERS else body
        yield f'<section class="book-page" id="{section.name}">{opening}{body}</section>'


def demote(root: Element, levels: int) -> None:
    """Lower all headings, so that a page's heading stands under that of its part."""
    for element in root.iter("h1", "h2", "h3", "h4", "h5", "h6"):
        element.tag = f"h{min(6, int(element.tag[1]) + levels)}"
