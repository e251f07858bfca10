"""The cells of a chapter that come from the exercises' definitions, so that book and package cannot drift apart.

An exercise of `ttutor.exercises` stands in its chapter as four cells: the task with its hints, the stub to be filled in
with ``check`` below it, the words of the solution, and the solution's code, judged by the same ``check``. They are
written from the definition whenever the notebooks are executed; only the words of the solution are the chapter's own
where the definition has none. A cell says so in its metadata:
``"ttutor": {"exercise": "attention.softmax", "part": "stub"}``. One more cell, the part ``imports``, brings what stubs
and solutions need.

``python -m book._tools.exercise_cells --add attention.softmax --after some-cell book/02-attention.ipynb`` puts a new
one into a chapter.
"""

from __future__ import annotations

import argparse
import copy
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from book._tools.notebook_io import read, to_text
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from ruff import find_ruff_bin

from ttutor.exercises.exercise import Exercise
from ttutor.exercises.registry import exercises, find
from ttutor.exercises.source import imports, solution_source, stub_source

ROOT = Path(__file__).resolve().parents[2]

HINTS = ("what to look at", "how to begin", "nearly there")
CHECK = "from ttutor.exercises import check"


def mark(cell: NotebookNode) -> tuple[str, str]:
    """Return the exercise that a cell belongs to and its part in it; two empty strings for any other cell."""
    entry = cell.metadata.get("ttutor", {})
    return entry.get("exercise", ""), entry.get("part", "")


def slug(exercise: Exercise) -> str:
    """Return the exercise's name as labels and cells write it: ``causal-mask``."""
    return exercise.id.partition(".")[2].replace("_", "-")


def label(exercise: Exercise) -> str:
    """Return the name by which the book refers to an exercise: ``attention-causal-mask``."""
    return f"{exercise.chapter}-{slug(exercise)}"


