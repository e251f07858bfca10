"""Marking one submission: read it, see whether its marks stand already, else have it graded, and write the record."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import ttutor
from ttutor.grading.assignment import Assignment, Worth
from ttutor.grading.intake.submissions import Handed, read_work
from ttutor.grading.marks import ExerciseMark, State, Submission, SubmissionMark
from ttutor.grading.records.record import DamagedRecord, Record, key_of, read_record, write_record, write_timing
from ttutor.grading.reports.similar import unusual_lines
from ttutor.grading.sandbox.choose import BUBBLEWRAP

__all__ = ["GraderFailed", "Grading", "Marker", "record_path", "ungraded"]


MADE_OF_MARKS = ("by_hand", "deadline", "extensions", "late", "results", "title")
"""What an assignment says of marks that are made: to change it makes none anew."""
OWN_MISTAKE = "the grader reports a mistake of its own"


class GraderFailed(RuntimeError):
    """The grader has made a mistake of its own: no mark is written."""


@runtime_checkable
class Grading(Protocol):
    """What marks submissions: `ttutor.grading.judging.grader.Grader`, or a stand-in."""

    level: str

    def grade(self, submission: Submission) -> SubmissionMark:
        """Return what a submission is worth."""
        ...


@dataclass(frozen=True)
class Marker:
    """Marks one submission after the other.

    Args:
        assignment: what was asked.
        out: the folder of the results.
        sandbox: how submissions are shut in; marks are made anew where that has changed.
        regrade: mark again what is marked already.
    """

    assignment: Assignment
    out: Path
    sandbox: str = BUBBLEWRAP
    regrade: bool = False

    def mark(self, handed: Handed, grader: Grading) -> bool:
        """Mark one submission and write its record; return whether it had to be graded.

        Raises:
            GraderFailed: there is no mark to be trusted; nothing was written.
        """
        submission = read_work(handed, self.assignment.files)
        key = key_of(submission, self._about(self.sandbox))
        path = record_path(self.out, handed.student)
        mark = None if self.regrade else _standing(path, key)
        is_new = mark is None
        if mark is None:
            mark = self._graded(submission, grader)
        write_record(path, self._record(handed, submission, key, mark))
        if is_new:
            write_timing(self.out / "timings" / f"{handed.student}.json", mark)
        return is_new

    def _about(self, level: str) -> dict[str, Any]:
        """All that marks depend on beside the submission."""
        asked = asdict(self.assignment)
        for name in (
            "by_hand",
            "deadline",
            "extensions",
            "late",
            "results",
            "title",
        ):  # what is done with marks, not how they are made
            del asked[name]
        return {"assignment": asked, "sandbox": level, "versions": _versions(), "source": _source()}

    def _graded(self, submission: Submission, grader: Grading) -> SubmissionMark:
        if submission.problem is not None:
            mark = ungraded(self.assignment, submission.student, State.NOT_GRADABLE, grader.level)
        elif not submission.files:
            mark = ungraded(self.assignment, submission.student, State.MISSING, grader.level)
        else:
            mark = grader.grade(submission)
            _check(self.assignment, submission, mark)
        more = tuple(note for note in mark.notes if note not in submission.notes)
        return replace(mark, notes=submission.notes + more, versions=_versions() | mark.versions)

    def _record(self, handed: Handed, submission: Submission, key: str, mark: SubmissionMark) -> Record:
        files = tuple((one.name, len(one.data), hashlib.sha256(one.data).hexdigest()) for one in submission.files)
        return Record(
            key=key,
            shown=handed.shown,
            email=handed.on_roster.email if handed.on_roster is not None else "",
            submitted=submission.submitted,
            late=self.assignment.lateness(handed.student, submission.submitted),
            files=files,
            lines=unusual_lines(submission),
            mark=mark,
            problem=submission.problem,
        )


def record_path(out: Path, student: str) -> Path:
    """Where a student's record stands."""
    return out / "records" / f"{student}.json"


def ungraded(assignment: Assignment, student: str, state: State, level: str) -> SubmissionMark:
    """Return the mark of what was not graded: every exercise in that state, and no points."""
    exercises = tuple(_nothing(worth, state) for worth in assignment.exercises)
    return SubmissionMark(student=student, state=state, exercises=exercises, sandbox=level)


def _nothing(worth: Worth, state: State) -> ExerciseMark:
    from ttutor.exercises.registry import find

    title = find(worth.exercise_id).title
    return ExerciseMark(exercise_id=worth.exercise_id, title=title, state=state, earned=0.0, possible=worth.points)


def _standing(path: Path, key: str) -> SubmissionMark | None:
    """The marks that stand already for the very same work, or None."""
    try:
        record = read_record(path)
    except (FileNotFoundError, DamagedRecord):  # it is made anew
        return None
    return record.mark if record.key == key else None


def _check(assignment: Assignment, submission: Submission, mark: SubmissionMark) -> None:
    """Hold a mark against what every mark must be, before it is written."""
    if mark.state is State.GRADER_ERROR:
        found = [f"{one.exercise_id}: {one.message}" for one in mark.exercises if one.state is State.GRADER_ERROR]
        raise GraderFailed("\n".join([*mark.notes, *found]) or OWN_MISTAKE)
    asked = [(worth.exercise_id, worth.points) for worth in assignment.exercises]
    came = [(one.exercise_id, one.possible) for one in mark.exercises]
    if mark.student != submission.student or came != asked:
        raise GraderFailed(f"the mark is for {mark.student} {came}; expected {submission.student} {asked}")
    for one in mark.exercises:
        if one.state is State.GRADER_ERROR:
            raise GraderFailed("\n".join([*mark.notes, f"{one.exercise_id}: {one.message or OWN_MISTAKE}"]))
        if not 0 <= one.earned <= one.possible + 1e-9 or any(
            case.earned and case.state is not State.OK for case in one.cases
        ):
            raise GraderFailed(
                f"{one.exercise_id} earned {one.earned} of {one.possible} in the state {one.state.value}"
            )


@cache
def _versions() -> dict[str, str]:
    return {"ttutor": ttutor.__version__, "torch": version("torch"), "python": platform.python_version()}


@cache
def _source() -> str:
    """A digest of this package's code: exercises and grader may change without a new version."""
    root = Path(ttutor.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
