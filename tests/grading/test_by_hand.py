"""Marks by hand: they go into a run and come out of it, and a second run loses none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.grading.made import MASK, RIGHT, SOFTMAX, asked, put
from tests.grading.test_run import rows_of, run
from ttutor.errors import FileError
from ttutor.grading.gradebook import FILE
from ttutor.grading.roster import read_roster

ASKED = asked(by_hand={"essay": 10})


@pytest.fixture
def folder(tmp_path):
    """A class of two, one of which a person has to look at."""
    return put(tmp_path / "in", {"ada.py": RIGHT, "bo.py": f"{SOFTMAX}=not_gradable {MASK}=ok"})


def test_marks_by_hand_go_in_and_come_out(folder, tmp_path) -> None:
    out = tmp_path / "out"
    first = run(folder, out, assignment=ASKED)
    assert first.exit_code == 1
    assert rows_of(out / FILE) == [
        ["student", "exercise", "points", "comment"],
        ["ada", "essay", "", ""],
        ["bo", SOFTMAX, "", ""],
        ["bo", "essay", "", ""],
    ]
    text = (
        f"student,exercise,points,comment\nada,essay,7.5,Well argued.\nbo,essay,3,\nbo,{SOFTMAX},2,Read by a person.\n"
    )
    put(out, {FILE: text})
    for _ in range(2):
        second = run(folder, out, assignment=ASKED)
        assert (second.exit_code, second.n_new) == (0, 0)
        rows = rows_of(out / "gradebook.csv")
        assert [row[4:8] for row in rows[1:]] == [
            ["4", "2", "10", "16"],
            ["4", "2", "7.5", "13.5"],
            ["2", "2", "3", "7"],
        ]
        assert ["ada", "essay", "7.5", "Well argued."] in rows_of(out / FILE)
        assert "Well argued." in (out / "feedback" / "ada.md").read_text()


@pytest.mark.parametrize(
    ("row", "says"),
    [("ada,essay,11,", "from 0 to 10"), ("ada,poem,1,", "expected a student and one of"), ("ada,essay,x,", "a number")],
)
def test_a_row_that_cannot_be_used_is_named(folder, tmp_path, row, says) -> None:
    put(tmp_path / "out", {FILE: f"student,exercise,points,comment\n{row}\n"})
    with pytest.raises(FileError, match=f"line 2.*{says}"):
        run(folder, tmp_path / "out", assignment=ASKED)


def test_single_students_get_more_time(folder, tmp_path) -> None:
    put(tmp_path, {"r.csv": "student,submitted\nada,2026-01-03T00:00:00+00:00\nbo,2026-01-03T00:00:00+00:00\n"})
    more = {"deadline": datetime(2026, 1, 1, tzinfo=UTC), "extensions": {"ada": datetime(2026, 1, 4, tzinfo=UTC)}}
    outcome = run(folder, tmp_path / "out", assignment=asked(**more), roster=read_roster(tmp_path / "r.csv"))
    assert [record.late.hours for record in outcome.records] == [0.0, 48.0]


def test_without_a_column_nobody_is_late(folder, tmp_path) -> None:
    outcome = run(folder, tmp_path / "out", assignment=asked(deadline=datetime(2000, 1, 1, tzinfo=UTC)))
    assert [record.late for record in outcome.records] == [None, None]
