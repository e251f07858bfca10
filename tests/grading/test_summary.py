"""`ttutor.grading.reports.summary` and `similar`: what an instructor learns about a class."""

from __future__ import annotations

from tests.grading.made import LATE, MASK, SOFTMAX, asked, marked, recorded
from ttutor.exercises import find
from ttutor.grading.marks import SourceFile, State, Submission
from ttutor.grading.reports.similar import MOST_KEPT, similar_pairs, unusual_lines
from ttutor.grading.reports.summary import misconceptions, summary

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


def test_a_class_without_marks_has_a_summary() -> None:
    assert "0 students: 0 graded." in summary(asked(), [])


def test_the_summary_escapes_what_students_write() -> None:
    page = summary(asked(), [recorded("a", state=State.NOT_GRADABLE, problem="<b>", shown="<i>")])
    assert "<b>" not in page
    assert "<i>" not in page


def of(text: str) -> tuple[str, ...]:
    return unusual_lines(Submission(student="x", files=(SourceFile("hw.py", text.encode()),)))


def lines(start: int, count: int) -> str:
    return "\n".join(f"total = total + weights[{n}] * values" for n in range(start, start + count))


def test_pairs_share_what_others_do_not() -> None:
    everywhere = lines(1000, 10)
    classmates = [(f"s{n}", of(everywhere + "\n" + lines(100 * n, 20))) for n in range(9)]
    copied = ("copy", of(everywhere + "\n" + lines(300, 19) + "\nmine = something.else_entirely(3)"))
    ((share, *pair),) = similar_pairs([*classmates, copied])
    assert pair == ["s3", "copy", 19]
    assert 0.8 <= share < 1


def test_indentation_comments_and_notebooks_do_not_hide_a_copy() -> None:
    code = lines(0, 10)
    notebook = ",\n".join(f'    "{line}\\n"' for line in code.splitlines())
    indented = "\n".join(f"    {line}   # mine" if n == 0 else f"\t{line}" for n, line in enumerate(code.splitlines()))
    assert len(set(of(code)) & set(of(notebook))) == 10
    assert len(set(of(code)) & set(of(indented))) == 9
    assert of("# a comment of some length\n") == ()


def test_very_long_work_keeps_a_sample_that_can_be_compared() -> None:
    long = of(lines(0, 3000))
    assert len(long) == MOST_KEPT
    assert long == of(lines(0, 3000))


def test_similarity_is_told_as_information() -> None:
    both = of(lines(0, 20))
    page = summary(
        asked(), [recorded("a", lines=both), recorded("b", lines=both), recorded("c", lines=of(lines(50, 9)))]
    )
    assert "a and b: 20 unusual lines in common, 100% of what either has" in page
    assert "changes no mark" in page


def test_answers_close_to_the_published_solution_are_listed() -> None:
    page = summary(asked(), [recorded("a", marked(similarity=1.0)), recorded("b", marked(similarity=0.5))])
    assert "- a: attention.softmax" in page
    assert "- b:" not in page
