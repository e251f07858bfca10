"""`ttutor.grading.gradebook`: what a spreadsheet and an LMS read."""

from __future__ import annotations

import csv
import io

import pytest

from tests.grading.made import LATE, MASK, SOFTMAX, asked, marked, recorded
from ttutor.grading.gradebook import canvas, gradebook, lms_of, moodle, with_marks_by_hand
from ttutor.grading.marks import State
from ttutor.grading.roster import Roster, Student

HEADER = ["student", "name", "email", "state", SOFTMAX, MASK, "total", "late_hours", "late_percent", "submitted"]


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_points_possible_come_first_and_every_exercise_has_its_column() -> None:
    came = rows(gradebook(asked(), [recorded("ada", late=LATE), recorded("bo", marked(SOFTMAX, State.WRONG))]))
    assert came == [
        HEADER,
        ["Points possible", "", "", "", "4", "2", "6", "", "", ""],
        ["ada", "Ada", "", "ok", "4", "2", "5.4", "5", "10", ""],
        ["bo", "Bo", "", "ok", "0", "", "0", "", "", ""],
    ]


def test_what_is_open_stays_empty_and_is_no_zero() -> None:
    half = recorded("bo", marked(SOFTMAX, State.NOT_GRADABLE), marked(MASK))
    came = rows(gradebook(asked(), [recorded(state=State.NOT_GRADABLE), half, recorded(state=State.GRADER_ERROR)]))
    assert [row[3:7] for row in came[2:]] == [
        ["not_gradable", "", "", ""],
        ["open", "", "2", ""],
        ["grader_error", "", "", ""],
    ]


def test_what_is_to_be_looked_at_is_not_lost_behind_what_waits_for_a_mark_by_hand() -> None:
    wanted = asked(by_hand={"essay": 10})
    strange = recorded("ada", marked(SOFTMAX, warnings=("hw1.py, line 3: `sys`",)), marked(MASK))
    came = rows(gradebook(wanted, [with_marks_by_hand(wanted, one, {}) for one in (strange, recorded("bo"))]))
    assert [[row[3], *row[6:8]] for row in came[2:]] == [["look", "", ""], ["open", "", ""]]


@pytest.mark.parametrize(
    "name",
    ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "\n=1", "'=1", '"=1', "\u00a0=1", "|cmd", "%0a=1", "＝1"],
)
def test_no_cell_can_start_a_formula(name) -> None:
    row = rows(gradebook(asked(), [recorded(shown=name, email=name)]))[2]
    assert len(row) == len(HEADER)
    for cell in row[:3]:
        assert cell[:1] not in tuple("=+-@|%\t\r\n＝")
        assert cell.startswith("'") or cell == "ada"
    assert row[4:7] == ["4", "2", "6"]


def test_a_title_can_start_no_formula_either() -> None:
    assert rows(canvas(asked(title="=HYPERLINK(1)"), []))[0][-1] == "'=HYPERLINK(1)"


def test_quotes_and_line_breaks_keep_to_their_cell() -> None:
    name = 'A "quoted", name\r\nwith, lines\x00'
    assert rows(gradebook(asked(), [recorded(shown=name)]))[2][1] == 'A "quoted", name  with, lines '


def student(**row: str) -> Student:
    return Student("417", "Ada", "a@x", None, row)


def test_canvas_gets_its_own_columns_back() -> None:
    mine = student(**{"Student": "L, Ada", "ID": "417", "SIS User ID": "s", "SIS Login ID": "al", "Section": "A"})
    assert rows(canvas(asked(), [(recorded(), mine), (recorded("bo", state=State.NOT_GRADABLE), None)])) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Homework 1"],
        ["    Points Possible", "", "", "", "", "6"],
        ["L, Ada", "417", "s", "al", "A", "6"],
        ["Bo", "", "", "", "", ""],
    ]


def test_moodle_gets_what_it_maps_by() -> None:
    mine = student(**{"Identifier": "Participant 417", "ID number": "77"})
    assert rows(moodle(asked(), [(recorded(email="a@x"), mine)])) == [
        ["Identifier", "Full name", "Email address", "ID number", "Homework 1"],
        ["Participant 417", "Ada", "a@x", "77", "6"],
    ]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("student", "name"), ()),
        (("Student", "ID", "Section"), ("canvas",)),
        (("Identifier",), ("moodle",)),
        (("ID", "Section", "Email address"), ("canvas", "moodle")),
    ],
)
def test_only_what_an_lms_can_map_is_written(columns, expected) -> None:
    assert lms_of(Roster((), columns)) == expected
