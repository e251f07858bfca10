"""In the reference, under every module: which chapter teaches or uses it, its exercises, and which tests hold it.

Chapter, module and tests of one idea share a stem: ``03-multihead``, ``ttutor.multihead``, ``tests/test_multihead.py``.
A module without a chapter of its own names the chapters whose cells import it. Nothing of this is typed.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import ExtensionMetadata

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # Sphinx looks beside this file only
    sys.path.insert(0, str(ROOT))

from book._tools.address import address, revision  # noqa: E402
from book._tools.stored import chapters  # noqa: E402

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
def used_in(module: str) -> list[Path]:
    """Return the chapters whose cells import a module."""
    return [path for path in chapters() if module in _imports(path)]


@cache
def _imports(path: Path) -> set[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return imported("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))


def held_by(module: str, root: Path) -> list[str]:
    """Return the files of tests that hold a module, or the folder of those of its package.

    >>> held_by("ttutor.multihead", ROOT), held_by("ttutor.training.loss", ROOT)
    (['tests/test_multihead.py'], ['tests/training/test_loss.py'])
    """
    _, room, *rest = module.split(".")
    own = f"tests/{room}/test_{rest[-1]}.py" if rest else f"tests/test_{room}.py"
    near = [own] if (root / own).is_file() else [f"tests/{room}", f"tests/test_{room}.py"]
    return [path for path in near if (root / path).exists()]


class Line:
    """The line under one module."""

    def __init__(self, app: Sphinx, module: str) -> None:
        self.app, self.module = app, module
        self.node = nodes.paragraph(classes=["taught-in"])

    def make(self) -> nodes.paragraph | None:
        """Return the line, or None where there is nothing to say."""
        pages = {path.stem.split("-", 1)[1]: path for path in chapters()}
        stem = stem_of(self.module, list(pages))
        if stem is not None:
            self._taught(pages[stem])
        elif used := used_in(self.module):
            self._used(used)
        if tests := held_by(self.module, ROOT):
            self._say("; tested in " if self.node.children else "Tested in ")
            self._list([self._file(path) for path in tests])
        if not self.node.children:
            return None
        self._say(".")
        return self.node

    def _say(self, text: str) -> None:
        self.node += nodes.Text(text)

    def _list(self, links: list[nodes.Node]) -> None:
        for at, link in enumerate(links):
            if at:
                self._say(" and " if at == len(links) - 1 else ", ")
            self.node += link

    def _link(self, docname: str, anchor: str, text: str) -> nodes.reference:
        return make_refnode(self.app.builder, REFERENCE, docname, anchor, nodes.Text(text), None)

    def _taught(self, chapter: Path) -> None:
        docname = f"book/{chapter.stem}"
        registry = self.app.env.sphinx_exercise_registry.values()
        asked = [entry for entry in registry if entry["docname"] == docname and entry["type"] == "exercise"]
        self._say("Taught in ")
        self.node += self._link(docname, "", f"chapter {int(chapter.name[:2])}")
        if asked:
            self._say(", with ")
            self.node += self._link(docname, EXERCISES, f"{len(asked)} exercises")

    def _used(self, used: list[Path]) -> None:
        self._say("Used in chapters " if len(used) > 1 else "Used in chapter ")
        self._list([self._link(f"book/{path.stem}", "", str(int(path.name[:2]))) for path in used])

    def _file(self, path: str) -> nodes.Node:
        repository, shown = address(), nodes.literal(text=path)
        if repository is None:
            return shown
        kind = "blob" if path.endswith(".py") else "tree"
        return nodes.reference("", "", shown, refuri=f"{repository}/{kind}/{revision()}/{path}")


def add_lines(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the lines into the reference (Sphinx event ``doctree-resolved``)."""
    if docname != REFERENCE:
        return
    for index in list(doctree.findall(addnodes.index)):
        kind, name, *_ = index["entries"][0]
        if kind == "pair" and name.startswith("module; ") and (line := Line(app, name.removeprefix("module; ")).make()):
            index.parent.insert(index.parent.index(index) + 1, line)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the lines with Sphinx."""
    app.connect("doctree-resolved", add_lines, priority=450)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
