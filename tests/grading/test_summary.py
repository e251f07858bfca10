"""`ttutor.grading.summary`: what an instructor learns about a class."""

from __future__ import annotations

from tests.grading.made import LATE, MASK, SOFTMAX, asked, marked, recorded
from ttutor.exercises import find
from ttutor.grading.feedback import misconceptions, overview, summary
from ttutor.grading.marks import State

HINT = find(SOFTMAX).mistakes[0]


def wrong(hint: str = HINT.id):
    return marked(SOFTMAX, State.WRONG, hint_id=hint)


def test_which_misconception_hit_how_many() -> None:
    records = [recorded("a", wrong()), recorded("b", wrong()), recorded("c", wrong("other")), recorded("d")]
    assert misconceptions(records) == [(SOFTMAX, HINT.id, 2), (SOFTMAX, "other", 1)]
    page = summary(asked(), records)
    assert page.index(HINT.id.replace("_", "\\_")) < page.index("| other |")


def test_what_is_missing_is_no_misconception() -> None:
    assert misconceptions([recorded("a", marked(SOFTMAX, State.MISSING, hint_id="not_started"))]) == []


def test_the_summary_counts_states_and_means() -> None:
    records = [
        recorded("a"),
        recorded("b", wrong(), marked(MASK), late=LATE),
        recorded("c", state=State.NOT_GRADABLE, problem="It is no notebook."),
        recorded("d", marked(SOFTMAX, State.MISSING), marked(MASK, State.MISSING), state=State.MISSING),
    ]
    page = summary(asked(), records, ["x is not on the roster."])
    assert "4 students: 2 graded, 1 missing, 1 not gradable." in page
    assert "Of 6 points those graded have 3.9 on average, 3.9 in the middle." in page
    assert "| attention.softmax | 1 | 1 | 0 | 0 | 0 | 0 | 2 | 4 |" in page
    assert "- c (C): It is no notebook." in page
    assert "- b: 5 hours, 10 % taken off" in page
    assert "- x is not on the roster." in page
    assert "Sandbox: none." in page


def test_the_terminal_shows_full_marks_as_such() -> None:
    lines = overview(asked(), [recorded("a"), recorded("b"), recorded("c", wrong(), marked(MASK))])
    assert [line.split() for line in lines[-2:]] == [["30", "%", "██████████", "1"], ["100", "%", "█" * 20, "2"]]


def test_a_class_without_marks_has_a_summary() -> None:
    assert "0 students: 0 graded." in summary(asked(), [])


def test_the_summary_escapes_what_students_write() -> None:
    page = summary(asked(), [recorded("a", state=State.NOT_GRADABLE, problem="<b>", shown="<i>")])
    assert "<b>" not in page
    assert "<i>" not in page


def test_what_is_to_be_looked_at_is_listed_with_its_line() -> None:
    page = summary(asked(), [recorded("a", marked(SOFTMAX, warnings=("hw1.py, line 3: `sys`",))), recorded("b")])
    assert "## Look at these\n\n- a: attention.softmax: hw1.py, line 3: `sys`\n" in page
