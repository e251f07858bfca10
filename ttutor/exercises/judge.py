"""The verdict on an answer: run every case, then say the one sentence that helps most.

The order: is it started, can it be called; then every case is run. An answer that calls a forbidden function earns
nothing, and a student is told beside it what else is wrong. Where nothing is wrong the answer passes. Otherwise a known
mistake that gives the same outcomes on every case speaks first. Where none does, the wrong cases are gone through from
plain to special, and of each is told: an exception; a known mistake that gives this very value (perhaps there is more
than one); a wrong type, shape or dtype; inputs that were changed; numbers that are no numbers; what the exercise's
properties see. Only where all that is silent comes how far the result is off.
"""

from __future__ import annotations

from typing import Any

from ttutor.exercises import student_code, wording
from ttutor.exercises.diagnosis import Sitting
from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.forbidden import Shortcut
from ttutor.exercises.known import expectations, fingerprint, known_mistakes, outcomes_of
from ttutor.exercises.result import Result, Tried
from ttutor.exercises.running import input_names, make_inputs

__all__ = ["judge"]


def judge(
    exercise: Exercise, answer: Any, *, seed: int = 0, hidden: bool = False, allow_shortcuts: bool = False
) -> Result:
    """Judge an answer to an exercise.

    Args:
        exercise: what was asked.
        answer: the student's function or class.
        seed: chooses the inputs; every seed is as good as any other.
        hidden: also run the cases that are kept for grading.
        allow_shortcuts: leave it the forbidden functions, as the reference itself.
    """
    cases = tuple(case for case in exercise.cases if hidden or not case.hidden)
    if (why := _not_run(exercise, answer, cases, seed)) is not None:
        return why
    expected = expectations(exercise, seed, cases)
    came = outcomes_of(exercise, answer, expected, seed, cases, () if allow_shortcuts else exercise.forbids)
    if used := [str(one.error) for one in came if isinstance(one.error, Shortcut)]:
        said = wording.shortcut(used[0])
        if not hidden:  # a student learns at once what the shortcut hides; a grader needs one reason
            otherwise = judge(exercise, answer, seed=seed, allow_shortcuts=True)
            said += "" if otherwise.passed else f" What it gives is not right either: {otherwise.message}"
        return _unseen(exercise, cases, "shortcut", said)
    if all(isinstance(one.error, NotImplementedError) for one in came):
        return _not_started(exercise, answer, cases)
    tried = tuple(Tried(case.name, one.right, case.points) for case, one in zip(cases, came, strict=True))
    result = Result.of(exercise, tried)
    if all(one.right for one in came):
        return result.passing(wording.passed(len(tried), result.n_hidden))
    mistakes = known_mistakes(exercise, seed, cases)
    if (hint_id := fingerprint(mistakes, came)) is not None:
        findings = [one.finding for one in came if one.finding is not None]
        return result.failing(hint_id, exercise.known_mistake(hint_id).says, findings[0] if findings else None)
    return result.failing(*Sitting(exercise, answer, seed, cases, expected, mistakes, came).diagnosis())


def _not_run(exercise: Exercise, answer: Any, cases: tuple[Case, ...], seed: int) -> Result | None:
    """The verdict on an answer that need not be run: the stub, and what cannot be called."""
    if student_code.is_untouched(exercise, answer):
        return _not_started(exercise, answer, cases)
    inputs = make_inputs(exercise, cases[0], seed)
    looks = student_code.seen(answer, len(inputs))
    if problem := student_code.cannot_load(exercise, looks, input_names(exercise, len(inputs))):
        return _unseen(exercise, cases, "cannot_load", problem)
    return None


def _not_started(exercise: Exercise, answer: Any, cases: tuple[Case, ...]) -> Result:
    name = getattr(answer, "__name__", exercise.name)
    text = wording.not_started(name, is_puzzle=student_code.is_puzzle(exercise))
    return _unseen(exercise, cases, "not_started", text)


def _unseen(exercise: Exercise, cases: tuple[Case, ...], hint_id: str, message: str) -> Result:
    tried = tuple(Tried(case.name, None, case.points) for case in cases)
    return Result.of(exercise, tried).failing(hint_id, message)
