"""What the search finds: every section, term, symbol, name, exercise, claim and work of the book, each a record.

The search of Sphinx knows pages; a chapter is one page, and holds nearly every word. Here a record is a section, or
what has a place of its own in it, and keeps its text, so that results have excerpts where a browser may not read other
files: from disk. ``book/_search/engine.js`` ranks the records; nothing is fetched.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from formula_words import plain_formula
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.util.typing import ExtensionMetadata

IDENTIFIER = re.compile(r"\b(?:[A-Za-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w*)\b")
CHANGES = "book/changelog"
CHAPTER = re.compile(r"\d\d-")
QUIET = nodes.raw | nodes.comment | nodes.image | nodes.substitution_definition | nodes.system_message
NOTATION = "book/notation"
OBJECTS = ("function", "class", "method", "attribute")
SUBTITLES = ("exercise_subtitle", "exercise_title")


@dataclass
class Record:
    """One thing that can be found; the fields are in the order in which the engine reads them."""

    kind: str
    page: int
    anchor: str
    title: str
    place: str
    names: list[str] = field(default_factory=list)
    text: str = ""


def readable(node: nodes.Node) -> str:
    """Return the text of a node as one line, its formulas readable, what a cell printed left out."""
    parts: list[str] = []

    def walk(part: nodes.Node) -> None:
        if isinstance(part, nodes.Text):
            parts.append(part.astext())
        elif isinstance(part, nodes.math | nodes.math_block):
            parts.append(plain_formula(part.astext()))
        elif isinstance(part, nodes.literal_block):
            parts.append(" ".join(dict.fromkeys(IDENTIFIER.findall(part.astext()))))
        elif not isinstance(part, QUIET) and "cell_output" not in part.get("classes", []):
            for child in part.children:
                walk(child)
        if isinstance(part, nodes.TextElement | nodes.literal_block) and not isinstance(part, nodes.Inline):
            parts.append(" ")

    walk(node)
    return " ".join("".join(parts).split())


class Collector:
    """Collects the records of one page from its tree."""

    def __init__(self, page: int, docname: str, title: str, place: str) -> None:
        self.page, self.docname, self.title, self.place = page, docname, title, place
        self.records: list[Record] = []

    def collect(self, doctree: nodes.document) -> list[Record]:
        """Return the records: sections in the order of the page, and what has a record of its own."""
        for section in doctree.children:
            if isinstance(section, nodes.section):
                self._section(section, [])
        return self.records

    def _add(self, kind: str, anchor: str, title: str, place: str, *names: str, text: str = "") -> None:
        self.records.append(Record(kind, self.page, anchor, title, place, list(names), text))

    def _section(self, section: nodes.section, above: list[str]) -> None:
        title = readable(next(iter(section.findall(nodes.title)), nodes.Text("")))
        kind = "section" if above else "chapter" if CHAPTER.search(self.docname) else "page"
        kind = "change" if self.docname == CHANGES and above else kind
        place = " › ".join([self.place, *above[1:]]) if above else self.place
        record = Record(kind, self.page, section["ids"][0] if above else "", title, place)
        self.records.append(record)
        below = [*above, title]
        text = [self._body(child, " › ".join([self.place, *below[1:]])) for child in section.children]
        record.text = " ".join(filter(None, text))
        for child in section.findall(nodes.section, descend=True):
            if child.parent is section:
                self._section(child, below)

    def _body(self, node: nodes.Node, place: str) -> str:
        """Return the text of a part of a section, after taking out what becomes a record of its own."""
        if isinstance(node, nodes.section | nodes.title) or is_spoiler(node):
            return ""
        own = self._own(node)
        if own is not None:
            own(node, place)
            return ""
        if isinstance(node, nodes.container | addnodes.desc_content) or type(node).__name__ == "bibliography":
            if "cell_output" in node.get("classes", []):
                return ""
            return " ".join(filter(None, (self._body(child, place) for child in node.children)))
        return readable(node)

    def _own(self, node: nodes.Node) -> Callable[[nodes.Element, str], None] | None:
        """Return what makes records of a part that has its own, or None."""
        if isinstance(node, addnodes.glossary):
            return self._terms
        if isinstance(node, addnodes.desc):
            return self._object
        if isinstance(node, nodes.citation):
            return self._work
        if isinstance(node, nodes.table) and self.docname == NOTATION:
            return self._symbols
        if type(node).__name__ in ("exercise_node", "exercise_enumerable_node"):
            return self._exercise
        return self._claim if "ledger-claim" in getattr(node, "attributes", {}).get("classes", []) else None

    def _terms(self, glossary: nodes.Element, place: str) -> None:
        for entry in glossary.findall(nodes.definition_list_item):
            terms = list(entry.findall(nodes.term))
            text = readable(next(iter(entry.findall(nodes.definition))))
            names = [without_bracket(term.astext()) for term in terms]
            self._add("term", terms[0]["ids"][0], terms[0].astext(), self.place, *names, text=text)

    def _object(self, described: nodes.Element, place: str) -> None:
        signature = described.next_node(addnodes.desc_signature)
        if signature is None or not signature["ids"]:
            return
        full = signature["ids"][0]
        kind = described["objtype"] if described["objtype"] in OBJECTS else "attribute"
        content = next(child for child in described.children if isinstance(child, addnodes.desc_content))
        arguments = " ".join(name.astext() for name in signature.findall(addnodes.desc_sig_name))
        record = Record(kind, self.page, full, signature["fullname"], full.removesuffix(f".{signature['fullname']}"))
        record.names = [full, full.rpartition(".")[2]]
        self.records.append(record)
        record.text = f"{self._body(content, place)} {arguments}".strip()

    def _work(self, citation: nodes.Element, place: str) -> None:
        text = " ".join(readable(child) for child in citation.children[1:])
        self._add("work", citation["ids"][0], title_of(text), self.place, text=text)

    def _symbols(self, table: nodes.Element, place: str) -> None:
        for row in table.findall(nodes.row):
            if not row["ids"]:
                continue
            cells = [readable(cell) for cell in row.children]
            names = [name for cell in cells[:-1] for name in re.split(r",\s+", cell) if name]
            self._add(
                "symbol", row["ids"][0], " · ".join(filter(None, cells[:2])), place, *names, text="; ".join(cells)
            )

    def _exercise(self, exercise: nodes.Element, place: str) -> None:
        heading, *rest = exercise.children
        text = " ".join(readable(part) for part in rest)
        self._add("exercise", exercise["ids"][0], readable(heading), place, text=text)

    def _claim(self, claim: nodes.Element, place: str) -> None:
        head, statement, *rest = claim.children
        text = f"{readable(head)}: " + " ".join(readable(part) for part in rest)
        self._add("claim", claim["ids"][0], readable(statement), place, claim["ids"][0], text=text)


def without_bracket(term: str) -> str:
    """Return a term without what a bracket at its end adds.

    >>> without_bracket("slice (of a loss)")
    'slice'
    """
    return re.sub(r"\s*\([^()]*\)$", "", term)


def is_spoiler(node: nodes.Node) -> bool:
    """Whether a part is folded away because the reader should think first: a hint, or a solution."""
    attributes = getattr(node, "attributes", {})
    folded = type(node).__name__ in ("solution_node", "dropdown_main")
    return folded or attributes.get("design_component") == "dropdown"


def row_names(cells: list[str]) -> list[str]:
    """Return what a row of the notation's tables is about, by all its names; its last cell says what that is.

    >>> row_names(["Q, K", "q, k", "what heads work on"])
    ['Q', 'K', 'q', 'k']
    """
    return list(dict.fromkeys(name for cell in cells[:-1] for name in re.split(r",\s+", cell) if name))


def name_rows(app: Sphinx, doctree: nodes.document) -> None:
    """Give each row of the notation's tables an address and a place in the index (Sphinx event ``doctree-read``)."""
    if app.env.docname != NOTATION:
        return
    for row in (row for body in doctree.findall(nodes.tbody) for row in body.findall(nodes.row)):
        cells = [readable(cell) for cell in row.children]
        name = cells[1] or cells[0] if len(cells) > 2 else cells[0]
        anchor = f"symbol-{nodes.make_id(name)}"
        row["ids"].append(anchor)
        entries = [("single", name, anchor, "", None) for name in row_names(cells)]
        row.children[0].insert(0, addnodes.index(entries=entries))


