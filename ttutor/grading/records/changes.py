"""What has changed between two runs: every mark, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ttutor.grading.records.gradebook import number
from ttutor.grading.records.record import Record, read_record


def read_records(out: Path) -> dict[str, Record]:
    """Return the records of a folder of results, by student.

    Raises:
        DamagedRecord: one of them is none of ours.
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
