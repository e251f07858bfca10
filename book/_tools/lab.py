"""A reader's own copy of the notebooks, which `make lab` opens.

``python -m book._tools.lab my-course`` writes the students' edition of every notebook into a folder, with the solutions
of each chapter in ``my-course/solutions``. What the reader wrote there is never overwritten: a second call adds what is
missing, brings up to date what the reader has not changed, and puts what is new beside what he has:
``02-attention (new).ipynb``. How it knows: a copy remembers a mark of what was delivered, and outputs do not count.
A first page, ``00-start.ipynb``, tells the three pages of each chapter apart and says how far the reader has come.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from book._tools.editions import made_of, solutions_only
from book._tools.notebook_io import SECOND, notebooks, read, to_text
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

CHAPTER = re.compile(r"\d\d-[a-z]+")
BESIDE = {"-deeper": "deeper", "-exercises": "exercises"}
"""What a chapter's two other pages are called, in its first page's name and in words."""
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
START = """# Where to begin

These are copies of your own: change what you like, and run `make lab` again for what is new. Begin with chapter 2. \
Read a chapter from top to bottom (Shift+Enter runs a cell), then do its exercises: `check` below each says what is \
right. *Deeper* is for those who want more of one chapter.

| | chapter | | |
|---|---|---|---|
"""
OTHERS = """

[One scroll](minimal.ipynb) holds the whole model, the [gallery](gallery.ipynb) all figures, and \
[a real model](pretrained.ipynb) is opened. Solutions are in `solutions`.

Your points (run this cell again to see them change):
"""


def mark_of(notebook: NotebookNode) -> str:
    """Return a short mark of what is written in a notebook; it is the same whatever was run."""
    cells = [(cell.cell_type, cell.source) for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode("utf-8")).hexdigest()[:12]


def delivered(notebook: NotebookNode) -> str | None:
    """Return the mark of what was delivered, which a copy keeps, or None for a notebook that is not ours."""
    return notebook.metadata.get("ttutor", {}).get("delivered")


def start_page(pages: dict[str, NotebookNode]) -> NotebookNode:
    """Return the page that `make lab` opens: each chapter with its three pages, and the reader's points."""
    rows = []
    for name, page in pages.items():
        stem = name.removesuffix(".ipynb")
        if CHAPTER.fullmatch(stem):
            links = [f"[{word}]({stem}{end}.ipynb)" for end, word in BESIDE.items() if f"{stem}{end}.ipynb" in pages]
            rows.append(f"| {int(stem[:2])} | [{title_of(page)}]({name}) | {' | '.join(links)} |")
            if second := pages.get(f"{stem}{SECOND}.ipynb"):
                rows.append(f"| | [{title_of(second)}]({stem}{SECOND}.ipynb) | | |")
    return new_notebook(
        cells=[
            new_markdown_cell(START + "\n".join(rows) + OTHERS, id="start"),
            new_code_cell("import sys\n\n!{sys.executable} -m ttutor exercises", id="progress"),
        ],
        metadata={"kernelspec": KERNEL, "language_info": dict(next(iter(pages.values())).metadata.language_info)},
    )


def title_of(page: NotebookNode) -> str:
    """Return the first heading of a notebook."""
    heading = re.search(r"^# (.+)$", "\n".join(cell.source for cell in page.cells), re.MULTILINE)
    if heading is None:
        raise ValueError("a notebook needs a heading, but one has none")
    return heading[1]


def places(path: Path) -> Iterator[Path]:
    """Yield where a notebook may go: its own place, then those beside it."""
    yield path
    for number in count(1):
        yield path.with_name(f"{path.stem} (new{'' if number == 1 else f' {number}'}).ipynb")


def bring(notebook: NotebookNode, path: Path) -> Path | None:
    """Write a notebook where the reader has none, or none that he changed, else beside it; return where, if at all."""
    mark = mark_of(notebook)
    for place in places(path):
        if place.exists():
            mine = copy_at(place)
            if delivered(mine) == mark:
                return None
            if delivered(mine) != mark_of(mine):
                continue
        notebook.metadata["ttutor"] = {"delivered": mark}
        notebook.metadata["language_info"]["version"] = platform.python_version()
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(to_text(notebook), encoding="utf-8", newline="\n")
        with NotebookNotary() as notary:  # ours: Jupyter may show its figures before they are run
            notary.sign(read(to_text(notebook)))
        return place
    raise AssertionError("places never end")


def copy_at(path: Path) -> NotebookNode:
    """Return what the reader has."""
    try:
        return read(path.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as a notebook: {error}") from error


def update(folder: Path) -> Iterator[str]:
    """Bring a folder up to date; yield a line for the reader on each notebook that came, the usual ones together."""
    stored = {path.name: read(path.read_text(encoding="utf-8")) for path in notebooks()}
    students = made_of("student")
    made = {folder / name: notebook for name, notebook in {"00-start.ipynb": start_page(students), **students}.items()}
    solutions = {folder / "solutions" / name: solutions_only(notebook, name) for name, notebook in stored.items()}
    brought = {path: bring(notebook, path) for path, notebook in (made | solutions).items() if notebook is not None}
    came = [path for path, place in brought.items() if place == path]
    yield f"{folder} is up to date{f': {len(came)} notebooks were written' if came else ''}"
    for path, place in brought.items():
        if place not in (None, path):
            yield f"{path.name} is new, and you changed yours, which stays as it is. The new one is {place}"


def main(arguments: list[str] | None = None) -> int:
    """Write or update the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("my-course"), help="default my-course")
    folder = parser.parse_args(arguments).folder
    try:
        for line in update(folder):
            print(line)
    except (OSError, ValueError) as error:
        print(f"{error}\nMend or move that file, or name another folder: make COURSE=my-course-2 lab", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
