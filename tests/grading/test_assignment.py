"""`ttutor.grading.assignment`: what an instructor writes is read strictly."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from tests.grading.made import MASK, SOFTMAX, asked
from ttutor.errors import FileError, SettingError
from ttutor.exercises import find
from ttutor.grading.assignment import Limits, Visibility, assignment_of, read_assignment

WHOLE = """
title = "Homework 1"
seed = "nobody knows this"
deadline = 2026-11-20T23:59:00+01:00
files = ["hw1*.ipynb"]

[exercises]
"attention.softmax" = 4
attention.causal_mask = 2.5

[visibility]
results = "after_due_date"
hidden_cases = "hidden"

[limits]
seconds_per_call = 5
seconds = 60
memory = 1024

[late]
percent_per_day = 10
at_most = 25
grace_minutes = 15
"""


def test_everything_that_can_be_asked_for(tmp_path) -> None:
    path = tmp_path / "hw1.toml"
    path.write_text(WHOLE)
    read = read_assignment(path)
    assert [(one.exercise_id, one.points) for one in read.exercises] == [(SOFTMAX, 4.0), (MASK, 2.5)]
    assert (read.possible, read.title, read.seed, read.files) == (
        6.5,
        "Homework 1",
        "nobody knows this",
        ("hw1*.ipynb",),
    )
    assert read.limits == Limits(seconds_per_call=5.0, seconds=60.0, memory=1024)
    assert read.visibility == Visibility(results="after_due_date", hidden_cases="hidden")
    assert read.late.at_most == 25
    assert read.deadline == datetime(2026, 11, 20, 22, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"colour": 1}, "colour: there is no such key"),
        ({"deadlin": 1}, "deadlin: there is no such key (did you mean deadline?)"),
        ({"limits": {"second": 1}}, "limits: second: there is no such key (did you mean seconds?)"),
        ({"by_hand": {"essay": {"points": 1, "ask": ""}}}, "essay: ask: there is no such key (did you mean asks?)"),
        ({"seed": 3}, "seed: input should be a valid string, but 3 came"),
        ({"seed": "short"}, "at least 8 characters"),
        ({"exercises": {}}, "exercises: tuple should have at least 1 item"),
        ({"exercises": 7}, "exercises must be a table [exercises]"),
        ({"exercises": {SOFTMAX: "4"}}, "attention.softmax: points: input should be a valid number, but '4' came"),
        ({"exercises": {SOFTMAX: True}}, "input should be a valid number, but True came"),
        ({"exercises": {SOFTMAX: float("nan")}}, "finite number"),
        ({"exercises": {SOFTMAX: -1}}, "greater than 0"),
        ({"exercises": {"attention.sofmax": 1}}, "did you mean attention.softmax"),
        ({"exercises": {SOFTMAX: 1, "attention": {"softmax": 2}}}, "twice came attention.softmax"),
        ({"exercises": {SOFTMAX: {"points": 1, "weight": 2}}}, "attention.softmax: weight: there is no such key"),
        ({"exercises": {SOFTMAX: {"points": 1, "hide": ["none"]}}}, "attention.softmax has no case 'none'"),
        ({"limits": {"memory": 1}}, "memory: input should be greater than or equal to 512"),
        ({"limits": {"seconds": float("inf")}}, "finite number"),
        ({"limits": 7}, "limits: input should be a dictionary"),
        ({"visibility": {"results": "everybody"}}, "'visible', 'after_due_date', 'after_published' or 'hidden'"),
        ({"deadline": "tomorrow"}, "such as 2026-11-20 23:59:00+01:00, but tomorrow came"),
        ({"deadline": datetime(2026, 1, 1)}, "offset from UTC, such as 2026-01-01 00:00:00+01:00, but 2026-01-01"),
        ({"extensions": {"ada": date(2026, 1, 1)}}, "extensions: ada: expected a time with its offset from UTC"),
        ({"late": {"percent_per_day": 101}}, "less than or equal to 100"),
        ({"by_hand": {"essay": {"points": 1, "kind": "song"}}}, "essay: kind: input should be 'text' or 'plot'"),
        ({"by_hand": {SOFTMAX: 1}}, "twice came attention.softmax"),
        ({"files": []}, "files: tuple should have at least 1 item"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_does_not_fit_is_named_with_what_was_expected(table, said) -> None:
    with pytest.raises(SettingError) as caught:
        asked(**table)
    assert said in str(caught.value)


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(SettingError) as caught:
        assignment_of({"sed": "nobody knows this", "exercises": {SOFTMAX: "four"}})
    assert str(caught.value).split("; ") == [
        "seed: field required",
        "exercises: attention.softmax: points: input should be a valid number, but 'four' came",
        "sed: there is no such key (did you mean seed?)",
    ]


def test_a_seed_of_ones_own_is_needed() -> None:
    with pytest.raises(SettingError, match="seed: field required"):
        assignment_of({"exercises": {SOFTMAX: 1}})


@pytest.mark.parametrize("data", [b"seed = ", b"\xff\xfe"], ids=["no TOML", "no UTF-8"])
def test_a_file_that_is_no_toml_is_named(tmp_path, data) -> None:
    path = tmp_path / "hw1.toml"
    path.write_bytes(data)
    with pytest.raises(FileError, match="hw1.toml is no TOML"):
        read_assignment(path)
    with pytest.raises(FileError, match="check the path"):
        read_assignment(tmp_path / "other.toml")


def test_an_instructor_hides_and_shows_cases() -> None:
    names = [case.name for case in find(SOFTMAX).cases]
    (worth,) = asked(exercises={SOFTMAX: {"points": 3, "hide": names[:1], "show": names[1:2]}}).exercises
    assert [worth.case_hidden(name, True) for name in names[:3]] == [True, False, True]
    assert [worth.case_hidden(name, False) for name in names[:3]] == [True, False, False]


@pytest.mark.parametrize(
    ("submitted", "late", "hours", "percent"),
    [
        ("2026-11-20T22:59:00+00:00", {}, 0.0, 0.0),
        ("2026-11-21T00:59:00+00:00", {}, 2.0, 0.0),
        ("2026-11-20T23:59:00+01:00", {}, 0.0, 0.0),
        ("2026-11-20T23:09:00+00:00", {"grace_minutes": 15}, 0.0, 0.0),
        ("2026-11-20T23:00:00+00:00", {"percent_per_day": 10}, 0.02, 10.0),
        ("2026-11-23T00:00:00+00:00", {"percent_per_day": 10}, 49.02, 30.0),
        ("2026-12-23T00:00:00+00:00", {"percent_per_day": 10, "at_most": 25}, 769.02, 25.0),
    ],
)
def test_lateness_is_reported_and_costs_only_what_was_asked_for(submitted, late, hours, percent) -> None:
    came = asked(deadline=datetime(2026, 11, 20, 22, 59, tzinfo=UTC), late=late).lateness("ada", submitted)
    assert came is not None
    assert (came.hours, came.percent) == (hours, percent)


def test_without_a_deadline_or_a_date_nothing_is_late() -> None:
    assert asked().lateness("ada", "2026-11-20T22:59:00+00:00") is None
    assert asked(deadline=datetime(2026, 11, 20, tzinfo=UTC)).lateness("ada", None) is None
