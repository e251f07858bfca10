"""What an attack on the grader is: a submission that wants points, or wants harm, without an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent

from ttutor.grading.marks import SourceFile

__all__ = ["WRONG", "Attack", "python"]

WRONG = """
import torch

def softmax(scores, dim=-1):
    return scores * 0 + 0.5
"""
"""An answer that earns nothing, for attacks that do their harm elsewhere."""


@dataclass(frozen=True)
class Attack:
    """One attack.

    Args:
        name: what to call it.
        says: what it tries, in a few words.
        files: makes what is handed in.
    """

    name: str
    says: str
    files: Callable[[], tuple[SourceFile, ...]]


def python(name: str, says: str, source: str) -> Attack:
    """An attack that is one Python file."""
    data = dedent(source).encode()
    return Attack(name, says, lambda: (SourceFile("homework.py", data),))
