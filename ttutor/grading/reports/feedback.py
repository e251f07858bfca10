"""What a student is told, with nothing of the hidden cases but how many there are.

All of it may hold what a student wrote (names, messages of exceptions, lines of code), so all of it is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ttutor.grading.assignment import Assignment
from ttutor.grading.marks import CaseMark, ExerciseMark, State
from ttutor.grading.records.gradebook import number
from ttutor.grading.records.record import Record
from ttutor.grading.reports.markdown import items, page, plain, table

IN_WORDS = {
    State.OK: "right",
    State.WRONG: "not yet right",
    State.ERROR: "raises an error",
    State.TIMEOUT: "takes too long",
    State.CRASH: "ends the whole process",
    State.MISSING: "not handed in",
    State.NOT_GRADABLE: "could not be graded; a person will look at it",
    State.GRADER_ERROR: "could not be graded yet, through no fault of yours",
}
KEPT_BACK = (
    "It is right on the cases that you can see, or goes wrong on others too: try inputs of other shapes and sizes."
)


def feedback(assignment: Assignment, record: Record) -> str:
    """Return the page for one student, as Markdown."""
    return page(f"{assignment.title}: {record.shown}", _blocks(assignment, record))


def message_for(one: ExerciseMark) -> str:
    """Return the message of an exercise, or another where it names a hidden case."""
    return KEPT_BACK if any(case.hidden and case.name in one.message for case in one.cases) else one.message


def _blocks(assignment: Assignment, record: Record) -> Iterator[str]:
    yield from summed_up(assignment, record)
    if record.problem is not None:
        yield plain(record.problem)
    counted = Counter(warning for one in record.mark.exercises for warning in one.warnings)
    often = [warning for warning, count in counted.items() if count > 1]  # of the whole file, and said once
    if record.mark.state is State.OK:
        rows = [(one.title, IN_WORDS[one.state], _earned(one)) for one in record.mark.exercises]
        yield table(("Exercise", "State", "Points"), rows)
        for one in record.mark.exercises:
            yield from findings(one, often)
    if notes := (*record.mark.notes, *often):
        yield from ("## Notes", items(notes))
    if record.files:
        names = ", ".join(f"`{name.replace('`', chr(39))}` ({size} bytes)" for name, size, _ in record.files)
        yield plain(f"Graded: {names}.")


def summed_up(assignment: Assignment, record: Record) -> list[str]:
    """Return what a submission came to, and how late it was."""
    if record.late is None or record.late.hours <= 0:
        return [_sum(assignment, record)]
    cost = f"; {number(record.late.percent)} % of the total were taken off" if record.late.percent else ""
    late = f"It came {number(record.late.hours)} hours after the deadline{cost}."
    return [_sum(assignment, record), late]


def _sum(assignment: Assignment, record: Record) -> str:
    if record.mark.state is State.MISSING:
        return f"Nothing was handed in: 0 of {number(assignment.possible)} points."
    if record.total is None:
        return "There is no total yet: a person has to look at it first."
    return f"{number(record.total)} of {number(assignment.possible)} points."


def _earned(one: ExerciseMark) -> str:
    if one.state in (State.NOT_GRADABLE, State.GRADER_ERROR):
        return "open"
    return f"{number(one.earned)} of {number(one.possible)}"


def findings(one: ExerciseMark, often: Sequence[str] = ()) -> list[str]:
    """Return what was found in one exercise."""
    blocks = [f"## {plain(one.title)} ({one.exercise_id}): {_earned(one)}"]
    if message := message_for(one):
        blocks.append(plain(message))
    cases = () if one.state is State.MISSING else one.cases
    if seen := [_case(case) for case in cases if not case.hidden]:
        blocks.append(items(seen))
    if hidden := sum(case.hidden for case in cases):
        blocks.append(f"{hidden} more case{'s' * (hidden > 1)} kept for grading count{'s' * (hidden == 1)} too.")
    if warnings := [f"Note: {warning}" for warning in one.warnings if warning not in often]:
        blocks.append(items(warnings))
    return blocks


def _case(case: CaseMark) -> str:
    sign = "✓" if case.state is State.OK else "✗"
    why = "" if case.state in (State.OK, State.WRONG) else f" ({IN_WORDS[case.state]})"
    return f"{sign} with {case.name}{why}"
