"""Marks by hand: one CSV in the folder of the results, read by each run and never lost by one.

A row gives one student points or a comment for an exercise, or for a piece that only people can mark. Points by hand
take the place of the grader's; records keep what the grader found.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ttutor.grading.assignment import Assignment
from ttutor.grading.marks import ExerciseMark, State, without_points
from ttutor.grading.records.gradebook import as_csv, number
from ttutor.grading.records.record import Record, write_whole

FILE = "by-hand.csv"
COLUMNS = ("student", "exercise", "points", "comment")


class BadMarks(ValueError):
    """The marks by hand cannot be used; the message says where and what was expected."""


@dataclass(frozen=True)
class Given:
    """What somebody gave: points, or None to leave those that stand, and a comment or ""."""

    points: float | None
    comment: str


Marks = dict[tuple[str, str], Given]


def read_by_hand(path: Path, assignment: Assignment) -> Marks:
    """Return what was given by hand, by student and exercise; nothing where there is no file."""
    if not path.exists():
        return {}
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadMarks(f"{path} is not CSV in UTF-8: {error}") from error
    known, found = {one.exercise_id: one.points for one in assignment.columns}, {}
    for line, row in enumerate(rows, 2):
        cells = {name: (row.get(name) or "").strip() for name in COLUMNS}
        key = cells["student"].removeprefix("'"), cells["exercise"]
        if not key[0] or key[1] not in known:
            raise BadMarks(f"{path}, line {line}: expected a student and one of {', '.join(known)}, but {key} came")
        if key in found:
            raise BadMarks(f"{path}, line {line}: {key[0]} has two rows for {key[1]}; keep one")
        found[key] = Given(_points(cells["points"], known[key[1]], f"{path}, line {line}"), cells["comment"])
    return found


def _points(text: str, most: float, where: str) -> float | None:
    try:
        points = float(text.replace(",", ".")) if text else None
    except ValueError:
        points = -1.0
    if points is not None and not 0 <= points <= most:
        raise BadMarks(f"{where}: points must be a number from 0 to {number(most)}, or nothing, but came as {text!r}")
    return points


def with_marks_by_hand(assignment: Assignment, record: Record, marks: Mapping[tuple[str, str], Given]) -> Record:
    """Return a record as people and programs see it: with what was given by hand."""
    waiting = State.MISSING if record.mark.state is State.MISSING else State.NOT_GRADABLE
    pieces = [without_points(one, one.exercise_id, waiting) for one in assignment.by_hand]
    exercises = tuple(
        _marked(one, marks.get((record.student, one.exercise_id))) for one in (*record.mark.exercises, *pieces)
    )
    given = [marks.get((record.student, one.exercise_id)) for one in record.mark.exercises]
    is_read = all(one is not None and one.points is not None for one in given)  # by a person, whole
    state = State.OK if record.mark.state is State.NOT_GRADABLE and is_read else record.mark.state
    return replace(record, mark=replace(record.mark, exercises=exercises, state=state))


def _marked(one: ExerciseMark, given: Given | None) -> ExerciseMark:
    if given is None:
        return one
    message = " ".join(text for text in (one.message, given.comment) if text)
    if given.points is None:
        return replace(one, message=message)
    state = State.OK if given.points >= one.possible else State.WRONG
    cases = () if state is not one.state else one.cases  # what the grader found is not what counts
    return replace(one, state=state, earned=given.points, message=message, cases=cases)


def write_by_hand(
    path: Path, assignment: Assignment, records: Sequence[Record], marks: Mapping[tuple[str, str], Given]
) -> None:
    """Write what was given, and an empty row for each piece that waits for somebody."""
    waiting = {
        (record.student, one.exercise_id): Given(None, "")
        for record in records
        for one in record.mark.exercises
        if one.state is State.NOT_GRADABLE
    }
    rows = waiting | dict(marks)
    if not rows:
        return
    cells = [[*key, number(given.points), given.comment] for key, given in sorted(rows.items())]
    write_whole(path, as_csv([[*COLUMNS], *cells], plain=1))
