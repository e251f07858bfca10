"""Execute the chapters in place and make what they store the same on every run.

``python -m book._tools.notebooks`` executes every notebook of the book (or those named) and normalises it; a second run
leaves no difference. What is made elsewhere is written first: the cells of an exercise (`exercise_cells`), and the line
that installs the package in Colab (`colab`). ``--check`` executes nothing and says what is wrong with the notebooks as
they are stored.
"""

from __future__ import annotations

import argparse
import base64
import copy
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import oxipng
from book._tools.colab import with_guarded_line
from book._tools.exercise_cells import synchronise
from book._tools.notebook_io import code_cells, notebooks, output_is_ignored, read, tags, to_text, unsupported_reason
from nbclient import NotebookClient
from nbformat import NotebookNode

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
VOLATILE = ("execution", "scrolled", "trusted", "collapsed")
LARGEST_BYTES = 800_000  # 500,000 for a chapter that is rebuilt: the pictures of the others grow by their true colours
COLOUR_TYPE, RGBA = 25, 6
"""Where the header of a PNG says how it stores colours, and what it says in those that matplotlib draws."""
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
"""What Jupyter stores of the kernel's language, less the version of Python, which is another on each machine."""


def source_mark(cell: NotebookNode) -> str:
    """Return a short mark of a cell's source; it tells whether a kept output still belongs to it."""
    return hashlib.sha256(cell.source.encode("utf-8")).hexdigest()[:12]


