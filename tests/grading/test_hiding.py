"""What an assignment hides from students, they are told nothing of, in whatever is written; what it shows, they see."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from tests.grading.bench import handed_in
from tests.grading.made import all_bytes
from ttutor.exercises import find
from ttutor.files import write_text
from ttutor.grading import grader as judging
from ttutor.grading.assignment import assignment_of
from ttutor.grading.exports import classroom, gradescope
from ttutor.grading.grade_request import write_outputs
from ttutor.grading.grader import IN_HIDDEN, Grader
from ttutor.grading.marks import State
from ttutor.grading.record import Record, read_record, write_record
from ttutor.grading.submission import ClassWork, FoundSubmission

SOFTMAX, CASE, OTHER = "attention.softmax", "scores in float64", "another axis asked for"
EVERYWHERE = {"records", "feedback", "gradescope", "classroom", "junit.xml"}
TELLING = "one sum is 1.5"
WRONG_THERE = """
def softmax(scores, dim=-1):
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    weights = powers / powers.sum(dim, keepdim=True)
    return 1.5 * weights if str(scores.dtype) == "torch.float64" else weights
"""
RAISES_THERE = WRONG_THERE.replace("return 1.5", 'return {}["what only this case knows"]')


def asked(**worth: object):
    """An assignment of one exercise for four points."""
    return assignment_of({"title": "T", "seed": "a secret", "exercises": {SOFTMAX: {"points": 4, **worth}}})


@pytest.fixture(scope="module")
def grader(forks):
    """A grader of which the tests change what is asked."""
    return Grader(asked(), forks)


@pytest.fixture
def graded(grader, monkeypatch, tmp_path):
    """Grades one submission as an assignment asks for it; returns its mark and each file that is written."""

    def grade(text: str, **worth: object):
        assignment = asked(**worth)
        monkeypatch.setattr(grader, "assignment", assignment)
        monkeypatch.setattr(grader, "exercises", judging.exercises_of(assignment))
        record = Record(key="k", shown="Ada", mark=grader.grade(handed_in(text)))
        write_record(tmp_path / "records" / "ada.json", record)
        work = ClassWork((FoundSubmission(student="ada", shown="Ada"),))
        write_outputs(tmp_path, assignment, [record], work)
        write_text(tmp_path / "gradescope", gradescope(assignment, record))
        write_text(tmp_path / "classroom", base64.b64decode(classroom(assignment, record)).decode())
        assert read_record(tmp_path / "records" / "ada.json").mark.exercises[0].cases == record.mark.exercises[0].cases
        return record.mark.exercises[0], {name: data.decode() for name, data in all_bytes(tmp_path).items()}

    return grade


def telling(written: dict[str, str], *texts: str) -> set[str]:
    """Which kinds of files hold one of some texts."""
    return {name.partition("/")[0] for name, data in written.items() if any(text in data for text in texts)}


def test_what_is_not_hidden_is_told(graded):
    mark, written = graded(WRONG_THERE)
    assert mark.message.startswith(f"With {CASE}: ")
    assert telling(written, CASE) == telling(written, TELLING) == EVERYWHERE


@pytest.mark.parametrize(
    ("answer", "told"), [(WRONG_THERE, TELLING), (RAISES_THERE, "what only this case knows")], ids=["wrong", "raises"]
)
def test_of_what_the_assignment_hides_nothing_is_told(graded, answer, told):
    mark, written = graded(answer, hide=[CASE])
    assert (mark.state, mark.earned) in ((State.WRONG, 3.0), (State.ERROR, 3.0))
    assert {case.name for case in mark.cases if case.hidden} == {CASE}
    assert mark.message.startswith(IN_HIDDEN)
    assert telling(written, CASE) == {"records"}
    assert telling(written, told, "float64") <= {"records"}
    assert told not in written["records/ada.json"]
    assert "1 more case kept for grading counts too." in written["feedback/ada.md"]
    assert "cases kept for grading" in written["gradescope"]


def test_other_cases_are_still_told(graded):
    mark, written = graded(WRONG_THERE, hide=[OTHER])
    assert mark.message.startswith(f"With {CASE}: ")
    assert telling(written, OTHER) == {"records"}
    assert OTHER not in mark.message


@pytest.mark.parametrize("answer", ["x = 1\n", "def softmax(scores, dim=-1): ...\n", "softmax = 3\n"])
def test_what_was_never_run_hides_it_too(graded, answer):
    mark, written = graded(answer, hide=[CASE])
    assert {case.name for case in mark.cases if case.hidden} == {CASE}
    assert telling(written, CASE) == {"records"}


def test_what_the_exercise_hides_can_be_shown(graded, monkeypatch):
    exercise = find(SOFTMAX)
    cases = tuple(replace(case, hidden=case.name in (CASE, OTHER)) for case in exercise.cases)
    monkeypatch.setattr(judging, "find", lambda name: replace(exercise, cases=cases))
    mark, written = graded(WRONG_THERE)
    assert mark.message.startswith(IN_HIDDEN)
    assert telling(written, CASE, TELLING, OTHER) == {"records"}
    mark, written = graded(WRONG_THERE, show=[CASE])
    assert mark.message.startswith(f"With {CASE}: ")
    assert telling(written, CASE) == EVERYWHERE
    assert telling(written, OTHER) == {"records"}
