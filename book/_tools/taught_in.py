"""In the reference, under every module: the chapter that teaches it, with its exercises, or the chapters that use it.

A chapter and what it teaches share a stem: ``03-multihead`` and ``ttutor.multihead``. A module without a chapter of its
own names the chapters whose cells import it.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from book._tools.notebook_io import pages_of, roads
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import ExtensionMetadata

REFERENCE = "book/api"
EXERCISES = "exercises"
IMPORTED = re.compile(r"^\s*(?:from|import) (ttutor[\w.]*)(?: import (\([^)]*\)|.*))?$", re.MULTILINE)


def stem_of(module: str, stems: list[str]) -> str | None:
    """Return the stem that a module shares with a chapter: that of its room, or in such a room its own.

    >>> stem_of("ttutor.variants.vit", ["variants", "vit"]), stem_of("ttutor.variants.gpt", ["variants", "vit"])
    ('vit', 'variants')
    >>> stem_of("ttutor.widgets.attention", ["attention"])  # an explorer, not what the chapter teaches
    """
    _, room, *rest = module.split(".")
    if room not in stems:
        return None
    return next((part for part in reversed(rest) if part in stems), room)


def imported(source: str) -> set[str]:
    """Return the modules that code imports; each name that it imports from one may be a module, too.

    >>> sorted(imported("from ttutor.training import loss"))
    ['ttutor.training', 'ttutor.training.loss']
    """
    found = set()
    for module, names in IMPORTED.findall(source):
        found |= {module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))}
    return found


@cache
def imports_of(path: Path) -> set[str]:
    """Return the modules that a chapter's cells import."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return imported("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))


def line(app: Sphinx, module: str) -> nodes.paragraph | None:
    """Return the line under a module, or None where no chapter has to do with it."""

    def link(path: Path, text: str, anchor: str = "") -> nodes.reference:
        return make_refnode(app.builder, REFERENCE, f"book/{path.stem}", anchor, nodes.Text(text), None)

    by_stem = {path.stem.split("-", 1)[1]: path for path in roads()}
    stem = stem_of(module, list(by_stem))
    if stem is not None:
        chapter = by_stem[stem]
        registry = app.env.sphinx_exercise_registry.values()
        pages = pages_of(chapter)
        docnames = [f"book/{page.stem}" for page in pages]
        n_exercises = sum(e["docname"] in docnames and e["type"] == "exercise" for e in registry)
        parts = [nodes.Text("Taught in "), link(chapter, f"chapter {int(chapter.name[:2])}")]
        if n_exercises:
            parts += [
                nodes.Text(", with "),
                link(pages[-1], f"{n_exercises} exercises", "" if pages[1:] else EXERCISES),
            ]
    else:
        used = [road for road in roads() if any(module in imports_of(page) for page in pages_of(road))]
        if not used:
            return None
        parts = [nodes.Text("Used in chapters " if len(used) > 1 else "Used in chapter ")]
        for at, path in enumerate(used):
            comma = "" if at == 0 else " and " if at == len(used) - 1 else ", "
            parts += [nodes.Text(comma), link(path, str(int(path.name[:2])))]
    return nodes.paragraph("", "", *parts, nodes.Text("."), classes=["taught-in"])


def add_lines(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the lines into the reference (Sphinx event ``doctree-resolved``)."""
    if docname != REFERENCE:
        return
    for index in list(doctree.findall(addnodes.index)):
        kind, name, *_ = index["entries"][0]
        if kind == "pair" and name.startswith("module; ") and (found := line(app, name.removeprefix("module; "))):
            index.parent.insert(index.parent.index(index) + 1, found)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the lines with Sphinx."""
    app.connect("doctree-resolved", add_lines, priority=450)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
