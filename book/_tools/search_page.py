"""The search page: collects the records of all pages, adds readers' own words, and writes everything beside the page.

Switches the search of Sphinx off, whose index would lie unused beside this one.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, astuple
from functools import cache
from pathlib import Path
from typing import Any

from book._tools.search_records import NOTATION, Collector, Record, readable, row_names
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.transforms import SphinxTransform
from sphinx.util.typing import ExtensionMetadata

ROOT = Path(__file__).resolve().parents[2]


class NameRows(SphinxTransform):
    """Gives each row of the notation's tables an address, and its names a place in the index."""

    default_priority = 800  # before the domains collect what belongs into the index

    def apply(self, **kwargs: object) -> None:
        if self.env.docname != NOTATION:
            return
        for row in (row for body in self.document.findall(nodes.tbody) for row in body.findall(nodes.row)):
            cells = [readable(cell) for cell in row.children]
            anchor = f"symbol-{nodes.make_id(cells[1] or cells[0] if len(cells) > 2 else cells[0])}"
            row["ids"].append(anchor)
            entries = [("single", name, anchor, "", None) for name in row_names(cells)]
            row.children[0].insert(0, addnodes.index(entries=entries))


def keep(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Collect the records of one page (Sphinx event ``doctree-resolved``)."""
    if app.builder.format != "html":
        return
    title = app.env.titles[docname].astext()
    number = app.env.toc_secnumbers.get(docname, {}).get("")
    place = f"Chapter {number[0]}, {title}" if number else title
    numbers = app.env.toc_fignumbers.get(docname, {}).get("exercise", {})
    records = Collector(0, docname, place, numbers).collect(doctree)
    add_words(app, docname, records)
    app.ttutor_found[docname] = {"title": title, "records": [asdict(record) for record in records]}


def add_words(app: Sphinx, docname: str, records: list[Record]) -> None:
    """Add what ``search_words.toml`` says that readers call a page or a section."""
    for address, names in words(Path(app.srcdir)).items():
        page, _, anchor = address.partition("#")
        if page != docname:
            continue
        record = next((record for record in records if record.anchor == anchor), None)
        if record is None:
            raise ValueError(f"book/search_words.toml names {address}, which the book does not have")
        record.names += names


@cache
def words(root: Path) -> dict[str, list[str]]:
    """Return what readers call pages and sections, by their addresses."""
    return tomllib.loads((root / "book" / "search_words.toml").read_text(encoding="utf-8"))["words"]


def found_before(app: Sphinx) -> Path:
    """Return where the records of all pages are kept for the next build, which may write a few pages only."""
    return Path(app.doctreedir) / "search-records.json"


def begin(app: Sphinx) -> None:
    """Start with the records of the last build, and switch the search of Sphinx off (event ``builder-inited``)."""
    path = found_before(app)
    app.ttutor_found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
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
    found = {page: app.ttutor_found[page] for page in sorted(app.env.all_docs)}
    found_before(app).write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    data = {
        "pages": [[page, part["title"]] for page, part in found.items()],
        "records": [
            astuple(Record(**record | {"page": number}))
            for number, part in enumerate(found.values())
            for record in part["records"]
        ],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (folder / "records.js").write_text(f"const ttutorRecords = {text};\n", encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the search with Sphinx."""
    app.connect("builder-inited", begin)
    app.add_transform(NameRows)
    app.connect("doctree-resolved", keep, priority=400)
    app.connect("html-collect-pages", search_page)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
