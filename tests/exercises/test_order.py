"""The numbers of the exercises in the package are those of the book."""

from __future__ import annotations

import pytest

from book._tools.exercise_cells import mark
from book._tools.myst_to_markdown import directives
from book._tools.notebook_io import chapters, exercised_in, read
from ttutor.exercises import exercises
from ttutor.exercises.exercise import CHAPTERS
from ttutor.exercises.order import ORDER, number

PAGES = [path for path in chapters() if exercised_in(path.name)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_exercises_are_numbered_as_their_chapter_has_them(path) -> None:
    """After moving an exercise, write the new order of its chapter into ttutor/exercises/order.py."""
    stored = read(path.read_text(encoding="utf-8"))
    texts = [cell for cell in stored.cells if cell.cell_type == "markdown"]
    tasks = [cell for cell in texts for directive in directives(cell.source) if directive.name == "exercise"]
    names = [mark(cell)[0].partition(".")[2] or "-" for cell in tasks]
    assert ORDER[exercised_in(path.name)].split() == names


def test_chapters_stand_in_their_order_and_lack_no_number() -> None:
    assert tuple(ORDER) == CHAPTERS
    numbers = [tuple(map(int, number(exercise.id).split("."))) for exercise in exercises()]
    assert numbers == sorted(numbers)
