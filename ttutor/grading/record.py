"""The record of each student's marks: one JSON file, written whole or not at all, the same bytes for the same work.

How long things took stands in a file of its own, since that is never the same twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ttutor.files import write_text
from ttutor.grading.assignment import Lateness
from ttutor.grading.marks import State, Submission, SubmissionMark, number
from ttutor.schemas import read_as

UNSTABLE = ("seconds", "cpu_seconds", "memory_bytes")


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is kept of one student.

    Args:
        key: stands for all that the marks depend on; where it is the same they need not be made again.
        shown: the student's name.
        email: or "".
        submitted: when, as an ISO time in UTC, or None.
        late: how late, or None where there is no deadline or no time.
        files: name, size and digest of what was graded, in the order in which it counted.
        mark: the marks.
        problem: why nothing could be graded, or None.
        schema: the version of this form.
    """

    schema: Literal["ttutor.grading.record/3"] = "ttutor.grading.record/3"
    key: str
    shown: str
    email: str = ""
    submitted: str | None = None
    late: Lateness | None = None
    files: tuple[tuple[str, int, str], ...] = ()
    mark: SubmissionMark
    problem: str | None = None

    @property
    def student(self) -> str:
        """The student's id."""
        return self.mark.student

    @property
    def is_open(self) -> bool:
        """Whether a human has to look before there is a total."""
        open_states = (State.NOT_GRADABLE, State.GRADER_ERROR)
        return self.mark.state in open_states or any(one.state in open_states for one in self.mark.exercises)

    @property
    def state(self) -> str:
        """The state as an instructor sees it.

        Where it was graded, ``look`` if something in it is to be looked at, else ``open`` if a part of it waits for a
        person, so that there is no total: where all wait for a mark by hand, the first must not be lost.
        """
        if self.mark.state is not State.OK:
            return self.mark.state.value
        has_strange = any(one.warnings for one in self.mark.exercises)
        return "look" if has_strange else "open" if self.is_open else State.OK.value

    @property
    def total(self) -> float | None:
        """All points, less what lateness costs; None where there is no total yet."""
        if self.is_open:
            return None
        return round(self.mark.earned * (1 - (self.late.percent if self.late else 0.0) / 100), 4)


def key_of(submission: Submission, about: Mapping[str, Any]) -> str:
    """Return what stands for a submission's bytes and for all else that its marks depend on.

    Args:
        submission: of which the bytes and names of its files count.
        about: assignment, versions, seed and sandbox level, as JSON can write them.
    """
    files = [(file.name, hashlib.sha256(file.data).hexdigest()) for file in submission.files]
    whole = json.dumps([submission.student, submission.problem, files, about], sort_keys=True, default=str)
    return hashlib.sha256(whole.encode()).hexdigest()


def write_record(path: Path, record: Record) -> None:
    """Write a record, unless the very same one stands there."""
    table = {"state": record.state, "total": record.total} | asdict(record)
    for one in (table["mark"], *table["mark"]["exercises"]):
        for name in UNSTABLE:
            one.pop(name, None)
    text = json.dumps(table, indent=1, ensure_ascii=False, default=str) + "\n"
    if not (path.exists() and path.read_bytes() == text.encode("utf-8", "replace")):
        write_text(path, text)


def write_timing(path: Path, mark: SubmissionMark) -> None:
    """Write how long a submission took, and its exercises."""
    exercises = {one.exercise_id: round(one.seconds, 3) for one in mark.exercises}
    timing = {
        "seconds": round(mark.seconds, 3),
        "cpu_seconds": round(mark.cpu_seconds, 3),
        "memory_bytes": mark.memory_bytes,
        "exercises": exercises,
    }
    write_text(path, json.dumps(timing, indent=1) + "\n")


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        FileError: the file is not a record.
        FileNotFoundError: no file has this path.
    """
    return read_as(Record, path.read_bytes(), path, "grade again")


def read_records(out: Path) -> dict[str, Record]:
    """Return the records of a folder of results, by student.

    Raises:
        FileError: one of them is none of ours.
    """
    found = (read_record(path) for path in sorted((out / "records").glob("*.json")) if not path.name.startswith("."))
    return {record.student: record for record in found}


def changes(old: Mapping[str, Record], new: Mapping[str, Record]) -> list[str]:
    """Return a line for each mark that is not what it was: student, exercise or total, before and now."""
    lines = []
    for student in sorted({*old, *new}):
        if student not in new:
            lines.append(f"{student}: no longer there (had {_total(old[student])})")
        elif student not in old:
            lines.append(f"{student}: new ({_total(new[student])})")
        else:
            lines += [f"{student}: {line}" for line in _between(old[student], new[student])]
    return lines


def _between(before: Record, now: Record) -> list[str]:
    then, since = _marks(before), _marks(now)
    names = [*since, *(name for name in then if name not in since)]
    pairs = [(name, then.get(name, "not asked"), since.get(name, "not asked")) for name in names]
    pairs.append(("total", _total(before), _total(now)))
    return [f"{name} {one} -> {other}" for name, one, other in pairs if one != other]


def _marks(record: Record) -> dict[str, str]:
    return {
        one.exercise_id: f"{number(one.earned)} of {number(one.possible)} ({one.state.value})"
        for one in record.mark.exercises
    }


def _total(record: Record) -> str:
    return "open" if record.total is None else number(record.total)
