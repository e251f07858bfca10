"""`check`: is my answer right and, if not, why? For notebooks, and for whoever prefers a terminal."""

from __future__ import annotations

import traceback
from typing import Any

from ttutor.exercises.judge import judge
from ttutor.exercises.registry import UnknownExercise, find
from ttutor.exercises.result import Result

__all__ = ["WrongAnswer", "check"]


class WrongAnswer(AssertionError):
    """An answer did not pass and `check` was asked to be strict; the message is the verdict."""


def check(
    exercise_id: str, answer: Any = None, *, hint: int = 0, strict: bool = False, seed: int = 0, hidden: bool = False
) -> Result:
    """Check an answer to an exercise and say what is wrong with it.

    The answer runs in this process, on small inputs of which it gets copies; the random state is put back afterwards.
    Nothing is raised unless ``strict`` is set, whatever the answer does: a notebook goes on.

    Args:
        exercise_id: such as ``attention.softmax``; `ttutor.exercises.exercises` lists them.
        answer: your function or class, itself: ``softmax``, not ``softmax(...)``.
        hint: show the exercise's first 1, 2 or 3 hints below the verdict.
        strict: raise `WrongAnswer` where the answer does not pass.
        seed: choose other inputs.
        hidden: also run what is kept for grading.

    Returns:
        The verdict, which shows itself in a notebook. ``passed``, ``points``, ``hint_id`` and ``message`` are for
        programs.

    Raises:
        WrongAnswer: only with ``strict``.

    Example:
        >>> check("attention.softmax", lambda x, dim=-1: x.exp() / x.exp().sum(dim, keepdim=True)).hint_id
        'unstable'
    """
    try:
        exercise = find(exercise_id)
        result = judge(exercise, answer, seed=seed, hidden=hidden)
        result = result.with_hints(exercise.hints[: max(0, hint)])
    except UnknownExercise as error:
        result = _no_verdict(exercise_id, "unknown_exercise", f"{str(error)[0].upper()}{str(error)[1:]}")
    except Exception as error:  # a mistake of ours must not stop a student's notebook; it is shown, not hidden
        place = "".join(traceback.format_tb(error.__traceback__, limit=-1)).strip()
        message = f"The check itself failed, which is our mistake: {type(error).__name__}: {error}\n{place}"
        result = _no_verdict(exercise_id, "check_failed", f"{message}\nPlease report it.")
    if strict and not result.passed:
        raise WrongAnswer(str(result))
    return result


def _no_verdict(exercise_id: Any, hint_id: str, message: str) -> Result:
    return Result(
        exercise_id=str(exercise_id),
        title="No verdict",
        passed=False,
        points=0,
        points_possible=0,
        hint_id=hint_id,
        message=message,
    )