def fenced(directive: str, body: str) -> str:
    """Return a directive around a text, its fence longer than any in there."""
    longest = max(map(len, re.findall(r"^`{3,}", body, re.MULTILINE)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{directive}\n{body}\n{fence}"


def task(exercise: Exercise) -> str:
    """Return the Markdown of the task and its three hints."""
    title = f"{exercise.title} {'★' * exercise.difficulty} ({exercise.minutes} minutes)"
    parts = [fenced(f"{{exercise}} {title}", f":label: {label(exercise)}\n\n{exercise.statement}")]
    for number, (what, hint) in enumerate(zip(HINTS, exercise.hints, strict=True), start=1):
        parts.append(fenced(f"{{dropdown}} Hint {number}: {what}", hint))
    return "\n\n".join(parts)


def words(exercise: Exercise) -> str:
    """Return the Markdown of what there is to say about the solution."""
    said = exercise.explanation or "The next cell has one, and what `check` says of it."
    return fenced(f"{{solution}} {label(exercise)}", f":class: dropdown\n\n{said}")


def stub(exercise: Exercise) -> str:
    """Return the cell in which a student writes."""
    return judged(exercise, stub_source(exercise, answer_name(exercise)))


def solution(exercise: Exercise) -> str:
    """Return the cell that solves the exercise."""
    return judged(exercise, solution_source(exercise, answer_name(exercise)))


def answer_name(exercise: Exercise) -> str:
    """Return what the answer is called in a chapter: not as the package calls it, which other cells go on using."""
    return f"my_{exercise.name}"


def judged(exercise: Exercise, source: str) -> str:
    """Return an answer's code with the check below it."""
    return formatted(f'{source.rstrip()}\n\n\ncheck("{exercise.id}", {answer_name(exercise)})\n')


@cache
def formatted(code: str) -> str:
    """Return code as wide as a page of the book shows it."""
    return ruff("format", code).rstrip("\n")


def import_cell(exercises: Sequence[Exercise]) -> str:
    """Return the imports that stubs and solutions need, in the order and the width of the book."""
    return formatted(ruff("check", "\n".join([CHECK, *imports(*exercises), ""]), "--select=I", "--fix", "--quiet"))


def ruff(command: str, code: str, *options: str) -> str:
    """Return code as a command of ruff leaves it, by the rules of the book's cells."""
    call = [find_ruff_bin(), command, *options, "--stdin-filename", str(ROOT / "book" / "cell.py"), "-"]
    return subprocess.run(call, input=code, capture_output=True, text=True, encoding="utf-8", check=True).stdout


WRITERS: dict[str, Callable[[Exercise], str]] = {"task": task, "stub": stub, "words": words, "solution": solution}
"""What writes each part of an exercise, in the order in which they stand."""


def synchronise(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook with every cell that has a definition written from it anew."""
    written = copy.deepcopy(notebook)
    shown = [find(mark(cell)[0]) for cell in notebook.cells if mark(cell)[1] == "stub"]
    for cell in written.cells:
        exercise, part = mark(cell)
        if part == "imports":
            cell.source = import_cell(shown)
        elif part in WRITERS and (part != "words" or find(exercise).explanation):
            cell.source = WRITERS[part](find(exercise))
    return written


def drift(notebook: NotebookNode, chapter: str | None) -> list[str]:
    """Return how the exercises of a stored notebook differ from their definitions; an empty list for a good one.

    All exercises of the chapter have to stand there, or none need where the chapter is None.
    """
    parts: dict[str, list[str]] = {}
    for exercise, part in map(mark, notebook.cells):
        if exercise:
            parts.setdefault(exercise, []).append(part)
    found = [
        f"{id_} has the parts {', '.join(has)}; it needs {', '.join(WRITERS)}, in this order"
        for id_, has in parts.items()
        if has != list(WRITERS)
    ]
    found += [
        f"{exercise.id} belongs to this chapter and does not stand in it; put it in with exercise_cells.py --add"
        for exercise in (exercises(chapter) if chapter else ())
        if exercise.id not in parts
    ]
    for stored, written in zip(notebook.cells, synchronise(notebook).cells, strict=True):
        if stored.source != written.source:
            found.append(f"cell {stored.id} differs from the exercise's definition; run make notebooks")
    return found


def cells(exercise: Exercise) -> list[NotebookNode]:
    """Return the four cells of an exercise, for a notebook that does not have them yet."""
    made = []
    for part, write in WRITERS.items():
        new = new_code_cell if part in ("stub", "solution") else new_markdown_cell
        cell = new(write(exercise), metadata={"ttutor": {"exercise": exercise.id, "part": part}})
        cell.id = f"{part}-{slug(exercise)}"
        if part in ("words", "solution"):
            cell.metadata["tags"] = ["solution"] if part == "words" else ["hide-cell", "solution"]
        made.append(cell)
    return made


def add(notebook: NotebookNode, exercise: str, after: str) -> NotebookNode:
    """Return the notebook with an exercise's cells put behind the cell of an id."""
    ids = [cell.id for cell in notebook.cells]
    if after not in ids:
        raise ValueError(f"no cell is called {after!r}; the cells are {', '.join(ids)}")
    if any(mark(cell)[0] == exercise for cell in notebook.cells):
        raise ValueError(f"{exercise} stands in this notebook already")
    grown = copy.deepcopy(notebook)
    place = ids.index(after) + 1
    grown.cells[place:place] = cells(find(exercise))
    return synchronise(grown)


def main(arguments: list[str] | None = None) -> int:
    """Add an exercise to a chapter, or write the cells of those that stand in it anew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--add", metavar="ID", help="the exercise to put in")
    parser.add_argument("--after", metavar="CELL", help="the id of the cell that it follows")
    options = parser.parse_args(arguments)
    if (options.add is None) != (options.after is None):
        parser.error("--add says what to put in and --after where; give both or neither")
    notebook = read(options.notebook.read_text(encoding="utf-8"))
    written = synchronise(notebook) if options.add is None else add(notebook, options.add, options.after)
    options.notebook.write_text(to_text(written), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
