"""What the grader needs of an assignment: exercises with points, a secret seed, limits."""

from __future__ import annotations

import hashlib
from typing import Protocol, runtime_checkable

__all__ = ["Assigned", "ToGrade", "inputs_seed"]


@runtime_checkable
class Assigned(Protocol):
    """One exercise of an assignment, as the grader needs it: see `ttutor.grading.assignment.Worth`."""

    exercise_id: str
    points: float

    def case_hidden(self, name: str, hidden: bool) -> bool:
        """Return whether a case is hidden from students here, given what the exercise itself says."""
        ...


@runtime_checkable
class ToGrade(Protocol):
    """An assignment, as the grader needs it: see `ttutor.grading.assignment.Assignment`."""

    exercises: tuple[Assigned, ...]
    seed: str
    seconds: float
    memory: int


def inputs_seed(secret: str) -> int:
    """Return the seed of all inputs that belongs to an assignment's secret."""
    return int.from_bytes(hashlib.sha256(f"ttutor grading/{secret}".encode()).digest()[:16], "big")
