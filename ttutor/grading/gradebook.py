"""The gradebook: one row for each student, and forms of it that Canvas and Moodle take."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ttutor.errors import FileError
from ttutor.files import write_text
from ttutor.grading.assignment import Assignment
from ttutor.grading.marks import ExerciseMark, State, number, without_points
from ttutor.grading.record import Record
from ttutor.grading.roster import Roster, Student, csv_rows

POSSIBLE = "Points possible"
FORMULA = "-=+@|%＝＋－＠"  # some spreadsheets take the wide signs for the others
AFTER_SEPARATOR = re.compile(rf"(^|[;,\t|])(?=[\u00a0 \ufeff'\"]*[{FORMULA}])")
"""Where a spreadsheet could begin a cell with a formula, whatever it takes for the end of the cell before."""
CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


def gradebook(assignment: Assignment, records: Sequence[Record]) -> str:
    """Return the gradebook as CSV: a row with what each column is worth, then a row for each student.

    Where a human has to look first, cells stay empty: no silent zero.
    """
    ids = [one.exercise_id for one in assignment.columns]
    header = ["student", "name", "email", "state", *ids, "total", "late_hours", "late_percent", "submitted"]
    worth = [number(one.points) for one in assignment.columns]
    rows = [[POSSIBLE, "", "", "", *worth, number(assignment.possible), "", "", ""]]
    for record in records:
        by_id = {one.exercise_id: one for one in record.mark.exercises}
        points = [_points(record, by_id.get(name)) for name in ids]
        late = ["", ""] if record.late is None else [number(record.late.hours), number(record.late.percent)]
        who = [record.student, record.shown, record.email, record.state]
        rows.append([*who, *points, number(record.total), *late, record.submitted or ""])
    return as_csv([header, *rows], plain=3)


def canvas(assignment: Assignment, records: Sequence[tuple[Record, Student | None]]) -> str:
    """Return what Canvas's gradebook imports: its own columns, taken from the roster, and one for the assignment."""
    columns = [name for _, row in records if row is not None for name in row.row]
    own = re.compile(rf"{re.escape(assignment.title)} \(\d+\)")  # an assignment that is there has its number after it
    title = next((name for name in columns if own.fullmatch(name.strip())), assignment.title)
    rows = [[*CANVAS_COLUMNS, title], ["    Points Possible", "", "", "", "", number(assignment.possible)]]
    for record, row in records:
        known = {} if row is None else row.row
        who = [known.get(name, "") for name in CANVAS_COLUMNS]
        rows.append([who[0] or record.shown, *who[1:], number(record.total)])
    return as_csv(rows, plain=6)


def moodle(assignment: Assignment, records: Sequence[tuple[Record, Student | None]]) -> str:
    """Return what Moodle's import of grades maps: e-mail and ID number, taken from the roster, and the total."""
    rows = [["Identifier", "Full name", "Email address", "ID number", assignment.title]]
    for record, row in records:
        known = {} if row is None else row.row
        who = [known.get("Identifier", ""), record.shown, record.email, known.get("ID number", "")]
        rows.append([*who, number(record.total)])
    return as_csv(rows, plain=4)


def lms_of(roster: Roster) -> tuple[str, ...]:
    """Return for which learning platforms a roster has the columns: canvas, moodle, both or none."""
    columns = set(roster.columns)
    canvas_too = ("canvas",) if {"ID", "Section"} <= columns else ()
    return canvas_too + (("moodle",) if columns & {"Identifier", "Email address"} else ())


def plain_cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula, on one line.

    >>> plain_cell("=HYPERLINK(1)"), plain_cell(" +1"), plain_cell("Zoë O'Neil a=b")
    ("'=HYPERLINK(1)", "' +1", "Zoë O'Neil a=b")
    >>> plain_cell("Ada;=1+1")
    "Ada;'=1+1"
    """
    line = "".join(one if one.isprintable() else " " for one in text)
    return AFTER_SEPARATOR.sub(r"\1'", line)


def _points(record: Record, one: ExerciseMark | None) -> str:
    closed = record.mark.state in (State.NOT_GRADABLE, State.GRADER_ERROR)
    if one is None or closed or one.state in (State.NOT_GRADABLE, State.GRADER_ERROR):
        return ""
    return number(one.earned)


def as_csv(rows: list[list[str]], plain: int) -> str:
    """Write rows; the first is a header, and `plain` cells at each row's start hold other people's text."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow([plain_cell(cell) for cell in rows[0]])
    for row in rows[1:]:
        safe = [plain_cell(cell) if cell.strip() != "Points Possible" else cell for cell in row[:plain]]
        writer.writerow([*safe, *row[plain:]])
    return written.getvalue()


