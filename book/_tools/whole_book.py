"""The pages of the built book as they are printed: `make pdf` prints one `Chunk` after the other, and joins them.

Each page becomes a chunk without menus, with everything open that the book folds away; the answers to its exercises
become another, behind all pages. Anchors get the page's name in front, so that no two are the same; a link to another
place of the book gets an address (`SCHEME`) that `book._tools.join` turns into a link within the PDF.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import lxml.html
import yaml
from book._tools.leaf import SCHEME, Leaf, read, rename
from lxml.etree import _Element as Element

ROOT = Path(__file__).resolve().parents[2]
TITLE = "The Transformer, built and tested"
NAME = "ttutor: the Transformer, built and tested"
ANSWERS = "Hints and solutions"
END = "the-end-of-the-chunk"


def captions() -> dict[str, str]:
    """Return the caption of the part of the table of contents that holds each page."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    return {chapter["file"]: part["caption"] for part in parts for chapter in part["chapters"]}


@dataclass(frozen=True)
class Heading:
    """A heading: its level (1 is the highest), the anchor where it stands, and its words."""

    level: int
    anchor: str
    title: str


@dataclass(frozen=True)
class Chunk:
    """What is printed at once.

    Attributes:
        name: what it is, for those who wait for it.
        markup: a whole page of HTML. Its last sheets hold nothing but links to all anchors, from `END` on, so that the
            printer says where each of them is.
        headings: its headings in order.
    """

    name: str
    markup: str
    headings: list[Heading]


def whole_book(html_root: Path, pages: Iterable[str], *, version: str, paper: str = "A4") -> list[Chunk]:
    """Return title and contents, then every page's text, then all answers, as chunks to be printed.

    Args:
        html_root: the folder of the built book.
        pages: names of the pages in their order, such as ``book/02-attention``.
        version: what the title says of it.
        paper: a size that CSS knows, such as ``A4`` or ``letter``.

    Raises:
        ValueError: a page has no article with a heading.
    """
    parts = captions()
    leaves = [read(html_root, page, f"p{at}", parts.get(page, "")) for at, page in enumerate(pages, start=1)]
    names = {leaf.page: leaf.name for leaf in leaves}
    anchors = {
        f"{leaf.name}-{element.get('id')}"
        for leaf in leaves
        for root in (leaf.text, *leaf.answers)
        for element in root.iter()
        if isinstance(element.tag, str) and "id" in element.attrib
    }
    for leaf in leaves:
        for root in (leaf.text, *leaf.answers):
            rename(leaf, root, html_root, names, anchors)
    # A page does without a typeface that comes late; paper waits for it.
    sheet = html_root / "_static" / "fonts.css"
    faces = sheet.read_text(encoding="utf-8") if sheet.exists() else ""
    shared = f"{head(leaves)}<style>{faces.replace('font-display:optional', 'font-display:block')}</style>"
    chunks = [chunk(shared, front(version) + contents(leaves), "", paper)]
    part = ""
    for leaf in leaves:
        chunks.append(chunk(shared, text_of(leaf, opens=leaf.part != part), leaf.title, paper))
        part = leaf.part
    answered = [leaf for leaf in leaves if leaf.answers]
    for leaf in answered:
        body = answers_of(leaf, opens=leaf is answered[0])
        chunks.append(chunk(shared, body, f"{ANSWERS}: {leaf.title}", paper))
    return chunks