def keep(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Collect the records of one page (Sphinx event ``doctree-resolved``)."""
    if app.builder.format != "html":
        return
    found = app.ttutor_found
    title = app.env.titles[docname].astext()
    number = app.env.toc_secnumbers.get(docname, {}).get("")
    place = f"Chapter {number[0]}, {title}" if number else title
    page = len(found["pages"])
    found["pages"].append([docname, title])
    records = Collector(page, docname, title, place).collect(doctree)
    add_words(app, docname, records)
    found["records"] += records


def add_words(app: Sphinx, docname: str, records: list[Record]) -> None:
    """Add what ``search_words.toml`` says that readers call a page or a section.

    Raises:
        ValueError: it names a section that the page does not have.
    """
    for address, names in words(Path(app.srcdir))["words"].items():
        page, _, anchor = address.partition("#")
        if page != docname:
            continue
        record = next((record for record in records if record.anchor == anchor), None)
        if record is None:
            raise ValueError(f"book/search_words.toml names {address}, which the book does not have")
        record.names += names


@cache
def words(root: Path) -> dict[str, Any]:
    """Return what readers call things, and which phrases mean the same."""
    return tomllib.loads((root / "book" / "search_words.toml").read_text(encoding="utf-8"))


def begin(app: Sphinx) -> None:
    """Start with no records, and switch the search of Sphinx off (Sphinx event ``builder-inited``)."""
    app.ttutor_found = {"pages": [], "records": []}
    app.builder.search = False


def search_page(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the page of the search (Sphinx event ``html-collect-pages``)."""
    yield "search", {"title": "Search"}, "search.html"


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write records and engine beside the page (Sphinx event ``build-finished``)."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "search"
    folder.mkdir(exist_ok=True)
    for script in (Path(app.srcdir) / "book" / "_search").glob("*.js"):
        shutil.copyfile(script, folder / script.name)
    (folder / "stemmer.js").write_text(SearchEnglish({}).js_stemmer_code, encoding="utf-8")
    found = app.ttutor_found
    data = {
        "pages": found["pages"],
        "same": words(Path(app.srcdir))["same"],
        "records": [astuple(record) for record in found["records"]],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (folder / "records.js").write_text(f"const ttutorRecords = {text};\n", encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the search with Sphinx."""
    app.connect("builder-inited", begin)
    app.connect("doctree-read", name_rows)
    app.connect("doctree-resolved", keep, priority=400)
    app.connect("html-collect-pages", search_page)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
