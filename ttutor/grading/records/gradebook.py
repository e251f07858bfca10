"""The gradebook: one row for each student, and forms of it that Canvas and Moodle take."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ttutor.grading.assignment import Assignment
from ttutor.grading.intake.roster import Roster, Student
from ttutor.grading.marks import ExerciseMark, State
from ttutor.grading.records.record import Record

POSSIBLE = "Points possible"
FORMULA = tuple("=+-@|%＝＋－＠")  # some spreadsheets take the wide signs for the others
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
        who = [record.student, record.shown, record.email, record.mark.state.value]
        rows.append([*who, *points, number(record.total), *late, record.submitted or ""])
    return as_csv([header, *rows], plain=3)


def canvas(assignment: Assignment, records: Sequence[tuple[Record, Student | None]]) -> str:
    """Return what Canvas's gradebook imports: its own columns, taken from the roster, and one for the assignment."""
    rows = [[*CANVAS_COLUMNS, assignment.title], ["    Points Possible", "", "", "", "", number(assignment.possible)]]
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


def number(value: int | float | None) -> str:
    """Write points without needless digits, and nothing where there are none.

    >>> number(10.0), number(2.5), number(1 / 3), number(0.0), number(None)
    ('10', '2.5', '0.3333', '0', '')
    """
    return "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")


def plain_cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula, on one line.

    >>> plain_cell("=HYPERLINK(1)"), plain_cell(" +1"), plain_cell("Zoë O'Neil a=b")
    ("'=HYPERLINK(1)", "' +1", "Zoë O'Neil a=b")
    """
    line = "".join(one if one.isprintable() else " " for one in text)
    bare = line.lstrip("\u00a0 \ufeff'\"")
    return f"'{line}" if bare.startswith(FORMULA) else line


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
