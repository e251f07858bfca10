"""The record of each student's marks: one JSON file, written whole or not at all, the same bytes for the same work.

How long things took stands in a file of its own, since that is never the same twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ttutor.grading.late import Lateness
from ttutor.grading.marks import CaseMark, ExerciseMark, State, Submission, SubmissionMark

__all__ = ["SCHEMA", "DamagedRecord", "Record", "key_of", "read_record", "write_record", "write_whole"]

SCHEMA = "ttutor.grading.record/1"
UNSTABLE = ("seconds", "memory_bytes")


class DamagedRecord(ValueError):
    """A record is not one of ours, or of another version; the message says which."""


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
        lines: digests of unusual lines, to find submissions that share many.
        mark: the marks.
        problem: why nothing could be graded, or None.
    """

    key: str
    shown: str
    email: str = ""
    submitted: str | None = None
    late: Lateness | None = None
    files: tuple[tuple[str, int, str], ...] = ()
    lines: tuple[str, ...] = ()
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
    def total(self) -> float | None:
        """All points, less what lateness costs; None where there is no total yet."""
        if self.is_open:
            return None
        return round(self.mark.earned * (1 - (self.late.percent if self.late else 0.0) / 100), 4)


def key_of(submission: Submission, about: Mapping[str, Any]) -> str:
    """Return what stands for a submission's bytes and for all else that its marks depend on.

    Args:
        submission: of which the bytes and names of its files count, not when they came.
        about: assignment, versions, seed and sandbox level, as JSON can write them.
    """
    files = [(file.name, hashlib.sha256(file.data).hexdigest()) for file in submission.files]
    whole = json.dumps([SCHEMA, submission.student, submission.problem, files, about], sort_keys=True, default=str)
    return hashlib.sha256(whole.encode()).hexdigest()


def write_record(path: Path, record: Record) -> None:
    """Write a record, unless the very same one stands there."""
    text = _text(record)
    if not (path.exists() and path.read_bytes() == text.encode()):
        write_whole(path, text)


def write_timing(path: Path, mark: SubmissionMark) -> None:
    """Write how long a submission took, and its exercises."""
    exercises = {one.exercise_id: round(one.seconds, 3) for one in mark.exercises}
    timing = {"seconds": round(mark.seconds, 3), "memory_bytes": mark.memory_bytes, "exercises": exercises}
    write_whole(path, json.dumps(timing, indent=1) + "\n")


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        DamagedRecord: the file is none.
        FileNotFoundError: there is none.
    """
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        if table["schema"] != SCHEMA:
            raise DamagedRecord(f"{path} has the schema {table['schema']!r}; expected {SCHEMA!r}: grade again")
        return _record(table)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, DamagedRecord):
            raise
        raise DamagedRecord(f"{path} is no record of marks ({type(error).__name__}: {error}): grade again") from error


def write_whole(path: Path, text: str) -> None:
    """Put a text in a file's place in one step: who looks sees the old one or the new one, whatever happens."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".partial-{path.name}")
    with unfinished.open("wb") as file:
        file.write(text.encode("utf-8", "backslashreplace"))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def _text(record: Record) -> str:
    """The record as JSON, in plain ASCII, so that no character of a student's can break it."""
    mark = asdict(record.mark)
    exercises = [_without(one) | {"cases": [dict(case) for case in one["cases"]]} for one in mark.pop("exercises")]
    table = {
        "schema": SCHEMA,
        "key": record.key,
        "student": record.student,
        "name": record.shown,
        "email": record.email,
        "submitted": record.submitted,
        "late": None if record.late is None else asdict(record.late),
        "earned": None if record.is_open else round(record.mark.earned, 4),
        "possible": round(record.mark.possible, 4),
        "total": record.total,
        "problem": record.problem,
        "files": [dict(zip(("name", "bytes", "sha256"), file, strict=True)) for file in record.files],
        **{name: value for name, value in _without(mark).items() if name != "student"},
        "exercises": exercises,
        "lines": " ".join(record.lines),
    }
    return json.dumps(table, indent=1, ensure_ascii=True, default=str) + "\n"


def _without(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in UNSTABLE}


def _record(table: Mapping[str, Any]) -> Record:
    mark = SubmissionMark(
        student=table["student"],
        state=State(table["state"]),
        exercises=tuple(_exercise(one) for one in table["exercises"]),
        sandbox=table["sandbox"],
        notes=tuple(table["notes"]),
        versions=dict(table["versions"]),
    )
    return Record(
        key=table["key"],
        shown=table["name"],
        email=table["email"],
        submitted=table["submitted"],
        late=None if table["late"] is None else Lateness(**table["late"]),
        files=tuple((file["name"], file["bytes"], file["sha256"]) for file in table["files"]),
        lines=tuple(table["lines"].split()),
        mark=mark,
        problem=table["problem"],
    )


def _exercise(table: Mapping[str, Any]) -> ExerciseMark:
    cases = tuple(CaseMark(**{**case, "state": State(case["state"])}) for case in table["cases"])
    plain = {name: value for name, value in table.items() if name not in ("cases", "state", "warnings")}
    return ExerciseMark(**plain, state=State(table["state"]), cases=cases, warnings=tuple(table["warnings"]))
