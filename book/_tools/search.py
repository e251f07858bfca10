"""What the search finds: every section, term, symbol, name, exercise, claim and work of the book, each a record.

The search of Sphinx knows pages; a chapter is one page, and holds nearly every word. Here a record is a section of a
built page, or what has a place of its own in it, and keeps its text, so that results have excerpts where a browser may
not read other files: from disk. ``book/_search/engine.js`` ranks the records; nothing is fetched. Sphinx's own search,
whose index would lie unused beside this one, is switched off.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import lxml.html
from docutils import nodes
from lxml.etree import _Element as Element
from pylatexenc.latex2text import LatexNodes2Text
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.transforms import SphinxTransform
from sphinx.util.typing import ExtensionMetadata

IDENTIFIER = re.compile(r"\b(?:[A-Za-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w*)\b")
MESSAGE = re.compile(r"^(?:\w+\.)*\w+(?:Error|Exception): .+(?:\n .+)*", re.M)
CHAPTER = re.compile(r"book/(\d\d)-")
NOTATION, CHANGES, BEYOND = "book/notation", "book/changelog", "book/beyond"
FORMULA = LatexNodes2Text(math_mode="text")
OBJECTS = ("function", "class", "method")
HIDDEN = frozenset(
    "headerlink eqno viewcode-link section-number label cell_output sd-dropdown solution tag_solution "
    "ttutor-where".split()
)
"""Classes of what is no text of the book, or folded away because the reader should think first."""
BLOCKS = "p li td th dt dd div section h1 h2 h3 h4 h5 h6 ul ol dl table".split()


class Record(NamedTuple):
    """One thing that can be found; the fields are in the order in which the engine reads them."""

    kind: str
    page: int
    anchor: str
    title: str
    place: str
    names: list[str]
    text: str
    code: str = ""


class RowAddresses(SphinxTransform):
    """Gives each row of some tables an address: a symbol's name in code, or what the first cell says."""

    default_priority = 800

    def apply(self, **kwargs: object) -> None:
        if self.env.docname not in (NOTATION, BEYOND):
            return
        kind = "symbol" if self.env.docname == NOTATION else "absent"
        for row in (row for body in self.document.findall(nodes.tbody) for row in body.findall(nodes.row)):
            cells = [cell.astext() for cell in row.children]
            name = cells[1] or cells[0] if kind == "symbol" and len(cells) > 2 else cells[0]
            row["ids"].append(f"{kind}-{nodes.make_id(name)}")


def clean(article: Element) -> None:
    """Make a page's text ready to be read: nothing hidden, formulas as words, a space between blocks."""
    hidden = [one for one in article.xpath(".//*[@class]") if not HIDDEN.isdisjoint(one.get("class").split())]
    for element in [*hidden, *article.iter("script", "style", "svg", "noscript")]:
        element.drop_tree()
    for formula in article.find_class("math"):
        formula.text = FORMULA.latex_to_text(re.sub(r"^\\[(\[]|\\[)\]]$", "", formula.text_content().strip()))
    for block in article.iter(*BLOCKS):
        block.tail = f" {block.tail or ''}"


def taken(element: Element) -> tuple[str, str]:
    """Return the text of an element and the names in its code, each once, and take the element out of the page.

    Messages of errors that the code raises belong to the text: they are what is searched for.
    """
    code: dict[str, None] = {}
    messages = []
    for block in list(element.iter("pre")):
        code |= dict.fromkeys(IDENTIFIER.findall(block.text_content()))
        messages += MESSAGE.findall(block.text_content())
        block.drop_tree()
    text = " ".join(" ".join([element.text_content(), *messages]).split())
    element.drop_tree()
    return text, " ".join(code)


def collect(page: str, number: int, article: Element) -> list[Record]:
    """Return the records of a page: its sections, and what has a record of its own."""
    clean(article)
    chapter = CHAPTER.match(page)
    title = words_of(article.find(".//h1"))
    top = f"Chapter {int(chapter[1])}, {title}" if chapter else title
    found = []  # what stands inside another is taken out of it first
    for element in reversed(list(article.iter("section", "dl", "dd", "div", "tr"))):
        above = map(heading_of, element.iterancestors("section"))
        headings = [words_of(heading) for heading in above if heading is not None and heading.tag != "h1"]
        place = " › ".join([top, *reversed(headings)])
        if made := record(element, page, place):
            found.append(made._replace(page=number))
    return found[::-1]


def heading_of(section: Element) -> Element | None:
    """Return the heading of a section; a section of an exercise has none."""
    return next((child for child in section if child.tag in ("h1", "h2", "h3", "h4", "h5", "h6")), None)


def words_of(element: Element) -> str:
    """Return the text of an element as one line."""
    return " ".join(element.text_content().split())


