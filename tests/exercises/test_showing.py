"""`solution` shows code that runs and passes, in a notebook and in a terminal."""

from __future__ import annotations

import pytest

from tests.exercises.bank import EXERCISES
from ttutor.exercises import check, find, solution


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_the_code_of_a_solution_stands_alone_and_passes(exercise) -> None:
    names: dict = {}
    exec(solution(exercise.id).code, names)
    assert check(exercise.id, names[f"my_{exercise.name}"]).passed


def test_a_solution_shows_its_number_its_reason_and_its_code() -> None:
    shown = solution("attention.softmax")
    assert str(shown).startswith("A solution of 2.2 A softmax that survives large scores:")
    assert find("attention.softmax").explanation in shown._repr_markdown_()
    assert f"```python\n{shown.code}\n```" in shown._repr_markdown_()
