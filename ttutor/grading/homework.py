"""``ttutor homework``: an assignment as a notebook to hand out, from what is installed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ttutor.console import fail, plain_output, say

if TYPE_CHECKING:
    from ttutor.grading.assignment import Assignment


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
    from ttutor.grading.reports.notebook import notebook_of

    return notebook_of(_cells(assignment))


def _cells(assignment: Assignment) -> Iterator[tuple[str, str]]:
    from ttutor.exercises.registry import find
    from ttutor.exercises.source import imports, stub_source

    deadline = assignment.deadline
    due = f" Due {deadline.astimezone(UTC):%Y-%m-%d %H:%M} UTC." if deadline is not None else ""
    exercises = [find(one.exercise_id) for one in assignment.exercises]
    yield "markdown", f"# {assignment.title}\n\n{HELP}{due}"
    yield "code", "\n".join([*imports(*exercises), "from ttutor.exercises import check"])
    for worth, exercise in zip(assignment.exercises, exercises, strict=True):
        name = f"my_{exercise.name}"
        yield "markdown", f"## {exercise.title} ({worth.points:g} points)\n\n{exercise.statement.strip()}"
        yield "code", stub_source(exercise, name).rstrip()
        yield "code", f'check("{exercise.id}", {name})'
    for piece in assignment.by_hand:
        yield "markdown", f"## {piece.exercise_id} ({piece.points:g} points, read by a person)\n\n{piece.asks}".rstrip()
        yield ("code", "# Your code and its picture.") if piece.kind == "plot" else ("markdown", "*Your answer.*")
