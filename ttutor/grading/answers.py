"""An answer that runs elsewhere, and an exercise that is tried on it as on any other."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ttutor.exercises.exercise import Exercise, Finding, Property, Trial
from ttutor.exercises.running import AnswerRaised
from ttutor.exercises.student_code import cannot_load
from ttutor.grading.channel import Malformed
from ttutor.grading.raised import Trouble, is_from_worker
from ttutor.grading.remote_tensors import other_of, write_back
from ttutor.grading.session import Session, Target

__all__ = ["RemoteAnswer", "cannot_be_called", "remotely", "target_of"]

KINDS = tuple(inspect._ParameterKind)


@dataclass(eq=False)
class RemoteAnswer:
    """A student's function or class, in a worker.

    Args:
        session: where it runs.
        target: which it is.
        trouble: the last trouble of its worker since it was asked for, or None.
        failure: what went wrong in the grader itself while it was called, or None.
    """

    session: Session
    target: Target
    trouble: Trouble | None = None
    failure: Exception | None = None

    def __call__(self, *inputs: Any) -> Any:
        """Run it as the exercise has it watched, and change the inputs as it changed them."""
        try:
            value, after = self.session.observe(self.target, inputs)
        except Trouble as trouble:
            self.trouble = trouble
            raise
        except Exception as error:
            self.failure = None if is_from_worker(error) else error
            raise
        try:
            for one, other in zip(inputs, after, strict=True):
                write_back(one, other)
        except Exception as error:  # whatever it is: the worker sent it
            self.trouble = self.session.crashed()
            raise self.trouble from error
        return value


@lru_cache(maxsize=512)
def remotely(exercise: Exercise) -> Exercise:
    """Return the same exercise, which watches remote answers where they are; one object for each exercise."""
    watch = exercise.observe

    def observe(answer: Callable[..., Any], *inputs: Any) -> Any:
        return answer(*inputs) if isinstance(answer, RemoteAnswer) else watch(answer, *inputs)

    return replace(exercise, observe=observe, properties=tuple(map(_wary, exercise.properties)))


def _wary(prop: Property) -> Property:
    """Return the same property, which does not fall over values that no honest answer gives."""

    def broken(trial: Trial) -> str | Finding | None:
        try:
            return prop.broken(trial)
        except (AnswerRaised, RuntimeError):  # these are understood where it is asked
            raise
        except Exception as error:
            return f"What you give cannot be looked at: {type(error).__name__}."

    return replace(prop, broken=broken)


def target_of(exercise: Exercise, file: int, name: str) -> Target:
    """Return what to ask a worker for to try an answer."""
    watch = None if exercise.calls_directly else (exercise.observe.__module__, exercise.observe.__name__)
    return Target(file, name, watch)


def cannot_be_called(exercise: Exercise, seen: Any, inputs: tuple[Any, ...], names: list[str]) -> str | None:
    """Return why an answer cannot be called, in the words of `ttutor.exercises.student_code.cannot_load`.

    Args:
        exercise: what was asked.
        seen: what the worker says of the answer.
        inputs: those of a case.
        names: what they are called.

    Raises:
        Malformed: the worker says nothing of the kind.
    """
    if not isinstance(seen, dict) or set(seen) != {"type", "class", "callable", "parameters"}:
        raise Malformed("expected what can be seen of an answer")
    if type(seen["type"]) is not str or type(seen["class"]) is not bool or type(seen["callable"]) is not bool:
        raise Malformed("expected what can be seen of an answer")
    if seen["class"] and isinstance(exercise.stub, type):
        return None
    if not seen["callable"] or isinstance(exercise.stub, type):
        return cannot_load(exercise, other_of(seen["type"]), inputs, names)
    return None if seen["parameters"] is None else cannot_load(exercise, _like(seen["parameters"]), inputs, names)


def _like(parameters: Any) -> Callable[..., Any]:
    """Return a function with the same parameters."""

    def stand_in() -> None: ...

    try:
        found = [
            inspect.Parameter(name, KINDS[kind], default=None if has_default is True else inspect.Parameter.empty)
            for name, kind, has_default in parameters
        ]
        stand_in.__signature__ = inspect.Signature(found)
    except (ValueError, TypeError, IndexError) as error:
        raise Malformed("expected the parameters of a function") from error
    return stand_in
