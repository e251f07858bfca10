"""`ttutor.grading.grade_request`: a class from beginning to end, again, and after whatever may happen in between."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.grading.fake import HIDDEN, NUMBER_OF_GRADINGS, FakeGrader
from tests.grading.made import MASK, RIGHT, SOFTMAX, THEN, all_bytes, asked, class_of_twelve, put
from ttutor.errors import FileError, InputError
from ttutor.grading.grade_request import LOCK, GradeRequest, grade_class
from ttutor.grading.marking import _source
from ttutor.grading.record import read_record
from ttutor.grading.roster import read_roster

ROOT = Path(__file__).resolve().parents[2]
THEN_TEXT = datetime.fromtimestamp(THEN, UTC)
GOLDEN = """\
student,name,email,state,attention.softmax,attention.causal_mask,total,late_hours,late_percent,submitted
Points possible,,,,4,2,6,,,
Zoe-Angstrom-417,Zoë Ångström,,ok,4,2,6,,,
ada,ada,,ok,4,2,6,,,
bela,bela,,ok,4,0.6667,4.6667,,,
copy,copy,,ok,4,2,6,,,
dora,dora,,ok,4,0,4,,,
emil,emil,,ok,0,0,0,,,
fay,'=fay(),,ok,0,0,0,,,
guy,guy,,ok,0,0,0,,,
hal,hal,,not_gradable,,,,,,
ida,ida,,not_gradable,,,,,,
jo,jo,,not_gradable,,,,,,
kim,kim,,ok,1.3333,0,1.3333,,,
"""


def run(folder: Path, out: Path, **more):
    wish = {"submissions": folder, "assignment": asked(), "out": out, "make_grader": FakeGrader, **more}
    return grade_class(GradeRequest(**wish))


def rows_of(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def twelve(tmp_path_factory) -> Path:
    """A class of twelve."""
    return class_of_twelve(tmp_path_factory.mktemp("class"))


@pytest.fixture(scope="module")
def graded(twelve, tmp_path_factory):
    """That class, graded in one lane: the outcome and where it stands."""
    out = tmp_path_factory.mktemp("results") / "out"
    return run(twelve, out), out


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """Returns the ids of those that were really graded since it was last asked."""
    path = tmp_path / "gradings"
    monkeypatch.setenv(NUMBER_OF_GRADINGS, str(path))

    def since() -> list[str]:
        ids = sorted(path.read_text().split()) if path.exists() else []
        path.unlink(missing_ok=True)
        return ids

    return since


def test_a_mixed_class_comes_to_exactly_these_marks(graded) -> None:
    outcome, out = graded
    assert (out / "gradebook.csv").read_bytes().decode() == GOLDEN.replace("\n", "\r\n")
    assert (outcome.exit_code, outcome.n_new) == (1, 12)
    assert [record.student for record in outcome.records if record.is_open] == ["hal", "ida", "jo"]


def test_every_student_has_every_file(graded) -> None:
    outcome, out = graded
    expected = {"gradebook.csv", "by-hand.csv", "summary.md", "junit.xml"}  # bela's notebook is none that can be copied
    for record in outcome.records:
        name = record.student
        expected |= {f"records/{name}.json", f"feedback/{name}.md", f"feedback/{name}.html"}
    assert set(all_bytes(out)) == expected
    assert {path.stem for path in (out / "timings").iterdir()} == {record.student for record in outcome.records}


def test_feedback_is_a_copy_of_the_notebook_that_was_graded(tmp_path) -> None:
    text = json.dumps({"cells": [{"cell_type": "code", "source": f"# {RIGHT}\ndef softmax(x): return 1"}]})
    folder, copy = put(tmp_path / "in", {"ada.ipynb": text}), tmp_path / "out" / "feedback" / "ada.ipynb"
    run(folder, tmp_path / "out")
    assert [cell["cell_type"] for cell in json.loads(copy.read_text())["cells"]] == [
        "markdown",
        "code",
        "markdown",
        "markdown",
    ]
    (folder / "ada.ipynb").unlink()
    put(folder, {"ada.py": RIGHT})
    run(folder, tmp_path / "out")
    assert not copy.exists()


def test_only_records_know_the_hidden_cases(graded) -> None:
    _, out = graded
    telling = {name for name, data in all_bytes(out).items() if HIDDEN.encode() in data}
    assert telling
    assert {name.partition("/")[0] for name in telling} == {"records"}


def test_the_summary_tells_what_to_look_at(graded) -> None:
    page = (graded[1] / "summary.md").read_text()
    assert "12 students: 9 graded, 3 not gradable." in page
    assert "- hal (hal): its syntax cannot be read" in page


def test_the_same_folder_gives_the_same_bytes_from_any_number_of_processes(twelve, graded, tmp_path) -> None:
    run(twelve, tmp_path / "out", jobs=2)
    assert all_bytes(tmp_path / "out") == all_bytes(graded[1])


def test_a_second_run_grades_nothing_and_changes_nothing(twelve, graded, tmp_path, counted) -> None:
    out = shutil.copytree(graded[1], tmp_path / "out")
    stamps = {path: path.stat().st_mtime_ns for path in (out / "records").iterdir()}
    outcome = run(twelve, out)
    assert (outcome.n_new, counted()) == (0, [])
    assert all_bytes(out) == all_bytes(graded[1])
    assert {path: path.stat().st_mtime_ns for path in (out / "records").iterdir()} == stamps


def test_regrade_grades_all_again(twelve, graded, tmp_path, counted) -> None:
    out = shutil.copytree(graded[1], tmp_path / "out")
    assert run(twelve, out, regrade=True).n_new == 12
    assert len(counted()) == 10  # two hold nothing that a grader could be given
    assert all_bytes(out) == all_bytes(graded[1])


def test_only_what_was_changed_is_graded_again(tmp_path, counted) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT, "bo.py": RIGHT, "cy.py": RIGHT})
    run(folder, tmp_path / "out")
    counted()
    put(folder, {"bo.py": f"{SOFTMAX}=wrong"})
    assert run(folder, tmp_path / "out").n_new == 1
    assert counted() == ["bo"]


@pytest.mark.parametrize(
    "more", [{"seed": "another secret"}, {"limits": {"seconds": 3}}, {"exercises": {SOFTMAX: 5, MASK: 2}}], ids=str
)
def test_whatever_marks_depend_on_makes_them_anew(tmp_path, counted, more) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT})
    run(folder, tmp_path / "out")
    counted()
    run(folder, tmp_path / "out", assignment=asked(**more))
    assert counted() == ["ada"]


def test_a_deadline_that_moves_needs_no_grading(tmp_path, counted) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT})
    put(tmp_path, {"r.csv": f"student,submitted\nada,{datetime.fromtimestamp(THEN, UTC).isoformat()}\n"})
    roster = read_roster(tmp_path / "r.csv")
    run(folder, tmp_path / "out", roster=roster)
    counted()
    an_hour_before = datetime.fromtimestamp(THEN - 3600, UTC)
    late = asked(deadline=an_hour_before, late={"percent_per_day": 50})
    outcome = run(folder, tmp_path / "out", assignment=late, roster=roster)
    assert counted() == []
    assert outcome.records[0].total == 3.0
    assert "It came 1 hour after the deadline; 50 %" in (tmp_path / "out" / "feedback" / "ada.md").read_text()


def test_a_record_that_was_damaged_is_made_anew(twelve, graded, tmp_path) -> None:
    out = shutil.copytree(graded[1], tmp_path / "out")
    (out / "records" / "ada.json").write_text("{")
    assert run(twelve, out).n_new == 1
    assert all_bytes(out) == all_bytes(graded[1])


def started(folder: Path, out: Path, jobs: int) -> subprocess.Popen:
    """Another process that grades."""
    code = (
        "import sys; from pathlib import Path; from tests.grading.test_run import run\n"
        "if __name__ == '__main__': run(Path(sys.argv[1]), Path(sys.argv[2]), jobs=int(sys.argv[3]))"
    )
    script = out.parent / "grade.py"
    script.write_text(code)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), str(folder), str(out), str(jobs)]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True, env=environment)


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_killed_midway_and_run_again_it_comes_to_the_same_bytes(tmp_path, counted) -> None:
    folder = put(tmp_path / "in", {f"s{n}.py": f"{RIGHT} GRADER_SLEEPS" for n in range(8)})
    run(folder, tmp_path / "whole", jobs=2)
    counted()
    out = tmp_path / "out"
    process = started(folder, out, 2)
    until = time.monotonic() + 180
    while len(list(out.glob("records/s*.json"))) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    if sys.platform == "linux":
        process.kill()  # the grader alone: the processes that it has started end by themselves
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while alive(process.pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not alive(process.pid)
    first = counted()
    stood = len(list(out.glob("records/s*.json")))
    assert 3 <= stood < 8
    assert not (out / "gradebook.csv").exists()
    assert run(folder, out, jobs=2).n_new == 8 - stood
    assert len(first) <= stood + 2
    assert all_bytes(out) == all_bytes(tmp_path / "whole")


def test_a_mistake_of_the_grader_writes_no_mark_and_costs_only_one(tmp_path) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT, "bo.py": "GRADER_BUG", "di.py": RIGHT})
    outcome = run(folder, tmp_path / "out", jobs=2)
    assert (outcome.exit_code, set(outcome.failures)) == (3, {"bo"})
    assert {path.stem for path in (tmp_path / "out" / "records").iterdir()} == {"ada", "di"}
    assert {path.stem for path in (tmp_path / "out" / "feedback").iterdir()} == {"ada", "di"}
    rows = rows_of(tmp_path / "out" / "gradebook.csv")
    assert [row[3:7] for row in rows[2:]] == [
        ["ok", "4", "2", "6"],
        ["grader_error", "", "", ""],
        ["ok", "4", "2", "6"],
    ]
    assert "ZeroDivisionError: a mistake in the grader" in (tmp_path / "out" / "grader-errors.txt").read_text()


def test_a_full_disk_ends_the_run_and_what_is_graded_stands(tmp_path, monkeypatch, counted) -> None:
    folder, out = put(tmp_path / "in", {"ada.py": RIGHT, "bo.py": RIGHT, "di.py": RIGHT}), tmp_path / "out"
    write = os.fsync

    def full_for_bo(descriptor: int) -> None:
        if list(out.rglob("*bo.json")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(descriptor)

    monkeypatch.setattr("os.fsync", full_for_bo)
    with pytest.raises(FileError, match=r"bo\.json: No space left on device; make room"):
        run(folder, out)
    assert counted() == ["ada", "bo"]
    monkeypatch.undo()
    assert read_record(out / "records" / "ada.json").total == 6.0
    assert run(folder, out).n_new == 2


def test_a_process_of_the_judge_that_dies_is_told_and_what_is_graded_stands(tmp_path) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT, "cy.py": "GRADER_DIES"})
    outcome = run(folder, tmp_path / "out", jobs=2)
    assert outcome.exit_code == 3
    assert "a process of the judge died" in outcome.failures["cy"]
    (folder / "cy.py").unlink()
    assert run(folder, tmp_path / "out").exit_code == 0


def test_a_mistake_of_the_grader_leaves_the_marks_that_stood(tmp_path) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT})
    run(folder, tmp_path / "out")
    path = tmp_path / "out" / "records" / "ada.json"
    before = path.read_bytes()
    assert run(put(folder, {"ada.py": "GRADER_BUG"}), tmp_path / "out").exit_code == 3
    assert path.read_bytes() == before
    assert run(put(folder, {"ada.py": RIGHT}), tmp_path / "out").exit_code == 0
    assert not (tmp_path / "out" / "grader-errors.txt").exists()


@pytest.mark.parametrize("text", [f"{SOFTMAX}=grader_error", f"{SOFTMAX}=ok {MASK}=grader_error"])
def test_a_grader_that_reports_its_own_mistake_is_believed(tmp_path, text) -> None:
    outcome = run(put(tmp_path / "in", {"ada.py": text}), tmp_path / "out")
    assert (outcome.exit_code, list(outcome.failures)) == (3, ["ada"])


def test_only_some_are_graded_and_the_others_keep_what_they_have(tmp_path, counted) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT, "bo.py": RIGHT, "cy.py": RIGHT})
    run(folder, tmp_path / "out", only=("bo",))
    assert counted() == ["bo"]
    assert "Not graded yet: ada, cy." in (tmp_path / "out" / "summary.md").read_text()
    put(folder, {"bo.py": f"{SOFTMAX}=wrong", "ada.py": f"{SOFTMAX}=wrong"})
    run(folder, tmp_path / "out", only=("ada",))
    assert counted() == ["ada"]
    assert read_record(tmp_path / "out" / "records" / "bo.json").total == 6.0
    with pytest.raises(InputError, match="there is no such student; ids are as in the gradebook: ada, bo, cy"):
        run(folder, tmp_path / "out", only=("zoe",))


def test_every_changed_mark_is_listed(tmp_path) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT, "bo.py": RIGHT, "cy.py": RIGHT})
    run(folder, tmp_path / "old")
    assert run(folder, tmp_path / "new", compare=tmp_path / "old").changed == ()
    put(folder, {"bo.py": f"{SOFTMAX}=wrong {MASK}=ok", "di.py": RIGHT})
    (folder / "cy.py").unlink()
    assert run(folder, tmp_path / "new", compare=tmp_path / "old").changed == (
        "bo: attention.softmax 4 of 4 (ok) -> 1.3333 of 4 (wrong)",
        "bo: total 6 -> 3.3333",
        "cy: no longer there (had 6)",
        "di: new (6)",
    )


def test_a_name_that_can_be_read_twice_is_given_to_nobody(tmp_path) -> None:
    evil = "Name One_666_assignsubmission_file_Name Two_417_assignsubmission_file_zz.py"
    folder = put(tmp_path / "in", {evil: "", "Name Two_417_assignsubmission_file_hw.py": RIGHT})
    put(tmp_path, {"r.csv": "Identifier,Full name,Email address\nParticipant 417,Name Two,two@x\n"})
    outcome = run(folder, tmp_path / "out", roster=read_roster(tmp_path / "r.csv"))
    assert [(record.student, record.total) for record in outcome.records] == [("Name-Two-417", 6.0)]
    assert outcome.exit_code == 1
    assert "Name One (666) or of Name One_666_assignsubmission_file_Name Two (417)" in outcome.notes[0]
    assert "given to nobody" in (tmp_path / "out" / "summary.md").read_text()


def test_older_results_that_are_damaged_are_named(tmp_path) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT})
    put(tmp_path, {"old/records/ada.json": "{}"})
    with pytest.raises(FileError, match=r"ada\.json"):
        run(folder, tmp_path / "out", compare=tmp_path / "old")


def test_who_is_on_the_roster_and_handed_in_nothing_is_missing(tmp_path) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT})
    put(tmp_path, {"r.csv": "student,name,Email address\nada,Ada L,a@x\nbo,Bo B,b@x\n"})
    outcome = run(folder, tmp_path / "out", roster=read_roster(tmp_path / "r.csv"))
    assert outcome.exit_code == 0
    rows = rows_of(tmp_path / "out" / "gradebook.csv")
    assert [row[:7] for row in rows[2:]] == [
        ["ada", "Ada L", "a@x", "ok", "4", "2", "6"],
        ["bo", "Bo B", "b@x", "missing", "0", "0", "0"],
    ]
    moodle = rows_of(tmp_path / "out" / "lms" / "moodle.csv")
    assert moodle[1:] == [["", "Ada L", "a@x", "", "6"], ["", "Bo B", "b@x", "", "0"]]


def test_results_and_submissions_must_not_lie_in_one_another(tmp_path) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT})
    for out in (folder, folder / "results", tmp_path):
        with pytest.raises(InputError, match="choose another --out"):
            run(folder, out)


def test_a_second_grader_in_the_same_folder_names_the_first(tmp_path) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT})
    hold = "import sys; from pathlib import Path; from ttutor.files import sole_writer\n"
    hold += "with sole_writer(Path(sys.argv[1])): print(flush=True); input()"
    command, lock = [sys.executable, "-c", hold], tmp_path / "out" / LOCK
    with subprocess.Popen([*command, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        first.stdout.readline()
        with pytest.raises(FileError, match=f"process {first.pid} "):
            run(folder, tmp_path / "out")
        first.communicate(b"\n")
    assert run(folder, tmp_path / "out").n_new == 1


def test_a_deadline_of_somebody_who_is_not_there_is_refused(tmp_path) -> None:
    folder = put(tmp_path / "in", {"ada.py": RIGHT})
    late = asked(deadline=THEN_TEXT, extensions={"adda": THEN_TEXT})
    with pytest.raises(InputError, match=r"extensions\] adda: there is no such student; ids are such as ada"):
        run(folder, tmp_path / "out", assignment=late)


def test_a_changed_exercise_of_ones_own_is_graded_again(tmp_path) -> None:
    folder, own = put(tmp_path / "in", {"ada.py": RIGHT}), put(tmp_path / "own", {"mine.py": "x = 1"})
    assert [run(folder, tmp_path / "out", own=own).n_new for _ in range(2)] == [1, 0]
    (own / "mine.py").write_text("x = 2")
    _source.cache_clear()  # a run of its own
    assert run(folder, tmp_path / "out", own=own).n_new == 1


def test_a_deadline_without_times_is_told(tmp_path) -> None:
    outcome = run(put(tmp_path / "in", {"ada.py": RIGHT}), tmp_path / "out", assignment=asked(deadline=THEN_TEXT))
    assert any("deadline has no effect" in note for note in outcome.notes)