def record(element: Element, page: str, place: str) -> Record | None:
    """Return the record of an element that has one, and take it out of the page."""
    anchor, classes = element.get("id") or "", (element.get("class") or "").split()
    if element.tag == "section" and (heading := heading_of(element)) is not None:
        if heading.tag == "h1":
            kind, anchor = "chapter" if CHAPTER.match(page) else "page", ""
        else:
            kind = "change" if page == CHANGES else "section"
        title = words_of(heading)
        heading.drop_tree()
        modules = [anchor.removeprefix("module-")] if anchor.startswith("module-") else []
        return Record(kind, 0, anchor, title, place, modules, *taken(element))
    if element.tag == "dl" and "py" in classes:
        return described(element, classes)
    if element.tag == "dd" and "glossary" in (element.getparent().get("class") or ""):
        terms = []
        while (term := element.getprevious()) is not None and term.tag == "dt":
            terms.insert(0, (term.get("id"), words_of(term)))
            term.drop_tree()
        names = [re.sub(r"\s*\([^()]*\)$", "", words) for _, words in terms]
        return Record("term", 0, terms[0][0], terms[0][1], place, names, *taken(element))
    if "citation" in classes:
        text, _ = taken(element)
        authors, title = authors_and_title(text)
        return Record("work", 0, anchor, title, place, authors, text)
    if anchor.startswith("symbol-"):
        cells = [words_of(cell) for cell in element]
        title = " · ".join(dict.fromkeys(filter(None, cells[:-1][:2])))
        names = [name for cell in cells[:-1] for name in re.split(r",\s+", cell) if name]
        taken(element)
        return Record("symbol", 0, anchor, title, place, names, "; ".join(filter(None, cells)))
    if anchor.startswith("absent-"):
        what, where = (words_of(cell) for cell in element)
        taken(element)
        return Record("absent", 0, anchor, f"The book does not cover {what}", place, what.split(", "), where)
    if "exercise" in classes and anchor:
        heading = words_of(element.find("p"))
        number, title = re.fullmatch(r"(Exercise [\d.]+) \((.*)\)", heading).groups()
        element.find("p").drop_tree()
        return Record("exercise", 0, anchor, f"{number}: {title}", place, [title.partition(" ★")[0]], *taken(element))
    if "ledger-claim" in classes:
        title, (verdict,) = words_of(element[1]), element.find_class("ledger-verdict")
        place = f"Verdict: {words_of(verdict)} · {place}"  # the title is what is said, not what the book says
        element[1].drop_tree()
        return Record("claim", 0, anchor, title, place, [anchor], *taken(element))
    return None


def described(element: Element, classes: list[str]) -> Record | None:
    """Return the record of a function, a class or what belongs to it."""
    signature = element.find("dt")
    full = signature.get("id")
    if not full:
        return None
    names = [full.rpartition(".")[2]]
    names += [above.find("dt").get("id").rpartition(".")[2] for above in element.iterancestors("dl") if has_id(above)]
    title = ".".join(reversed(names))
    arguments = " ".join(name.text_content() for name in signature.find_class("n"))
    kind = next((kind for kind in OBJECTS if kind in classes), "attribute")
    signature.drop_tree()
    text, code = taken(element)
    return Record(kind, 0, full, title, full.removesuffix(f".{title}"), [full, names[0]], text, f"{arguments} {code}")


def has_id(described: Element) -> bool:
    """Whether a list describes something with an address."""
    return described.find("dt") is not None and described.find("dt").get("id") is not None


def authors_and_title(work: str) -> tuple[list[str], str]:
    """Return the last names and the title in an entry of the bibliography.

    >>> authors_and_title("David H. Ackley and Geoffrey E. Hinton. A learning algorithm. Cognitive Science, 1985.")
    (['Ackley', 'Hinton'], 'A learning algorithm')
    """
    authors, title, *_ = re.split(r"(?<!\b[A-Z])\. ", work)
    return [name.split()[-1] for name in re.split(r",? and |, ", authors)], title


def add_words(root: Path, pages: list[str], records: list[Record]) -> None:
    """Add what ``search_words.toml`` says that readers call a page or a section."""
    words = tomllib.loads((root / "book" / "search_words.toml").read_text(encoding="utf-8"))["words"]
    known = {f"{pages[one.page]}#{one.anchor}".removesuffix("#"): one for one in records}
    for address, names in words.items():
        if address not in known:
            raise ValueError(f"book/search_words.toml names {address}, which the book does not have")
        known[address].names.extend(names)


def switch_off(app: Sphinx) -> None:
    """Switch the search of Sphinx off (event ``builder-inited``)."""
    app.builder.search = False


def search_page(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the page of the search (Sphinx event ``html-collect-pages``)."""
    yield "search", {"title": "Search"}, "search.html"


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write records and engine beside the page (Sphinx event ``build-finished``)."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "search"
    shutil.copytree(Path(app.srcdir) / "book" / "_search", folder, dirs_exist_ok=True)
    (folder / "stemmer.js").write_text(SearchEnglish({}).js_stemmer_code, encoding="utf-8")
    pages, records = sorted(app.env.all_docs), []
    for number, page in enumerate(pages):
        text = (Path(app.outdir) / f"{page}.html").read_text(encoding="utf-8")
        article = lxml.html.document_fromstring(text, parser=lxml.html.HTMLParser(huge_tree=True)).find(".//article")
        records += collect(page, number, article)
    add_words(Path(app.srcdir), pages, records)
    data = {"pages": [[page, app.env.titles[page].astext()] for page in pages], "records": records}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (folder / "records.js").write_text(f"const ttutorRecords = {text};\n", encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the search with Sphinx."""
    app.add_transform(RowAddresses)
    app.connect("builder-inited", switch_off)
    app.connect("html-collect-pages", search_page)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
