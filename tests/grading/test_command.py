"""`ttutor grade`, as an instructor meets it."""

from __future__ import annotations

import base64
import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import pytest

from tests.grading.fake import HIDDEN, FakeGrader
from tests.grading.made import MASK, RIGHT, SOFTMAX, put
from ttutor.grading import grade_request as run

HOMEWORK = f'seed = "nobody knows"\n[exercises]\n"{SOFTMAX}" = 4\n"{MASK}" = 2\n'


@pytest.fixture
def grade(tmp_path, monkeypatch, ttutor):
    """Run `ttutor grade` with the fake grader in a folder that has an assignment."""
    (tmp_path / "hw1.toml").write_text(HOMEWORK)
    real = run.grade_class
    monkeypatch.setattr(run, "grade_class", lambda request: real(replace(request, make_grader=FakeGrader)))
    monkeypatch.setattr("ttutor.grading.session.check_sandbox", lambda sandbox: None)
    monkeypatch.setattr("ttutor.grading.sandbox.bytecode", nullcontext)  # the fake one imports no PyTorch
    return partial(ttutor, "grade")


@pytest.fixture
def work(tmp_path):
    """A class of two."""
    return put(tmp_path / "in", {"ada.py": RIGHT, "bo.py": f"{SOFTMAX}=wrong"})


def test_a_class_is_graded_with_one_command(grade, work, tmp_path) -> None:
    said = grade("in", "--assignment", "hw1.toml", "--out", "out", "-j", "2").output
    assert "Sandbox: bubblewrap: it sees Python and PyTorch and nothing else" in said
    assert "on average" in said
    assert "2 submissions: 2 graded now, 0 stood already." in said
    assert (tmp_path / "out" / "gradebook.csv").exists()
    again = grade("in", "--assignment", "hw1.toml", "--out", "out", "--diff", "out").output
    assert "0 graded now, 2 stood already" in again
    assert "No mark has changed." in again


def test_what_waits_for_a_mark_by_hand_is_one_line(grade, work, tmp_path) -> None:
    (tmp_path / "hw1.toml").write_text(f"{HOMEWORK}[by_hand]\nessay = 5\n")
    put(work, {"cy.py": f"{SOFTMAX}=not_gradable"})
    put(tmp_path, {"r.csv": "student\nada\nbo\ncy\ndi\n"})
    said = grade("in", "--assignment", "hw1.toml", "--roster", "r.csv", code=1).output
    assert "3 submissions: 3 graded now, 0 stood already; 1 handed in nothing." in said
    told = [line for line in said.splitlines() if line.startswith("To look at")]
    assert told == [f"To look at: cy: Open: {SOFTMAX}.", "To look at: 3 wait for a mark by hand: essay"]
    page = (tmp_path / "results" / "summary.md").read_text()
    assert f"## To look at\n\n- cy (cy): Open: {SOFTMAX}.\n- 3 wait for a mark by hand: essay\n" in page
    again = grade("in", "--assignment", "hw1.toml", "--roster", "r.csv", "--only", "di", code=1).output
    assert "3 submissions: 0 graded now, 3 stood already; 1 handed in nothing." in again


def test_exit_codes(grade, work) -> None:
    put(work, {"cy.py": "NOT_GRADABLE NOTE broken"})
    assert "To look at: cy: broken" in grade("in", "--assignment", "hw1.toml", code=1).output
    put(work, {"di.py": "GRADER_BUG"})
    said = grade("in", "--assignment", "hw1.toml", code=3)
    assert "Grader error: di: ZeroDivisionError: a mistake in the grader (no mark was written)" in said.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name what to grade and the assignment"),
        (["in"], "name what to grade and the assignment"),
        (["in", "--assignment", "none.toml"], "cannot read none.toml"),
        (["none", "--assignment", "hw1.toml"], "none does not exist"),
        (["in", "--assignment", "hw1.toml", "--out", "in/out"], "choose another --out"),
        (["in", "--assignment", "hw1.toml", "--roster", "none.csv"], "cannot read none.csv"),
        (["in", "--assignment", "hw1.toml", "--only", "zoe"], "there is no such student"),
        (["in", "--assignment", "hw1.toml", "--gradescope", "r.json"], "needs one graded submission"),
        (["in", "--assignment", "hw1.toml", "--classroom", "o"], "--classroom needs one graded submission"),
        (["in", "--assignment", "hw1.toml", "--contained", "--trusted"], "exclude each other"),
        (["in", "--assignment", "hw1.toml", "--exercises", "none"], "holds no Python files"),
        (["in", "--assignment", "hw1.toml", "-j", "0"], ""),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_the_instructor_can_mend_is_said(grade, work, arguments, said) -> None:
    result = grade(*arguments, code=2)
    assert said in result.stderr
    assert result.stderr


def test_gradescope_gets_its_one_submission(grade, work, tmp_path) -> None:
    grade("in", "--assignment", "hw1.toml", "--student", "ada", "--gradescope", "results/results.json")
    table = json.loads((tmp_path / "results" / "results.json").read_text())
    assert table["score"] == 6.0


def test_github_classroom_gets_parts_of_the_points(grade, tmp_path) -> None:
    put(tmp_path, {"hw1.py": f"{SOFTMAX}=wrong (Look.) {MASK}=ok", "output": "other=1\n"})
    grade("hw1.py", "--student", "me", "--assignment", "hw1.toml", "--classroom", "output")
    other, line = (tmp_path / "output").read_text().splitlines()
    result = json.loads(base64.b64decode(line.removeprefix("result=")))
    assert other == "other=1"
    assert (result["status"], result["max_score"]) == ("fail", 6.0)
    assert [(one["name"], one["status"], one["score"]) for one in result["tests"]] == [
        (SOFTMAX, "fail", 1.3333),
        (MASK, "pass", 2.0),
    ]
    assert "Look." in result["tests"][0]["message"]
    assert HIDDEN not in str(result)


def test_changes_are_told(grade, work) -> None:
    grade("in", "--assignment", "hw1.toml", "--out", "out")
    put(work, {"bo.py": f"{SOFTMAX}=ok"})
    said = grade("in", "--assignment", "hw1.toml", "--out", "out", "--diff", "out").output
    assert "Changed: bo: attention.softmax 1.3333 of 4 (wrong) -> 4 of 4 (ok)" in said
