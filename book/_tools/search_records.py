"""What the search finds: every section, term, symbol, name, exercise, claim and work of the book, each a record.

The search of Sphinx knows pages; a chapter is one page, and holds nearly every word. Here a record is a section, or
what has a place of its own in it, and keeps its text, so that results have excerpts where a browser may not read other
files: from disk. ``book/_search/engine.js`` ranks the records; nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from docutils import nodes
from pylatexenc.latex2text import LatexNodes2Text
from sphinx import addnodes

IDENTIFIER = re.compile(r"\b(?:[A-Za-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w*)\b")
CHANGES = "book/changelog"
CHAPTER = re.compile(r"\d\d-")
QUIET = (
    nodes.FixedTextElement
    | nodes.raw
    | nodes.comment
    | nodes.image
    | nodes.substitution_definition
    | nodes.system_message
)
NOTATION = "book/notation"
FORMULA = LatexNodes2Text(math_mode="text")
OBJECTS = ("function", "class", "method", "attribute")


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
    code: str = ""


def identifiers(*parts: nodes.Node) -> str:
    """Return the names in the code that these parts hold, each once; what a cell printed is left out."""
    found: dict[str, None] = {}

    def walk(node: nodes.Node) -> None:
        if isinstance(node, nodes.math_block):
            return
        if isinstance(node, nodes.FixedTextElement):
            found.update(dict.fromkeys(IDENTIFIER.findall(node.astext())))
        elif not isinstance(node, nodes.Text | nodes.section | addnodes.desc) and not is_output(node):
            for child in node.children:
                walk(child)

    for part in parts:
        walk(part)
    return " ".join(found)


def is_output(node: nodes.Node) -> bool:
    """Whether a part is what a cell printed or drew."""
    return "cell_output" in getattr(node, "attributes", {}).get("classes", [])


def readable(node: nodes.Node) -> str:
    """Return the text of a node as one line, its formulas readable, without code and what it printed."""
    parts: list[str] = []

    def walk(part: nodes.Node) -> None:
        if isinstance(part, nodes.Text):
            parts.append(part.astext())
        elif isinstance(part, nodes.math | nodes.math_block):
            parts.append(FORMULA.latex_to_text(part.astext()))
        elif not isinstance(part, QUIET) and not is_output(part):
            for child in part.children:
                walk(child)
        if isinstance(part, nodes.TextElement) and not isinstance(part, nodes.Inline):
            parts.append(" ")

    walk(node)
    return " ".join("".join(parts).split())


class Collector:
    """Collects the records of one page from its tree."""

    def __init__(self, page: int, docname: str, place: str, numbers: dict[str, tuple[int, ...]]) -> None:
        self.page, self.docname, self.place, self.numbers = page, docname, place, numbers
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
        modules = [name.removeprefix("module-") for name in section["ids"] if name.startswith("module-")]
        record = Record(kind, self.page, section["ids"][0] if above else "", title, place, modules)
        self.records.append(record)
        below = [*above, title]
        text = [self._body(child, " › ".join([self.place, *below[1:]])) for child in section.children]
        record.text = " ".join(filter(None, text))
        record.code = identifiers(*section.children)
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
            if is_output(node):
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
        record.text = self._body(content, place)
        record.code = f"{arguments} {identifiers(*content.children)}".strip()

    def _work(self, citation: nodes.Element, place: str) -> None:
        text = " ".join(readable(child) for child in citation.children[1:])
        authors, title = authors_and_title(text)
        self._add("work", citation["ids"][0], title, self.place, *authors, text=text)

    def _symbols(self, table: nodes.Element, place: str) -> None:
        for row in table.findall(nodes.row):
            if not row["ids"]:
                continue
            cells = [readable(cell) for cell in row.children]
            title = " · ".join(dict.fromkeys(filter(None, cells[:-1][:2])))
            self._add("symbol", row["ids"][0], title, place, *row_names(cells), text="; ".join(filter(None, cells)))

    def _exercise(self, exercise: nodes.Element, place: str) -> None:
        heading, *rest = exercise.children
        text = " ".join(readable(part) for part in rest)
        anchor = exercise["ids"][0]
        number = ".".join(map(str, self.numbers.get(anchor, ())))
        title = re.sub(r"^\s*\((.*)\)\s*$", r"\1", readable(heading))
        self._add("exercise", anchor, f"Exercise {number}: {title}", place, title.partition(" ★")[0], text=text)

    def _claim(self, claim: nodes.Element, place: str) -> None:
        head, statement, *rest = claim.children
        text = f"{readable(head)}: " + " ".join(readable(part) for part in rest)
        self._add("claim", claim["ids"][0], readable(statement), place, claim["ids"][0], text=text)


def authors_and_title(work: str) -> tuple[list[str], str]:
    """Return the last names and the title in an entry of the bibliography.

    >>> authors_and_title("David H. Ackley and Geoffrey E. Hinton. A learning algorithm. Cognitive Science, 1985.")
    (['Ackley', 'Hinton'], 'A learning algorithm')
    """
    authors, title, *_ = re.split(r"(?<!\b[A-Z])\. ", work)
    return [name.split()[-1] for name in re.split(r",? and |, ", authors)], title


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
