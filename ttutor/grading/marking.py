"""Marking submissions: read one, see whether its marks stand already, else have it graded, and write the record.

Several are marked side by side, in a pool of processes that have a grader each.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import platform
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ttutor
from ttutor.errors import FileError, RunError
from ttutor.grading.assignment import Assignment
from ttutor.grading.marks import State, Submission, SubmissionMark, ungraded
from ttutor.grading.record import Record, key_of, read_record, write_record, write_timing
from ttutor.grading.sandbox import Sandbox
from ttutor.grading.submission import FoundSubmission, read_work
from ttutor.grading.worker.confine import die_with_parent

MADE_OF_MARKS = ("by_hand", "deadline", "extensions", "late", "title", "visibility")
"""What an assignment says of marks that are made: to change it makes none anew."""
DIED = "a process of the judge died; grade again, and what is graded stands"


class GraderFailed(RunError):
    """The grader has made a mistake of its own: no mark is written."""


def real_grader(assignment: Assignment, sandbox: Sandbox, own: Path | None) -> Any:
    """Return the grader that runs submissions in workers; only here is loaded what it needs."""
    from ttutor.exercises.registry import add_folder
    from ttutor.grading.grader import Grader

    if own is not None:
        add_folder(own)
    return Grader(assignment, sandbox)


@dataclass(frozen=True)
class Marker:
    """Marks one submission after the other, as a `ttutor.grading.grade_request.GradeRequest` asks for it."""

    assignment: Assignment
    out: Path
    sandbox: Sandbox
    regrade: bool = False
    own: Path | None = None
    make_grader: Callable[[Assignment, Sandbox, Path | None], Any] = real_grader

    def mark(self, handed: FoundSubmission, grader: Any) -> bool:
        """Mark one submission and write its record; return whether there was something to grade.

        Raises:
            GraderFailed: there is no mark to be trusted; nothing was written.
        """
        submission = read_work(handed, self.assignment.files)
        asked = {name: value for name, value in asdict(self.assignment).items() if name not in MADE_OF_MARKS}
        about = {
            "assignment": asked,
            "sandbox": self.sandbox.kind,
            "versions": _versions(),
            "source": _source(self.own),
        }
        key, path = key_of(submission, about), record_path(self.out, handed.student)
        mark = None if self.regrade else _standing(path, key)
        is_new = mark is None
        if mark is None:
            mark = self._graded(submission, grader)
            write_timing(self.out / "timings" / f"{handed.student}.json", mark)
        record = Record(
            key=key,
            shown=handed.shown,
            email=handed.on_roster.email if handed.on_roster is not None else "",
            submitted=handed.submitted,
            late=self.assignment.lateness(handed.student, handed.submitted),
            files=tuple((one.name, len(one.data), hashlib.sha256(one.data).hexdigest()) for one in submission.files),
            mark=mark,
            problem=submission.problem,
        )
        write_record(path, record)
        return is_new and mark.state is not State.MISSING

    def _graded(self, submission: Submission, grader: Any) -> SubmissionMark:
        if submission.problem is not None:
            mark = ungraded(self.assignment, submission.student, State.NOT_GRADABLE, self.sandbox.kind)
        elif not submission.files:
            mark = ungraded(self.assignment, submission.student, State.MISSING, self.sandbox.kind)
        else:
            mark = grader.grade(submission)
            _check(self.assignment, submission, mark)
        more = tuple(note for note in mark.notes if note not in submission.notes)
        return replace(mark, notes=submission.notes + more, versions=_versions())


def mark_side_by_side(
    marker: Marker, students: Sequence[FoundSubmission], jobs: int
) -> Iterator[tuple[str, bool, str]]:
    """Mark submissions, as many at a time as there are jobs.

    Yields:
        In the order in which they end: whose, whether it was graded now, and what went wrong in the grader, or "".
    """
    if min(jobs, len(students)) < 2:
        _open(marker)
        for handed in students:
            yield handed.student, *_mark(handed)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(students)), context, initializer=_open, initargs=(marker,)) as pool:
        tasks = {pool.submit(_mark, handed): handed for handed in students}
        try:
            for task in as_completed(tasks):
                try:
                    yield tasks[task].student, *task.result()
                except BrokenProcessPool:
                    yield tasks[task].student, False, DIED
        finally:
            pool.shutdown(cancel_futures=True)


_marker: Marker  # this process's own, which `_open` makes
_grader: Any


def _open(marker: Marker) -> None:
    """Prepare this process."""
    global _marker, _grader
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which ends its processes
        die_with_parent()
    _marker, _grader = marker, marker.make_grader(marker.assignment, marker.sandbox, marker.own)


def _mark(handed: FoundSubmission) -> tuple[bool, str]:
    try:
        return _marker.mark(handed, _grader), ""
    except GraderFailed as error:
        return False, str(error)
    except FileError:  # the disk is full, or the like: no mistake, and the same for all who follow
        raise
    except Exception:
        return False, traceback.format_exc()


def record_path(out: Path, student: str) -> Path:
    """Where a student's record stands."""
    return out / "records" / f"{student}.json"


def _standing(path: Path, key: str) -> SubmissionMark | None:
    """The marks that stand already for the very same work, or None."""
    try:
        record = read_record(path)
    except (FileNotFoundError, FileError):  # it is made anew
        return None
    return record.mark if record.key == key else None


def _check(assignment: Assignment, submission: Submission, mark: SubmissionMark) -> None:
    """Hold a mark against what every mark must be, before it is written."""
    failed = [f"{one.exercise_id}: {one.message}" for one in mark.exercises if one.state is State.GRADER_ERROR]
    if mark.state is State.GRADER_ERROR or failed:
        raise GraderFailed("\n".join(["the grader reports a mistake of its own", *mark.notes, *failed]))
    asked = [(worth.exercise_id, worth.points) for worth in assignment.exercises]
    came = [(one.exercise_id, one.possible) for one in mark.exercises]
    if mark.student != submission.student or came != asked:
        raise GraderFailed(f"the mark is for {mark.student} {came}; expected {submission.student} {asked}")
    for one in mark.exercises:
        stolen = any(case.earned and case.state is not State.OK for case in one.cases)
        if stolen or not 0 <= one.earned <= one.possible + 1e-9:
            raise GraderFailed(f"{one.exercise_id} earned {one.earned} of {one.possible} in the state {one.state}")


@cache
def _versions() -> dict[str, str]:
    return {"ttutor": ttutor.__version__, "torch": version("torch"), "python": platform.python_version()}


@cache
def _source(own: Path | None) -> str:
    """A digest of this package's code and of one's own exercises: both may change without a new version."""
    digest = hashlib.sha256()
    for root in (Path(ttutor.__file__).parent, *([] if own is None else [own])):
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
