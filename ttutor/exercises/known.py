"""What is known about an exercise beforehand: the reference's values and every known mistake's outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.running import Outcome, agree, expectation, outcome, say_the_same


@dataclass(frozen=True, eq=False)
class Known:
    """One wrong answer of an exercise's list, and what comes of it on each case, run when it is first asked for."""

    exercise: Exercise
    hint_id: str
    answer: Callable[..., Any]
    cases: tuple[Case, ...]
    expected: tuple[Any, ...]
    seed: int
    _seen: dict[int, Outcome] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The wrong answer's own name."""
        return self.answer.__name__

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What comes of it on every case."""
        return tuple(self.on(index) for index in range(len(self.cases)))

    def on(self, index: int) -> Outcome:
        """Return what comes of it on one case."""
        if index not in self._seen:
            self._seen[index] = outcome(self.exercise, self.cases[index], self.answer, self.expected[index], self.seed)
        return self._seen[index]

    def is_like(self, came: tuple[Outcome, ...]) -> bool:
        """Return whether an answer's outcomes cannot be told from these on any case.

        Where both raise on every case, nothing but the exceptions' text can tell that it is the same mistake.
        """
        if not all(self._agrees(index, one) for index, one in enumerate(came)):
            return False
        return any(one.error is None for one in came) or all(map(say_the_same, self.outcomes, came))

    def is_nearly_like(self, came: tuple[Outcome, ...]) -> bool:
        """Return whether an answer gives a wrong value of this one's, and differs at most in the exceptions it raises.

        The same mistake raises another exception where another function meets it.
        """
        values = [index for index, one in enumerate(came) if one.error is None]
        raised = [index for index in range(len(came)) if index not in values]
        return (
            bool(raised)
            and any(not came[index].right for index in values)
            and all(self._agrees(index, came[index]) for index in values)
            and all(self.on(index).error is not None for index in raised)
        )

    def _agrees(self, index: int, came: Outcome) -> bool:
        return agree(self.on(index), came, self.exercise.tolerance(self.cases[index]))


def outcomes_of(
    exercise: Exercise,
    answer: Any,
    expected: tuple[Any, ...],
    seed: int,
    cases: tuple[Case, ...],
    forbids: tuple[str, ...] = (),
) -> tuple[Outcome, ...]:
    """Return what comes of an answer on every case, without the forbidden functions."""
    pairs = zip(cases, expected, strict=True)
    return tuple(outcome(exercise, case, answer, value, seed, forbids=forbids) for case, value in pairs)


@lru_cache(maxsize=256)
def expectations(exercise: Exercise, seed: int, cases: tuple[Case, ...]) -> tuple[Any, ...]:
    """Return what the reference gives on every case; kept for the next answer to the same exercise."""
    return tuple(expectation(exercise, case, seed) for case in cases)


@lru_cache(maxsize=256)
def known_mistakes(exercise: Exercise, seed: int, cases: tuple[Case, ...]) -> tuple[Known, ...]:
    """Return every wrong answer of an exercise's list; what they give is kept too."""
    expected = expectations(exercise, seed, cases)
    return tuple(
        Known(exercise, mistake.id, answer, cases, expected, seed)
        for mistake in exercise.mistakes
        for answer in mistake.answers
    )


def fingerprint(mistakes: tuple[Known, ...], came: tuple[Outcome, ...]) -> str | None:
    """Return the hint of the known mistake whose outcomes agree with these on every case, or None."""
    tests = (Known.is_like, Known.is_nearly_like)
    return next((known.hint_id for is_like in tests for known in mistakes if is_like(known, came)), None)


def shown_on(mistakes: tuple[Known, ...], index: int, came: Outcome, rtol: float) -> list[Known]:
    """Return the known wrong answers that give this wrong value on one case, if all deserve the same hint."""
    found = [known for known in mistakes if _shows(known.on(index), came, rtol)]
    return found if len({known.hint_id for known in found}) == 1 else []


def _shows(known: Outcome, came: Outcome, rtol: float) -> bool:
    return known.error is None and not known.right and agree(known, came, rtol)
