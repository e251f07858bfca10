"""Exercises that teach: one definition gives the stub, the hints, the check, the solution and the test.

>>> from ttutor.exercises import check
>>> print(check("attention.softmax", lambda x, dim=-1: (x - x.max()).exp() / (x - x.max()).exp().sum()).hint_id)
global_sum
"""

from typing import TYPE_CHECKING

from ttutor.names import hand_out

if TYPE_CHECKING:
    from ttutor.exercises.checking import WrongAnswer, check
    from ttutor.exercises.exercise import Case, Exercise, Finding, Mistake, Property, Trial
    from ttutor.exercises.registry import exercises, find
    from ttutor.exercises.result import Result
    from ttutor.exercises.showing import solution

__all__ = [
    "Case",
    "Exercise",
    "Finding",
    "Mistake",
    "Property",
    "Result",
    "Trial",
    "WrongAnswer",
    "check",
    "exercises",
    "find",
    "solution",
]

_MODULE_OF = dict.fromkeys(__all__, "exercise")
_MODULE_OF |= {"WrongAnswer": "checking", "check": "checking", "Result": "result", "solution": "showing"}
_MODULE_OF |= {"exercises": "registry", "find": "registry"}


def __getattr__(name: str) -> object:
    """Load a name when it is first asked for: `ttutor --help` needs this package, and PyTorch takes seconds."""
    return hand_out(__name__, name, _MODULE_OF)
