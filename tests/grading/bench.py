"""What the grader's tests share: assignments, submissions, and answers of the bank that run in a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ttutor.exercises import Exercise, find
from ttutor.grading.answer import Definition, Facts, Piece
from ttutor.grading.assignment import Assignment, Limits
from ttutor.grading.bundle import cut_answers, sources_for
from ttutor.grading.grader import Verdict, verdict_on
from ttutor.grading.marks import SourceFile, Submission, SubmissionMark
from ttutor.grading.sandbox import Sandbox
from ttutor.grading.self_test import everything
from ttutor.grading.session import RemoteAnswer, Session

SECRET = "a secret of the tests"
SECONDS = 60.0


def homework(*ids: str, **changes: Any) -> Assignment:
    """An assignment of exercises that are worth ten points each."""
    asked = everything(map(find, ids), seed=SECRET, limits=Limits(seconds_per_call=SECONDS))
    worth = tuple(replace(one, points=10.0) for one in asked.exercises)
    return replace(asked, exercises=worth, **changes)


SEED = homework("attention.softmax").inputs_seed


def handed_in(text: str | bytes, name: str = "homework.py", student: str = "ada") -> Submission:
    """A submission of one file."""
    data = text.encode() if isinstance(text, str) else text
    return Submission(student=student, files=(SourceFile(name, data),))


def untimed(mark: SubmissionMark) -> SubmissionMark:
    """A mark without what is never the same twice."""
    exercises = tuple(replace(one, seconds=0.0) for one in mark.exercises)
    return replace(mark, seconds=0.0, cpu_seconds=0.0, memory_bytes=0, exercises=exercises)


class WorkBench(Session):
    """A session in which always the same definitions run."""

    def __init__(self, sandbox: Sandbox, pieces: list[str], modules: dict[str, str], forbids: tuple, **limits: Any):
        super().__init__(sandbox, Limits(**{"seconds_per_call": SECONDS} | limits), 600.0)
        self.pieces = tuple((line, Piece("work.py", piece, line)) for line, piece in enumerate(pieces, 1))
        self.given = {"sources": modules, "forbids": list(forbids)}

    def definition(self, name: str) -> Definition:
        """What is called so."""
        return Definition(0, name, Facts(is_class=False, steps="", methods={}, needs=()), self.pieces)

    def enter(self, exercise: Exercise | None, definition: Definition, *, hidden: bool = False) -> None:
        self.get_ready(("the bench", False), self.given, definition)

    def answer(self, name: str) -> RemoteAnswer:
        """An answer of that name."""
        return RemoteAnswer(self, self.definition(name))


def session_of(sandbox: Sandbox, pieces: list[str], modules: dict[str, str] | None = None, **limits: Any) -> WorkBench:
    """A session in which some definitions run."""
    seconds, forbids = limits.pop("seconds", 600.0), limits.pop("forbids", ())
    modules = sources_for(find("attention.softmax")) if modules is None else modules
    opened = WorkBench(sandbox, pieces, modules, forbids, **limits)
    opened.deadline += seconds - 600.0
    return opened


def session_of_answers(sandbox: Sandbox, exercise: Exercise, answers: list[Callable]) -> WorkBench:
    """A session in which some answers of the bank run, with what they need of their modules."""
    lines = [f"from {_shown(one.__module__)} import {one.__name__} as answer_{n}" for n, one in enumerate(answers)]
    own = {_shown(name): text for name, text in cut_answers(answers).items()}
    return session_of(sandbox, lines, own | _joined(sources_for(exercise), own))


def _shown(module: str) -> str:
    """Modules of the tests as if they were the course's: a worker gets no others."""
    return module.replace("tests.", "ttutor.of_tests_", 1) if module.startswith("tests.") else module


def _joined(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    """Both, where the same module was cut twice: executing both texts gives both sets of names."""
    return {
        name: text + other.get(name, "").replace("from __future__", "# from __future__") for name, text in one.items()
    }


def remote_verdict(session: WorkBench, exercise: Exercise, number: int) -> Verdict:
    """The verdict on one of the session's answers."""
    return verdict_on(exercise, session.answer(f"answer_{number}"), SEED)
