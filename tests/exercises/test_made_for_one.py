"""Cases draw what the statement leaves free, so that an answer with a number of its own in it fails."""

from __future__ import annotations

from typing import Any

import pytest

from tests.exercises.made_for_one import KINDS
from ttutor.exercises import Exercise, find
from ttutor.exercises.known import expectations, outcomes_of
from ttutor.exercises.mutation import mutated, read_mutations

pytestmark = pytest.mark.usefixtures("as_readers_run_it")
SEEDS = range(1, 13)
ANSWERS = [(kind, one, text) for kind, texts in KINDS.items() for one, text in texts.items()]


def passes(exercise: Exercise, answer: Any, seed: int) -> bool:
    expected = expectations(exercise, seed, exercise.cases)
    return all(one.right for one in outcomes_of(exercise, answer, expected, seed, exercise.cases))


@pytest.mark.parametrize(("kind", "exercise_id", "text"), ANSWERS, ids=lambda one: one if len(one) < 50 else "")
def test_an_answer_with_a_number_of_its_own_fails_more_often_than_not(kind: str, exercise_id: str, text: str) -> None:
    exercise = find(exercise_id)
    for name, _, (changes,) in read_mutations(text):
        answer = mutated(exercise.solution or exercise.reference, f"made_for_one_{name}", changes)
        right = [seed for seed in SEEDS if passes(exercise, answer, seed)]
        assert len(right) <= len(SEEDS) / 2, f"{name} passes with the seeds {right}: draw {kind} more widely"
