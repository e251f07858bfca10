"""A page of the built book made ready for paper: opened, without menus, its answers apart, its anchors its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import lxml.html
import lxml.html.builder
from lxml.etree import _Element as Element

SCHEME = "ttutor-book:"
"""What the addresses of places in the book begin with."""
BRIEF = 12
"""Lines of code up to which a block is not split between two sheets."""
ADDRESSES = {"href", "{http://www.w3.org/1999/xlink}href"}
NAMING = ("for", "list", "aria-labelledby", "aria-describedby", "aria-controls")
"""Attributes that hold ids of other elements."""
UNPRINTED = (
    "headerlink",
    "copybtn",
    "toggle-button",
    "sd-summary-state-marker",
    "d-print-none",
    "ledger-controls",
)
"""Classes of what only a screen can use."""


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A page of the built book, ready to be put behind others.

    Attributes:
        page: its name, such as ``book/02-attention``.
        name: what stands before its anchors.
        title: its heading.
        part: the caption of the part of the table of contents that it opens or continues; empty for none.
        text: its article without answers.
        answers: names of the exercises, hints and solutions.
        head: what its head loads.
    """

    page: str
    name: str
    title: str
    part: str
    text: Element
    answers: list[Element]
    head: list[Element]


def having(element: Element, *classes: str) -> list[Element]:
    """Return the elements within another that have one of the classes, in order."""
    return [found for found in element.iter() if isinstance(found.tag, str) and has(found, *classes)]


def has(element: Element, *classes: str) -> bool:
    """Whether an element has one of the classes."""
    return not set(classes).isdisjoint((element.get("class") or "").split())


def read(html_root: Path, page: str, name: str, part: str) -> Leaf:
    """Read one built page.

    Raises:
        ValueError: it has no article with a heading.
    """
    document = lxml.html.document_fromstring((html_root / f"{page}.html").read_text(encoding="utf-8"))
    articles = [found for found in having(document, "bd-article") if found.tag == "article"]
    heading = articles[0].find(".//h1") if articles else None
    if heading is None:
        raise ValueError(f"the built page {page}.html has no article with a heading: build the book anew")
    article = articles[0]
    for element in having(article, *UNPRINTED):
        element.drop_tree()
    absolute(article, (html_root / f"{page}.html").as_uri())
    unfold(article)
    mark_brief(article)
    title = " ".join(heading.text_content().split())
    answers = take_answers(article)
    head = [element for element in document.head if element.tag in ("link", "script")]
    for element in head:
        absolute(element, (html_root / f"{page}.html").as_uri())
    return Leaf(page=page, name=name, title=title, part=part, text=article, answers=answers, head=head)


def absolute(element: Element, address: str) -> None:
    """Give sources and links their whole addresses, as seen from a page's own."""
    for found in element.iter():
        for attribute in ("src", *ADDRESSES):
            if found.get(attribute) is not None and isinstance(found.tag, str):
                found.set(attribute, urljoin(address, found.get(attribute)))


def unfold(article: Element) -> None:
    """Open what is folded. Of a cell whose code the book folds away, only what it shows is printed."""
    for cell in having(article, "tag_hide-input"):
        for folded in having(cell, "above-input"):
            folded.drop_tree()
    for folded in list(article.iter("details")):
        if has(folded, "hide"):
            folded.find("summary").drop_tree()
            folded.tag = "div"
            folded.set("class", "unfolded")
        else:
            folded.set("open", "")


def mark_brief(article: Element) -> None:
    """Mark the blocks of code that are short enough to stand on one sheet whole."""
    for block in article.iter("pre"):
        if block.text_content().strip().count("\n") < BRIEF:
            block.set("class", f"{block.get('class') or ''} brief".strip())


def is_answer(element: Element) -> bool:
    """Whether an element is a solution or a hint."""
    if has(element, "solution", "tag_solution"):
        return True
    return has(element, "sd-dropdown") and element.text_content().strip().startswith("Hint")


def take_answers(article: Element) -> list[Element]:
    """Take hints and solutions out of an article; return them in order, each behind its exercise's name."""
    kept = []
    for element in list(article.iter()):
        if not isinstance(element.tag, str) or any(is_answer(above) for above in element.iterancestors()):
            continue
        if has(element, "admonition-title") and has(element.getparent(), "exercise"):
            kept.append(lxml.html.builder.H2(" ".join(element.text_content().split())))
        elif is_answer(element):
            kept.append(element)
    answers = [element for element in kept if is_answer(element)]
    for element in answers:
        element.drop_tree()
        element.tail = None
    return kept if answers else []


def rename(leaf: Leaf, root: Element, html_root: Path, names: dict[str, str], anchors: set[str]) -> None:
    """Put the section's name before the anchors of an article or an answer, and lead links within the book.

    A link to a page that is not printed keeps its words and loses its address, which only this machine knows.
    """
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        if "id" in element.attrib:
            element.set("id", f"{leaf.name}-{element.get('id')}")
        for attribute, value in element.attrib.items():
            if attribute in NAMING:
                element.set(attribute, " ".join(f"{leaf.name}-{name}" for name in value.split()))
            elif "url(#" in value:
                element.set(attribute, value.replace("url(#", f"url(#{leaf.name}-"))
            elif attribute in ADDRESSES and element.tag.rpartition("}")[2] in ("a", "use"):
                lead(element, attribute, html_root, names, anchors)


def lead(element: Element, attribute: str, html_root: Path, names: dict[str, str], anchors: set[str]) -> None:
    """Turn the address of a page of the book into the place where it is printed."""
    parts = urlsplit(element.get(attribute))
    if parts.scheme != "file":
        return
    path = Path(unquote(parts.path))
    name = names.get(path.relative_to(html_root).with_suffix("").as_posix()) if path.is_relative_to(html_root) else None
    if name is None:
        del element.attrib[attribute]
        return
    anchor = f"{name}-{unquote(parts.fragment)}"
    element.set(attribute, f"{SCHEME}{anchor if anchor in anchors else name}")