FILE = "by-hand.csv"
COLUMNS = ("student", "exercise", "points", "comment")


@dataclass(frozen=True)
class HandMark:
    """What somebody gave: points, or None to leave those that stand, and a comment or ""."""

    points: float | None
    comment: str


Marks = dict[tuple[str, str], HandMark]


def read_by_hand(path: Path, assignment: Assignment) -> Marks:
    """Return what was given by hand, by student and exercise; nothing where there is no file."""
    if not path.exists():
        return {}
    try:
        rows = csv_rows(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path} is not CSV in UTF-8: {error}") from error
    known, found = {one.exercise_id: one.points for one in assignment.columns}, {}
    for line, row in enumerate(rows, 2):
        cells = {name: (row.get(name) or "").strip() for name in COLUMNS}
        key = cells["student"].removeprefix("'"), cells["exercise"]
        if not key[0] or key[1] not in known:
            raise FileError(f"{path}, line {line}: expected a student and one of {', '.join(known)}, but {key} came")
        if key in found:
            raise FileError(f"{path}, line {line}: {key[0]} has two rows for {key[1]}; keep one")
        found[key] = HandMark(_points_given(cells["points"], known[key[1]], f"{path}, line {line}"), cells["comment"])
    return found


def _points_given(text: str, most: float, where: str) -> float | None:
    try:
        points = float(text.replace(",", ".")) if text else None
    except ValueError:
        points = -1.0
    if points is not None and not 0 <= points <= most:
        raise FileError(f"{where}: points must be a number from 0 to {number(most)}, or nothing, but came as {text!r}")
    return points


def with_marks_by_hand(assignment: Assignment, record: Record, marks: Mapping[tuple[str, str], HandMark]) -> Record:
    """Return a record as people and programs see it: with what was given by hand."""
    waiting = State.MISSING if record.mark.state is State.MISSING else State.NOT_GRADABLE
    pieces = [without_points(one, one.title, waiting) for one in assignment.by_hand]
    exercises = tuple(
        _marked(one, marks.get((record.student, one.exercise_id))) for one in (*record.mark.exercises, *pieces)
    )
    given = [marks.get((record.student, one.exercise_id)) for one in record.mark.exercises]
    is_read = all(one is not None and one.points is not None for one in given)  # by a person, whole
    state = State.OK if record.mark.state is State.NOT_GRADABLE and is_read else record.mark.state
    return replace(record, mark=replace(record.mark, exercises=exercises, state=state))


def _marked(one: ExerciseMark, given: HandMark | None) -> ExerciseMark:
    if given is None:
        return one
    message = " ".join(text for text in (one.message, given.comment) if text)
    if given.points is None:
        return replace(one, message=message)
    state = State.OK if given.points >= one.possible else State.WRONG
    cases = () if state is not one.state else one.cases  # what the grader found is not what counts
    return replace(one, state=state, earned=given.points, message=message, cases=cases)


def write_by_hand(
    path: Path, assignment: Assignment, records: Sequence[Record], marks: Mapping[tuple[str, str], HandMark]
) -> None:
    """Write what was given, and an empty row for each piece that waits for somebody."""
    waiting = {
        (record.student, one.exercise_id): HandMark(None, "")
        for record in records
        for one in record.mark.exercises
        if one.state is State.NOT_GRADABLE
    }
    rows = waiting | dict(marks)
    if not rows:
        return
    cells = [[*key, number(given.points), given.comment] for key, given in sorted(rows.items())]
    write_text(path, as_csv([[*COLUMNS], *cells], plain=1))
