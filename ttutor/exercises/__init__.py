"""Exercises that teach: one definition gives the stub, the hints, the check, the solution and the test.

>>> from ttutor.exercises import check
>>> print(check("attention.softmax", lambda x, dim=-1: (x - x.max()).exp() / (x - x.max()).exp().sum()).hint_id)
global_sum
"""

from ttutor.exercises.checking import WrongAnswer, check
from ttutor.exercises.exercise import Case, Exercise, Finding, Mistake, Property, Trial
from ttutor.exercises.registry import exercises, find
from ttutor.exercises.result import Result

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
]
