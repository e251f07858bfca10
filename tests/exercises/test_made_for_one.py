"""Cases draw what the statement leaves free, so that an answer with a number of its own in it fails."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from torch import Tensor

from tests.exercises.bank import EXERCISES
from tests.exercises.made_for_one import KINDS
from ttutor.exercises import Exercise, find
from ttutor.exercises.known import expectations, outcomes_of
from ttutor.exercises.mutation import mutated, read_mutations
from ttutor.exercises.running import make_inputs

pytestmark = pytest.mark.usefixtures("as_readers_run_it")
SEEDS = range(1, 13)
FIXED = {
    "encoder.encoder_layer": {"len(norm_1)", "len(attention)", "len(norm_2)", "len(feed_forward)"},  # by the signature
    "transformer.next_merge": {"len(words)", "len(times)"},  # a corpus in which each mistake shows
    "efficient.tell_exact": {"len(suspects)"},  # all that there are
    "vit.class_token": {"1"},
}
"""Sizes that may stay what they are, and why."""


def solution_of(exercise: Exercise) -> Any:
    return exercise.solution or exercise.reference


def sizes(exercise: Exercise, inputs: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """Each size that the signature names, by that name, and each number."""
    for parameter, value in zip(inspect.signature(solution_of(exercise)).parameters.values(), inputs, strict=True):
        if isinstance(value, Tensor):
            axes = getattr(parameter.annotation, "dim_str", "").split()
            if len(axes) == value.ndim and "..." not in axes:
                yield from zip(axes, value.shape, strict=True)
        elif isinstance(value, (list, tuple)):
            yield f"len({parameter.name})", len(value)
        elif isinstance(value, (bool, int, float, str)):
            yield parameter.name, value


@pytest.mark.parametrize(
    "exercise", [one for one in EXERCISES if not isinstance(one.stub, type)], ids=lambda one: one.id
)
def test_every_size_and_every_number_changes(exercise: Exercise) -> None:
    seen = defaultdict(set)
    for case in exercise.cases:
        for seed in SEEDS:
            inputs = make_inputs(exercise, case, seed)
            if len(inputs) == len(inspect.signature(solution_of(exercise)).parameters):
                for name, size in sizes(exercise, inputs):
                    seen[name].add(size)
    never = {name for name, values in seen.items() if len(values) == 1}
    assert never <= FIXED.get(exercise.id, set()), "draw it: ttutor/exercises/draws.py"


ANSWERS = [(kind, one, text) for kind, texts in KINDS.items() for one, text in texts.items()]


def fails(exercise: Exercise, answer: Any, seed: int) -> bool:
    expected = expectations(exercise, seed, exercise.cases)
    return not all(one.right for one in outcomes_of(exercise, answer, expected, seed, exercise.cases))


@pytest.mark.parametrize(("kind", "exercise_id", "text"), ANSWERS, ids=lambda one: one if len(one) < 50 else "")
def test_an_answer_with_a_number_of_its_own_fails_more_often_than_not(kind: str, exercise_id: str, text: str) -> None:
    exercise = find(exercise_id)
    for name, _, (changes,) in read_mutations(text):
        answer = mutated(solution_of(exercise), f"made_for_one_{name}", changes)
        wrong = (seed for seed in SEEDS if fails(exercise, answer, seed))
        enough = list(islice(wrong, len(SEEDS) // 2))  # the seeds after that need not be tried
        assert len(enough) == len(SEEDS) // 2, f"{name} fails with the seeds {enough} alone: draw {kind} more widely"


def test_there_are_ten_answers_or_more_of_each_kind() -> None:
    counts = {kind: sum(len(read_mutations(text)) for text in texts.values()) for kind, texts in KINDS.items()}
    assert min(counts.values()) >= 10, counts