def execute(notebook: NotebookNode, folder: Path, timeout: int) -> NotebookNode:
    """Return the notebook executed from top to bottom by a fresh kernel, in the folder where it stands."""
    executed = copy.deepcopy(notebook)
    NotebookClient(
        executed,
        timeout=timeout,
        kernel_name=KERNEL["name"],
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute(env=os.environ | {"TTUTOR_PROGRESS": "none"})
    return executed


def keep_ignored_outputs(executed: NotebookNode, stored: NotebookNode) -> None:
    """Put the stored output of uncompared cells back, where it was made by the very source that the cell has now."""
    before = {cell.id: cell for cell in code_cells(stored)}
    for cell in filter(output_is_ignored, code_cells(executed)):
        earlier = before.get(cell.id)
        if earlier is not None and earlier.outputs and earlier.metadata.get("output_of") == source_mark(cell):
            cell.outputs = copy.deepcopy(earlier.outputs)


def small_picture(picture: str) -> str:
    """Return a base64 PNG in fewer bytes, every pixel as it was; one that is no longer RGBA has been through here."""
    data = base64.b64decode(picture)
    return base64.b64encode(oxipng.optimize_from_memory(data)).decode() if data[COLOUR_TYPE] == RGBA else picture


def normalise_output(output: NotebookNode, execution_count: int | None, where: str) -> None:
    """Shrink pictures, drop the view of a live widget (only its static rendering is stored), and set the number."""
    if output.output_type == "execute_result":
        output.execution_count = execution_count
    data = output.get("data", {})
    if "image/png" in data:
        data["image/png"] = small_picture(data["image/png"])
    if WIDGET_VIEW not in data:
        return
    if "text/html" not in data:
        raise ValueError(
            f"{where} shows a widget without a static rendering (text/html), which the built book would leave blank; "
            "show one of ttutor.widgets, or display a picture or text beside the controls and tag the cell to hide them"
        )
    del data[WIDGET_VIEW]


def normalise(notebook: NotebookNode, name: str) -> NotebookNode:
    """Return the notebook with everything gone that would differ in the next run."""
    clean = copy.deepcopy(notebook)
    clean.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": LANGUAGE})
    clean.nbformat, clean.nbformat_minor = 4, 5
    for index, cell in enumerate(clean.cells):
        for key in VOLATILE:
            cell.metadata.pop(key, None)
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            normalise_output(output, cell.execution_count, f"{name}, cell {index} ({cell.id}),")
        cell.metadata.pop("output_of", None)
        if output_is_ignored(cell):
            cell.metadata["output_of"] = source_mark(cell)
    return clean


def refresh(path: Path, *, refresh_ignored: bool = False, timeout: int = 300) -> bool:
    """Synchronise, execute and normalise one notebook in place; return whether the file changed.

    Args:
        path: the notebook.
        refresh_ignored: store the new output of cells whose output nbval does not compare, too.
        timeout: seconds one cell may take.
    """
    before = path.read_text(encoding="utf-8")
    stored = read(before)
    executed = execute(with_guarded_line(synchronise(stored)), path.parent, timeout)
    if not refresh_ignored:
        keep_ignored_outputs(executed, stored)
    after = to_text(normalise(executed, path.name))
    if after != before:
        path.write_text(after, encoding="utf-8", newline="\n")
    return after != before


def before_saving(model: dict[str, Any], path: str, contents_manager: Any, **_: object) -> None:
    """Normalise what JupyterLab is about to save, so that opening and running a chapter changes no file.

    ``make edit`` gives this to the server as its ``pre_save_hook``. Cells that ran count from the top.
    """
    file = Path(contents_manager.root_dir) / path.strip("/")
    if model["type"] != "notebook":
        return
    saved = nbformat.from_dict(model["content"])
    for count, cell in enumerate(code_cells(saved), start=1):
        cell.execution_count = count if cell.execution_count else None
    if file.exists():
        keep_ignored_outputs(saved, read(file.read_text(encoding="utf-8")))
    model["content"] = normalise(saved, file.name)


def output_problems(cell: NotebookNode) -> Iterator[str]:
    """Yield what is wrong with the stored outputs of one code cell."""
    for output in cell.outputs:
        data = output.get("data", {})
        if output.output_type == "error" and "raises-exception" not in tags(cell):
            yield f"stores the error {output.ename}; mend it, or tag the cell raises-exception"
        if output.get("name") == "stderr":
            yield "stores a warning; mend what it warns of"
        if WIDGET_VIEW in data and "text/html" not in data:
            yield "shows a widget without a static rendering (text/html)"
        elif WIDGET_VIEW in data:
            yield "stores the view of a live widget; run make notebooks"
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        if "image/png" in data and not alt.strip():
            yield "has a picture without a description; set metadata mystnb.image.alt"


def cell_problems(cell: NotebookNode, expected_count: int) -> Iterator[str]:
    """Yield what is wrong with one code cell."""
    if not cell.source.strip():
        yield "is empty; remove it"
    elif cell.execution_count != expected_count:
        yield f"has execution count {cell.execution_count}, expected {expected_count}; run make notebooks"
    if cell.source.rstrip().endswith(";"):
        yield "ends with ';', which nbval does not treat as Jupyter does; end a plot with plt.show()"
    if output_is_ignored(cell) and cell.outputs and cell.metadata.get("output_of") != source_mark(cell):
        yield "keeps the output of an earlier version of its code; run make notebooks"
    yield from output_problems(cell)


def problems(notebook: NotebookNode, n_bytes: int) -> list[str]:
    """Return what is wrong with a stored notebook, in words; an empty list for a good one."""
    found = []
    if n_bytes > LARGEST_BYTES:
        found.append(f"holds {n_bytes:,} bytes, more than {LARGEST_BYTES:,}; move long results to experiments/")
    if "widgets" in notebook.metadata:
        found.append("stores the state of live widgets; run make notebooks")
    for count, cell in enumerate(code_cells(notebook), start=1):
        found += [
            f"cell {notebook.cells.index(cell)} ({cell.get('id')}) {words}" for words in cell_problems(cell, count)
        ]
    return found


def check(path: Path) -> list[str]:
    """Return what is wrong with a notebook file, each entry beginning with its name."""
    text = path.read_text(encoding="utf-8")
    found = problems(read(text), len(text.encode("utf-8")))
    ids = [cell.get("id") for cell in json.loads(text)["cells"]]
    if None in ids or len(set(ids)) < len(ids):
        found.append("two cells have the same id, or one has none; run make notebooks")
    return [f"{path.name}: {words}" for words in found]


def main(arguments: list[str] | None = None) -> int:
    """Execute, or check, the notebooks that are named or all of the book."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of the book's when left out")
    parser.add_argument("--check", action="store_true", help="execute nothing; say what is wrong and return 1")
    parser.add_argument("--refresh", action="store_true", help="store new outputs also where nbval compares none")
    parser.add_argument("--timeout", type=int, default=300, metavar="SECONDS", help="for one cell (default 300)")
    options = parser.parse_args(arguments)
    paths = options.notebooks or notebooks()
    if options.check:
        found = [words for path in paths for words in check(path)]
        print("\n".join(found) if found else f"{len(paths)} notebooks are in order.")
        return 1 if found else 0
    os.environ["OMP_NUM_THREADS"] = "1"
    for path in paths:
        if reason := unsupported_reason(path):
            print(reason, flush=True)
            continue
        started = time.monotonic()
        changed = refresh(path, refresh_ignored=options.refresh, timeout=options.timeout)
        print(f"{path.name}: {time.monotonic() - started:.0f} s, {'changed' if changed else 'unchanged'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
