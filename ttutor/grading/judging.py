"""Grading submissions one after the other, in one lane; a run with ``-j N`` has N of them, each in its own process."""

from __future__ import annotations

import time
from dataclasses import replace
from types import TracebackType

import torch

from ttutor.exercises.exercise import Exercise
from ttutor.exercises.registry import find
from ttutor.grading import static
from ttutor.grading.asked import Assigned, ToGrade, inputs_seed
from ttutor.grading.bundles import sources_for
from ttutor.grading.ladder import choose_level, open_lane
from ttutor.grading.marking import Marking
from ttutor.grading.marks import Submission, SubmissionMark
from ttutor.grading.reading import FileRead, read_files
from ttutor.grading.sandbox import Level
from ttutor.grading.session import Limits, Session

__all__ = ["Assigned", "Grader", "ToGrade", "exercises_of", "inputs_seed"]


class Grader:
    """Grades submissions one after the other; a context manager, since it holds processes.

    Args:
        assignment: what was asked and how it is marked.
        sandbox: the level to use, by name; the strongest that works here when left out.
        require_sandbox: refuse levels that do not hide this machine's files from submissions.
        submission_seconds: how long all of one submission may take; when left out, a minute and three calls' time
            for each exercise.

    Raises:
        SandboxError: the level does not work here, or is too weak.
    """

    def __init__(
        self,
        assignment: ToGrade,
        *,
        sandbox: str | None = None,
        require_sandbox: bool = False,
        submission_seconds: float | None = None,
    ) -> None:
        self.assignment, self.seed = assignment, inputs_seed(assignment.seed)
        self.exercises = exercises_of(assignment)
        self.memory = assignment.memory << 20
        self.seconds = submission_seconds or 60 + 3 * assignment.seconds * len(self.exercises)
        self._level = choose_level(sandbox, require_sandbox=require_sandbox)
        self._lane = open_lane(self._level)

    @property
    def level(self) -> str:
        """The sandbox's name."""
        return self._level.name

    @property
    def sandbox(self) -> Level:
        """The sandbox's level."""
        return self._level

    @property
    def worker_user(self) -> int | None:
        """Whom workers become, where the judge is root."""
        return self._lane.user

    def strays(self) -> list[int]:
        """The processes of submissions that are still there although none is being graded; there should be none."""
        return self._lane.strays()

    def __enter__(self) -> Grader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process that it holds."""
        self._lane.close()

    def grade(self, submission: Submission) -> SubmissionMark:
        """Return what a submission is worth; nothing that a submission contains makes it raise."""
        started, threads = time.monotonic(), torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            marking = Marking(self, submission)
            mark = marking.mark()
        finally:
            torch.set_num_threads(threads)
        return SubmissionMark(**mark, seconds=time.monotonic() - started, memory_bytes=marking.memory)

    def worth(self, index: int) -> float:
        """What an exercise is worth in the assignment."""
        points = self.assignment.exercises[index].points
        return float(self.exercises[index].points if points is None else points)

    def read(self, submission: Submission) -> list[FileRead]:
        """Have a submission's files read."""
        wanted = [name for one in self.exercises for name in static.names_of(one)]
        return read_files(self._lane, submission.files, wanted, self.memory)

    def session(self, files: list[FileRead], exercises: list[Exercise], limits: Limits) -> Session:
        """Open a session in which some exercises' answers run."""
        return Session(self._lane, files, sources_for(exercises), limits)


def exercises_of(assignment: ToGrade) -> list[Exercise]:
    """Return the exercises that an assignment asks for, with those of their cases hidden that it hides."""
    return [_as_asked(find(one.exercise_id), one) for one in assignment.exercises]


def _as_asked(exercise: Exercise, worth: Assigned) -> Exercise:
    hidden = [worth.case_hidden(case.name, case.hidden) for case in exercise.cases]
    if hidden == [case.hidden for case in exercise.cases]:
        return exercise
    pairs = zip(exercise.cases, hidden, strict=True)
    return replace(exercise, cases=tuple(replace(case, hidden=is_hidden) for case, is_hidden in pairs))
