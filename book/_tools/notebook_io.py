"""Notebooks as they are stored: reading, writing, and the few questions that every tool asks of a cell."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
SECOND = "-today"
"""How the name of a chapter's second road ends, where it has one."""
BESIDE = (SECOND, "-deeper", "-exercises")
"""How the names of the pages beside a chapter's road end."""
IGNORE_TAG = "nbval-ignore-output"
IGNORE_COMMENT = "# NBVAL_IGNORE_OUTPUT"


OPENS = {"pretrained": ("smollm2", "minilm")}
"""The published models that a notebook opens, which are no part of the project."""


def unsupported_reason(path: Path) -> str | None:
    """Say why a notebook cannot be executed on this machine, or None where it can.

    Where `TTUTOR_REQUIRE` names "pretrained", every notebook has to.
    """
    from ttutor.pretrained.catalogue import PUBLISHED

    lacking = [name for name in OPENS.get(path.stem, ()) if not PUBLISHED[name].folder.is_dir()]
    if not lacking or "pretrained" in os.environ.get("TTUTOR_REQUIRE", "").split(","):
        return None
    return f"{path.name} is skipped: it opens models that are not on this machine; ttutor fetch {' and '.join(lacking)}"


def notebooks() -> list[Path]:
    """Return the notebooks of the book, in order: the chapters, and pages beside them."""
    return sorted((ROOT / "book").glob("*.ipynb"))


def chapters() -> list[Path]:
    """Return the notebooks of the chapters, all their pages: their names begin with their numbers."""
    return [path for path in notebooks() if path.name[:2].isdigit()]


def roads() -> list[Path]:
    """Return the first page of every chapter."""
    return [path for path in chapters() if not path.stem.endswith(BESIDE)]


def second_roads() -> list[Path]:
    """Return the second roads of chapters that have one, held to a road's bounds, with the other pages in common."""
    return [path for path in chapters() if path.stem.endswith(SECOND)]


def pages_of(road: Path) -> list[Path]:
    """Return the pages of a chapter: its road, and those beside it that there are."""
    return [page for part in ("", *BESIDE) if (page := road.with_name(f"{road.stem}{part}.ipynb")).exists()]


def exercised_in(name: str) -> str | None:
    """Return the chapter whose exercises stand on the page of a name, or None where they stand on another.

    >>> exercised_in("02-attention-exercises.ipynb"), exercised_in("02-attention.ipynb")
    ('attention', None)
    """
    stem = name.removesuffix(".ipynb").partition("-")[2]
    if stem.endswith(BESIDE[-1]):
        return stem.removesuffix(BESIDE[-1])
    apart = (ROOT / "book" / name).with_name(f"{name.removesuffix('.ipynb')}{BESIDE[-1]}.ipynb").exists()
    return None if apart or stem.endswith(BESIDE) else stem


def tags(cell: NotebookNode) -> list[str]:
    """Return a cell's tags."""
    return cell.metadata.get("tags", [])


def code_cells(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """Yield the cells that hold code."""
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def output_is_ignored(cell: NotebookNode) -> bool:
    """Return whether nbval leaves this cell's output uncompared: the output may then differ from run to run."""
    return IGNORE_TAG in tags(cell) or IGNORE_COMMENT in cell.source


def read(text: str) -> NotebookNode:
    """Return a notebook from its stored text; a cell without an id of its own gets one from its place.

    nbformat alone would give such a cell a random one, another in each run.
    """
    data = json.loads(text)
    seen: set[str] = set()
    for index, cell in enumerate(data["cells"]):
        if cell.get("id") is None or cell["id"] in seen:
            cell["id"] = f"cell-{index:03d}"
        seen.add(cell["id"])
    data["nbformat_minor"] = max(5, data["nbformat_minor"])
    return nbformat.reads(json.dumps(data), as_version=4)


def to_text(notebook: NotebookNode) -> str:
    """Return the notebook as it is stored."""
    return nbformat.writes(notebook, version=4) + "\n"