def chunk(shared: str, body: str, running: str, paper: str) -> Chunk:
    """Put one chunk together; every heading gets an anchor."""
    root = lxml.html.fragment_fromstring(body, create_parent="main")
    root.set("class", "bd-article-container")
    headings = []
    for at, element in enumerate(root.iter("h1", "h2", "h3", "h4")):
        above = element.getparent()
        anchor = element.get("id") or (above.get("id") if above.index(element) == 0 else None)
        if not anchor:
            anchor = f"heading-{at}"
            element.set("id", anchor)
        headings.append(Heading(int(element.tag[1]), anchor, " ".join(element.text_content().split())))
    ids = [END, *(element.get("id") for element in root.iter() if isinstance(element.tag, str) and element.get("id"))]
    links = "".join(f'<a href="#{html.escape(anchor)}">.</a> ' for anchor in ids)
    quoted = running.replace("\\", "\\\\").replace('"', '\\"').replace("</", "<\\/")
    return Chunk(
        running or "Contents",
        '<!doctype html><html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">'
        f"<title>{NAME}</title>{shared}<style>@page {{ size: {paper}; "
        f'@top-left {{ content: "{quoted}" }} @bottom-center {{ content: none }} }}</style></head>'
        f'<body class="whole-book">{markup(root)}'
        f'<div id="{END}" class="book-end" aria-hidden="true">{links}</div></body></html>',
        headings,
    )


def demote(root: Element, levels: int) -> None:
    """Lower all headings, so that a page's heading stands under that of its part."""
    for element in root.iter("h1", "h2", "h3", "h4", "h5", "h6"):
        element.tag = f"h{min(6, int(element.tag[1]) + levels)}"


def head(leaves: list[Leaf]) -> str:
    """Style sheets of all pages, and the scripts that set formulas and draw explorers; each once."""
    kept: dict[str, None] = {}
    for leaf in leaves:
        for element in leaf.head:
            words = (element.get("src") or "") + (element.text or "")
            is_drawing = element.tag == "script" and (
                "MathJax" in words or "mathjax" in words or "explorers.js" in words
            )
            if element.get("rel") == "stylesheet" or is_drawing:
                kept[lxml.html.tostring(element, encoding="unicode", with_tail=False)] = None
    return "".join(kept)


def front(version: str) -> str:
    """The title's sheet."""
    return (
        f'<section class="book-title"><p class="book-name">{TITLE}</p><p>ttutor {html.escape(version)}</p>'
        "<p>Text: CC BY 4.0. Code: MIT.</p><p>Explorers stand here as pictures, and code that the book folds away is "
        "left out; both live in the notebooks. Hints and solutions stand at the end.</p></section>"
    )


def contents(leaves: list[Leaf]) -> str:
    """The contents: a link for each page. The numbers of the sheets are known, and written, after printing."""
    rows, part = [], ""
    for leaf in leaves:
        if leaf.part != part:
            part = leaf.part
            rows.append(f'<li class="book-part">{html.escape(part)}</li>')
        rows.append(row(leaf.name, leaf.title))
    if answered := [leaf for leaf in leaves if leaf.answers]:
        rows.append(f'<li class="book-part">{ANSWERS}</li>')
        rows += [row(f"answers-{leaf.name}", leaf.title) for leaf in answered]
    return f'<nav class="book-contents"><h1 id="contents">Contents</h1><ul>{"".join(rows)}</ul></nav>'


def row(anchor: str, title: str) -> str:
    """One line of the contents."""
    return f'<li><a href="{SCHEME}{anchor}">{html.escape(title)}</a></li>'


def markup(element: Element) -> str:
    """An element as HTML."""
    return lxml.html.tostring(element, encoding="unicode", with_tail=False)


def text_of(leaf: Leaf, *, opens: bool) -> str:
    """A page's text; the first of a part stands under the part's name."""
    opening = f'<h1 class="book-part">{html.escape(leaf.part)}</h1>' if opens and leaf.part else ""
    demote(leaf.text, 1 if leaf.part else 0)
    return f'<section class="book-page" id="{leaf.name}">{opening}{markup(leaf.text)}</section>'


def answers_of(leaf: Leaf, *, opens: bool) -> str:
    """Hints and solutions of a page; the first page's stand under a heading for all."""
    opening = f'<h1 class="book-part">{ANSWERS}</h1>' if opens else ""
    for element in leaf.answers:
        demote(element, 1)
    kept = "".join(map(markup, leaf.answers))
    return (
        f'<section class="book-page" id="answers-{leaf.name}">{opening}<article class="bd-article">'
        f"<section><h2>{html.escape(leaf.title)}</h2>{kept}</section></article></section>"
    )
