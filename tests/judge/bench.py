"""What the grader's tests share: assignments, submissions, and answers of the bank that run in a worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ttutor.exercises import Exercise
from ttutor.grading.answers import RemoteAnswer, target_of
from ttutor.grading.bundles import cut, sources_for
from ttutor.grading.judging import inputs_seed
from ttutor.grading.marks import SourceFile, Submission
from ttutor.grading.reading import FileRead, Piece
from ttutor.grading.session import Limits, Session
from ttutor.grading.verdict import Verdict, verdict_on

SECRET = "a secret of the tests"
SEED = inputs_seed(SECRET)
MEMORY = 2 << 30


@dataclass(frozen=True)
class Asked:
    """One exercise and its points."""

    exercise_id: str
    points: float = 10.0

    def case_hidden(self, name: str, hidden: bool) -> bool:
        return hidden


@dataclass(frozen=True)
class Homework:
    """An assignment, as the grader needs it."""

    exercises: tuple[Asked, ...]
    seed: str = SECRET
    seconds: float = 10.0
    memory: int = 2048


def homework(*ids: str, **changes: Any) -> Homework:
    """An assignment of exercises that are worth ten points each."""
    return Homework(tuple(map(Asked, ids)), **changes)


def handed_in(text: str | bytes, name: str = "homework.py", student: str = "ada") -> Submission:
    """A submission of one file."""
    data = text.encode() if isinstance(text, str) else text
    return Submission(student=student, shown=student, files=(SourceFile(name, data),))


def session_of(lane: Any, exercise: Exercise, answers: list[Callable], seconds: float = 10.0) -> Session:
    """A session in which some answers of the bank run, with what they need of their modules."""
    roots = tuple((one.__module__, one.__name__) for one in answers)
    lines = [f"from {_shown(one.__module__)} import {one.__name__} as answer_{n}" for n, one in enumerate(answers)]
    pieces = tuple(Piece("bank.py", line, number) for number, line in enumerate(lines, 1))
    files = [FileRead(pieces=pieces)]
    own = {_shown(name): text for name, text in cut(roots).items()}
    modules = own | _joined(sources_for([exercise]), own)
    return Session(lane, files, modules, Limits(seconds, 600.0, MEMORY))


def _shown(module: str) -> str:
    """Modules of the tests as if they were the course's: a worker gets no others."""
    return module.replace("tests.", "ttutor.of_tests_", 1) if module.startswith("tests.") else module


def _joined(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    """Both, where the same module was cut twice: executing both texts gives both sets of names."""
    return {
        name: text + other.get(name, "").replace("from __future__", "# from __future__") for name, text in one.items()
    }


def remote_verdict(session: Session, exercise: Exercise, number: int) -> Verdict:
    """The verdict on one of the session's answers."""
    return verdict_on(exercise, RemoteAnswer(session, target_of(exercise, 0, f"answer_{number}")), SEED)


def eventually(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether something becomes true in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
