"""`solution`: what the book shows as the answer to an exercise, for whoever has tried, in a notebook or a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from ttutor.exercises.exercise import Exercise
from ttutor.exercises.order import number
from ttutor.exercises.registry import find
from ttutor.exercises.source import imports, solution_source

__all__ = ["Solution", "solution"]


@dataclass(frozen=True)
class Solution:
    """A solution, which shows itself in a notebook."""

    exercise: Exercise

    @property
    def code(self) -> str:
        """The code, with the imports that it needs."""
        source = solution_source(self.exercise, f"my_{self.exercise.name}")
        return "\n".join([*imports(self.exercise), "", "", source]).strip()

    @property
    def title(self) -> str:
        """Which exercise it solves."""
        return f"A solution of {number(self.exercise.id)} {self.exercise.title}".replace("  ", " ")

    def __str__(self) -> str:
        return "\n\n".join(filter(None, [f"{self.title}:", self.exercise.explanation, self.code]))

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        parts = [f"**{self.title}**", self.exercise.explanation, f"```python\n{self.code}\n```"]
        return "\n\n".join(filter(None, parts))


def solution(exercise_id: str) -> Solution:
    """Return the solution of an exercise, to be looked at.

    Args:
        exercise_id: such as ``attention.softmax``; `ttutor.exercises.exercises` lists them.

    Raises:
        SettingError: there is none of that id; the message names those that come close.

    Example:
        >>> print(solution("attention.softmax").code.splitlines()[-1].strip())
        return powers / powers.sum(dim=dim, keepdim=True)
    """
    return Solution(find(exercise_id))
