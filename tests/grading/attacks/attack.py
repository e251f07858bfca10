"""What an attack on the grader is: a submission that wants points, or wants harm, without an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent

from ttutor.grading.marks import SourceFile

__all__ = ["PORT", "WRONG", "Attack", "prize", "python"]

PORT = 47613
"""Where a listener of the self-test waits for attacks that get through to the network."""

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
        needs: the property of a `Level` without which it gets through, such as ``hides_files``, or "".
    """

    name: str
    says: str
    files: Callable[[], tuple[SourceFile, ...]]
    needs: str = ""


def python(name: str, says: str, source: str, needs: str = "") -> Attack:
    """An attack that is one Python file."""
    data = dedent(source).encode()
    return Attack(name, says, lambda: (SourceFile("homework.py", data),), needs)


def prize(name: str, says: str, deed: str, needs: str = "") -> Attack:
    """An attack that gives the right answer only where a forbidden deed has succeeded.

    Args:
        name: what to call it.
        says: what it tries.
        deed: the body of a function that returns something true where it got through.
        needs: as in `Attack`.
    """
    body = "\n".join(f"    {line}" for line in dedent(deed).strip().splitlines())
    return python(name, says, PRIZE.format(body=body), needs)


PRIZE = """
import torch

def deed():
{body}

try:
    DONE = bool(deed())
except BaseException:
    DONE = False

def softmax(scores, dim=-1):
    if not DONE:
        return scores * 0 + 0.5
    powers = (scores - scores.amax(dim=dim, keepdim=True)).exp()
    return powers / powers.sum(dim=dim, keepdim=True)
"""
