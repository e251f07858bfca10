"""`ttutor.grading.record`: what is kept of each student, whole and the same every time."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace

import pytest

from tests.grading.made import LATE, MASK, SOFTMAX, marked, recorded
from ttutor.errors import FileError
from ttutor.files import write_text
from ttutor.grading.marks import SourceFile, State, Submission
from ttutor.grading.record import (
    key_of,
    read_record,
    write_record,
    write_timing,
)

HOSTILE = "\x00 \u202e </script> ' \" \\ \n"


def test_a_record_comes_back_as_it_was(tmp_path) -> None:
    record = recorded(
        "ada",
        marked(SOFTMAX, State.WRONG, message=HOSTILE, warnings=("w",), hint_id="h"),
        marked(MASK),
        notes=(HOSTILE,),
        late=LATE,
        email="a@x",
        submitted="2026-01-01T00:00:00+00:00",
        files=(("hw.py", 3, "abc"),),
    )
    write_record(tmp_path / "records" / "ada.json", record)
    assert read_record(tmp_path / "records" / "ada.json") == record
    written = json.loads((tmp_path / "records" / "ada.json").read_text())
    assert (written["state"], written["total"]) == ("look", 1.8)
    write_record(tmp_path / "bo.json", recorded(notes=("\ud800",)))
    assert read_record(tmp_path / "bo.json").mark.notes == ("?",)  # no text that cannot be written stops a run


def test_how_long_it_took_stands_elsewhere(tmp_path) -> None:
    one = recorded("ada", marked(SOFTMAX, seconds=1.0), marked(MASK))
    other = replace(one, mark=replace(one.mark, seconds=9.0, memory_bytes=3, exercises=(marked(), marked(MASK))))
    write_record(tmp_path / "a.json", one)
    write_record(tmp_path / "b.json", other)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    write_timing(tmp_path / "t.json", one.mark)
    assert json.loads((tmp_path / "t.json").read_text())["exercises"] == {SOFTMAX: 1.0, MASK: 0.0}


def test_a_record_that_stands_is_not_written_again(tmp_path) -> None:
    path = tmp_path / "ada.json"
    write_record(path, recorded())
    before = path.stat().st_ino
    write_record(path, recorded())
    assert path.stat().st_ino == before
    write_record(path, recorded("ada", marked(state=State.WRONG), marked(MASK)))
    assert path.stat().st_ino != before


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch) -> None:
    path = tmp_path / "gradebook.csv"
    write_text(path, "old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FileError, match=r"gradebook\.csv: No space left on device; make room"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["gradebook.csv"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": "other/9"}', json.dumps({"key": "x"})])
def test_what_is_no_record_is_named(tmp_path, text) -> None:
    path = tmp_path / "ada.json"
    path.write_text(text)
    with pytest.raises(FileError, match=r"ada\.json .*grade again"):
        read_record(path)


def test_the_key_stands_for_all_that_marks_depend_on() -> None:
    one = Submission(student="ada", files=(SourceFile("hw.py", b"1"),))
    about = {"seed": "s", "sandbox": "bubblewrap"}
    same = replace(one, notes=("n",))
    others = [
        key_of(replace(one, files=(SourceFile("hw.py", b"2"),)), about),
        key_of(replace(one, files=(SourceFile("hw2.py", b"1"),)), about),
        key_of(replace(one, student="bo"), about),
        key_of(replace(one, problem="p"), about),
        key_of(one, about | {"seed": "t"}),
        key_of(one, about | {"sandbox": "none"}),
    ]
    assert key_of(same, about) == key_of(one, about)
    assert len({key_of(one, about), *others}) == 7


@pytest.mark.parametrize(
    ("record", "total"),
    [
        (recorded(), 6.0),
        (recorded(late=LATE), 5.4),
        (recorded("a", marked(SOFTMAX, State.CRASH), marked(MASK)), 2.0),
        (recorded("a", marked(SOFTMAX, State.NOT_GRADABLE), marked(MASK)), None),
        (recorded(state=State.NOT_GRADABLE), None),
        (recorded(state=State.GRADER_ERROR), None),
    ],
)
def test_there_is_no_total_while_a_human_has_to_look(record, total) -> None:
    assert record.total == total
    assert record.is_open == (total is None)
