"""What the tests know of the exercises: every answer with its outcomes.

``python -m tests.exercises.bank attention.softmax`` prints what each case of one exercise kills.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys
from collections.abc import Callable
from functools import cache

import tests.exercises.answers
from ttutor.exercises import Exercise, exercises, find
from ttutor.exercises.known import Known, known_mistakes
from ttutor.exercises.mutation import mutated, read_mutations

EXERCISES = exercises()
RIGHT: dict[str, tuple[Callable, ...]] = {}
STRAY: dict[str, tuple[tuple[Callable, str], ...]] = {}
for module in pkgutil.iter_modules(tests.exercises.answers.__path__):
    answers = importlib.import_module(f"{tests.exercises.answers.__name__}.{module.name}")
    RIGHT |= answers.RIGHT
    for name, text in answers.STRAY.items():
        solution = find(name).solution or find(name).reference
        STRAY[name] = tuple(
            (mutated(solution, f"astray_{hint}", changes), hint) for hint, _, (changes,) in read_mutations(text)
        )


def mistakes(exercise: Exercise, seed: int) -> tuple[Known, ...]:
    """The outcomes of every listed mistake on every case, hidden ones included."""
    return known_mistakes(exercise, seed, exercise.cases)


def kills(exercise: Exercise, seed: int) -> dict[str, frozenset[str]]:
    """For every wrong answer the cases on which it is wrong."""
    names = [case.name for case in exercise.cases]
    return {
        known.name: frozenset(name for name, one in zip(names, known.outcomes, strict=True) if not one.right)
        for known in mistakes(exercise, seed)
    }


def idle_cases(exercise: Exercise, seed: int) -> list[str]:
    """The cases that are the only one to kill no wrong answer."""
    alone = {next(iter(cases)) for cases in kills(exercise, seed).values() if len(cases) == 1}
    return [case.name for case in exercise.cases if case.name not in alone]


@cache
def alike(exercise: Exercise, seed: int) -> list[tuple[str, str]]:
    """The pairs of wrong answers, as ``hint/name``, that cannot be told apart by what comes of them."""
    return [
        (f"{one.hint_id}/{one.name}", f"{other.hint_id}/{other.name}")
        for one, other in itertools.combinations(mistakes(exercise, seed), 2)
        if one.is_like(other.outcomes)
    ]


def main(names: list[str]) -> None:
    for exercise in (one for one in EXERCISES if one.id in names):
        print(exercise.id)
        for name, cases in kills(exercise, 0).items():
            print(f"  {name:35} {' | '.join(sorted(cases))}")
        print(f"  idle: {idle_cases(exercise, 0)}\n  alike: {alike(exercise, 0)}")


if __name__ == "__main__":
    main(sys.argv[1:])
