"""``ttutor exercises --verify``: whether exercises keep what a student relies on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ttutor.exercises.exercise import Exercise
from ttutor.exercises.judge import judge
from ttutor.exercises.running import expectation, make_inputs, viewed
from ttutor.exercises.student_code import is_puzzle, is_untouched
from ttutor.exercises.values import same

SEEDS = (0, 1, 2)
OTHER_SEEDS = range(10, 15)


def problems_of(exercise: Exercise) -> list[str]:
    """Return what is wrong with an exercise, one sentence each; nothing where it can be set.

    The reference and the solution pass, the untouched stub earns nothing, every mistake is rejected and gets its own
    sentence, and what is right for one seed is wrong for others.
    """
    found = list(lost_functions(exercise))
    for seed in SEEDS:
        found += [*_of_right_answers(exercise, seed), *_of_mistakes(exercise, seed)]
    return [*dict.fromkeys(found), *_of_stub(exercise), *_of_constants(exercise)]


def lost_functions(exercise: Exercise) -> Iterator[str]:
    """Say which function, of those that go with an answer into its worker, cannot be found there by its name.

    They are `observe` and the functions among a case's inputs; all others are called beside the judge alone.
    """
    handed = [("observe", exercise.observe)]
    for case in exercise.cases:
        found = functions_in(make_inputs(exercise, case, SEEDS[0]))
        handed += [(f"with {case.name}: an input", one) for one in found]
    for what, one in handed:
        module, name = getattr(one, "__module__", None), getattr(one, "__name__", None)
        if name is None or getattr(sys.modules.get(module or ""), name, None) is not one:
            yield (
                f"{what} is {name or type(one).__name__}, which cannot be found by a name in its module: write a "
                "function with `def` at the file's top level, since answers run in another process"
            )


def functions_in(value: Any) -> Iterator[Any]:
    """Yield the functions among inputs, those that `partial` binds without what it binds."""
    if isinstance(value, (tuple, list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from functions_in(part)
    elif isinstance(value, partial):
        yield from functions_in((value.func, value.args, value.keywords))
    elif callable(value):
        yield value


def _of_right_answers(exercise: Exercise, seed: int) -> Iterator[str]:
    for what, answer in (("reference", exercise.reference), ("solution", exercise.solution)):
        if answer is not None:
            result = judge(exercise, answer, seed=seed, hidden=True, allow_shortcuts=what == "reference")
            if not result.passed:
                yield f"the {what} does not pass: {result.message}"


def _of_mistakes(exercise: Exercise, seed: int) -> Iterator[str]:
    for mistake in exercise.mistakes:
        for answer in mistake.answers:
            result = judge(exercise, answer, seed=seed, hidden=True, allow_shortcuts=True)
            if result.points >= exercise.points:
                yield f"the mistake {mistake.id} ({answer.__name__}) earns all points"
            elif result.hint_id != mistake.id:
                yield f"the mistake {mistake.id} ({answer.__name__}) gets the hint of {result.hint_id}"


def _of_stub(exercise: Exercise) -> Iterator[str]:
    if not is_untouched(exercise, exercise.stub):
        yield "the stub does not count as untouched"
    if is_puzzle(exercise) and judge(exercise, exercise.stub, hidden=True).passed:
        yield "the stub passes as it is"


def _of_constants(exercise: Exercise) -> Iterator[str]:
    """What a worker sends for one seed must not be right for most others."""
    plain = replace(exercise, view=None, properties=[])
    for case in exercise.cases:
        sent = expectation(plain, case, SEEDS[0])
        right = sum(_passes(exercise, case, sent, seed) for seed in OTHER_SEEDS)
        if 2 * right > len(OTHER_SEEDS):
            yield f"with {case.name}: what is right for one seed is right for {right} of {len(OTHER_SEEDS)} others"


def _passes(exercise: Exercise, case: Any, sent: Any, seed: int) -> bool:
    inputs = make_inputs(exercise, case, seed)
    return same(expectation(exercise, case, seed), viewed(exercise, sent, inputs), exercise.tolerance(case))
