"""The seed chooses what is expected, so that an answer which was fitted to the inputs of `check` fails at grading."""

from __future__ import annotations

import pytest

from tests.exercises.bank import EXERCISES
from ttutor.exercises import Exercise
from ttutor.exercises.known import expectations
from ttutor.exercises.running import make_inputs
from ttutor.exercises.values import same

SEEDS = range(11, 15)
FACTS = "what is compared are promises that its code keeps on inputs that differ"
ALWAYS_THE_SAME = {
    "attention.weights_by_hand": "it is solved on paper and takes no inputs",
    "encoder.dropout": FACTS,
    "transformer.tied_embeddings": FACTS,
    "training.plan_batches": FACTS,
}
"""Exercises of which the same is expected whatever the seed, and why that is so."""

every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def cases_that_change(exercise: Exercise) -> list[str]:
    """The cases of which another value is expected with another seed."""
    first, *others = (expectations(exercise, seed, exercise.cases) for seed in SEEDS)
    changes = [
        any(not same(value, other[number], exercise.tolerance(case)) for other in others)
        for number, (case, value) in enumerate(zip(exercise.cases, first, strict=True))
    ]
    return [case.name for case, does in zip(exercise.cases, changes, strict=True) if does]


@every_exercise
def test_no_constant_answer_is_right(exercise: Exercise) -> None:
    if exercise.id in ALWAYS_THE_SAME:
        assert cases_that_change(exercise) == [], "it is expected to differ now: take it off the list"
    else:
        assert cases_that_change(exercise) != [], "let a case draw its sizes: see ttutor/exercises/draws.py"


def test_what_is_on_the_list_exists() -> None:
    assert set(ALWAYS_THE_SAME) <= {exercise.id for exercise in EXERCISES}


@pytest.mark.parametrize("exercise_id", [name for name, reason in ALWAYS_THE_SAME.items() if reason == FACTS])
def test_promises_are_watched_on_inputs_of_the_seed(exercise_id: str) -> None:
    (exercise,) = (one for one in EXERCISES if one.id == exercise_id)
    assert not exercise.calls_directly
    first, *others = ([make_inputs(exercise, case, seed) for case in exercise.cases] for seed in SEEDS)
    assert any(not same(first, other, 0.0) for other in others)
