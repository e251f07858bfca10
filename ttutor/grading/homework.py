"""``ttutor homework``: an assignment as a notebook to hand out, from what is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ttutor.console import fail, plain_output, say

if TYPE_CHECKING:
    from ttutor.grading.assignment import Assignment, ByHand

__all__ = ["homework_notebook", "write_homework"]

HELP = (
    "Write your answers where the stubs stand, and run the cell below each: it says what is right and what is not. "
    "Some cases are kept for grading."
)


def write_homework(
    assignment: Annotated[Path, typer.Argument(help="What is asked, as TOML.", metavar="hw1.toml")],
    out: Annotated[Path, typer.Option(help="The notebook to write.")] = Path("homework.ipynb"),
    own: Annotated[
        Path | None, typer.Option("--exercises", help="A folder of exercises of your own.", metavar="my_course/")
    ] = None,
) -> None:
    """Write a homework notebook: statements, stubs, checks, and cells for what people mark."""
    from ttutor.exercises.registry import BadFolder, add_folder
    from ttutor.grading.assignment import BadAssignment, read_assignment
    from ttutor.grading.records.record import write_whole

    with plain_output():
        try:
            if own is not None:
                add_folder(own)
            asked = read_assignment(assignment)
        except (BadAssignment, BadFolder) as error:
            fail(str(error))
        if out.exists():
            fail(f"{out} exists; remove it or choose another --out")
        write_whole(out, homework_notebook(asked))
        say(f"Written to {out}: {len(asked.exercises)} exercises, {len(asked.by_hand)} pieces to be marked by hand.")


def homework_notebook(assignment: Assignment) -> str:
    """Return an assignment as a notebook; nothing secret stands in it."""
    from ttutor.exercises.registry import find
    from ttutor.exercises.source import imports

    exercises = [find(one.exercise_id) for one in assignment.exercises]
    due = f" Due {assignment.deadline.astimezone(UTC):%Y-%m-%d %H:%M} UTC." if assignment.deadline is not None else ""
    cells = [_text(f"# {assignment.title}\n\n{HELP}{due}")]
    cells.append(_code("\n".join([*imports(*exercises), "from ttutor.exercises import check"])))
    for worth, exercise in zip(assignment.exercises, exercises, strict=True):
        cells += _exercise(exercise, worth.points)
    for piece in assignment.by_hand:
        cells += _piece(piece)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    table = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def _exercise(exercise: Any, points: float) -> Iterator[dict[str, Any]]:
    from ttutor.exercises.source import stub_source

    name = f"my_{exercise.name}"
    yield _text(f"## {exercise.title} ({points:g} points)\n\n{exercise.statement.strip()}")
    yield _code(stub_source(exercise, name).rstrip())
    yield _code(f'check("{exercise.id}", {name})')


def _piece(piece: ByHand) -> Iterator[dict[str, Any]]:
    yield _text(f"## {piece.exercise_id} ({piece.points:g} points, read by a person)\n\n{piece.asks}".rstrip())
    yield _code("# Your code and its picture.") if piece.kind == "plot" else _text("*Your answer.*")


def _text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "", "metadata": {}, "source": source}


def _code(source: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "",
        "metadata": {},
        "outputs": [],
        "source": source,
    }
