"""What a class has understood: how each exercise went, which misconception hit how many, what to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from ttutor.grading.assignment import Assignment
from ttutor.grading.feedback import items, page, plain, table
from ttutor.grading.marks import ExerciseMark, State, number
from ttutor.grading.record import Record

HEADER = ("Exercise", "Hint", "Students")


def summary(assignment: Assignment, records: Sequence[Record], notes: Sequence[str] = ()) -> str:
    """Return the page for the instructor, as Markdown."""
    blocks = [_counted(records), *_totals(assignment, records), "## Exercises", _exercises(assignment, records)]
    hints = [(exercise, hint, str(count), _says(exercise, hint)) for exercise, hint, count in misconceptions(records)]
    if known := [row for row in hints if row[3]]:
        blocks += ["## What was misunderstood", table((*HEADER, "What they are told"), known)]
    if others := [row[:3] for row in hints if not row[3]]:
        blocks += ["## Other trouble", table(HEADER, others)]
    for heading, sentences in (
        ("To look at", [f"{one.student} ({one.shown}): {why_open(one)}" for one in records if one.is_open]),
        ("Look at these", look_at_these(records)),
        ("Late", _late(records)),
        ("Notes", notes),
    ):
        if sentences:
            blocks += [f"## {heading}", items(sentences)]
    sandboxes = ", ".join(sorted({record.mark.sandbox for record in records}))
    blocks.append(plain(f"Sandbox: {sandboxes}."))
    return page(assignment.title, blocks)


def overview(assignment: Assignment, records: Sequence[Record]) -> list[str]:
    """Return lines for the terminal: the average, and how the totals are distributed over ten equal steps."""
    totals = [one.total for one in records if one.mark.state is State.OK and one.total is not None]
    if not totals:
        return []
    counts = Counter(min(int(10 * total / assignment.possible), 9) for total in totals)
    steps = [(step, counts[step]) for step in range(10)]
    width = max(count for _, count in steps)
    bars = [f"{10 * step:3} % {'█' * -(-20 * count // width)} {count}" for step, count in steps if count]
    return _totals(assignment, records) + bars


def misconceptions(records: Sequence[Record]) -> list[tuple[str, str, int]]:
    """Return exercise, hint and how many students it hit, the most frequent first."""
    hit = Counter(
        (one.exercise_id, one.hint_id)
        for record in records
        for one in record.mark.exercises
        if one.hint_id is not None and one.state is not State.MISSING
    )
    return sorted(((*pair, count) for pair, count in hit.items()), key=lambda row: (-row[2], row[0], row[1]))


def _counted(records: Sequence[Record]) -> str:
    states = Counter(record.mark.state for record in records)
    graded = states.pop(State.OK, 0)
    rest = [f"{count} {state.value.replace('_', ' ')}" for state, count in sorted(states.items())]
    return f"{len(records)} students: {', '.join([f'{graded} graded', *rest])}."


def _totals(assignment: Assignment, records: Sequence[Record]) -> list[str]:
    totals = [one.total for one in records if one.mark.state is State.OK and one.total is not None]
    if not totals:
        return []
    mean, middle = number(round(sum(totals) / len(totals), 2)), number(median(totals))
    return [f"Of {number(assignment.possible)} points those graded have {mean} on average, {middle} in the middle."]


def _exercises(assignment: Assignment, records: Sequence[Record]) -> str:
    rows = []
    for worth in assignment.columns:
        marks = _marks(records, worth.exercise_id)
        states = Counter(one.state for one in marks)
        counted = [states[state] for state in (State.OK, State.WRONG, State.ERROR, State.TIMEOUT, State.CRASH)]
        tried = [one.earned for one in marks if one.state not in (State.MISSING, State.NOT_GRADABLE)]
        mean = number(round(sum(tried) / len(tried), 2)) if tried else ""
        rows.append((worth.exercise_id, *map(str, counted), str(states[State.MISSING]), mean, number(worth.points)))
    header = ("Exercise", "right", "wrong", "error", "timeout", "crash", "missing", "mean of those tried", "worth")
    return table(header, rows)


def _marks(records: Sequence[Record], exercise_id: str) -> list[ExerciseMark]:
    return [
        one
        for record in records
        if record.mark.state is State.OK
        for one in record.mark.exercises
        if one.exercise_id == exercise_id
    ]


def _says(exercise_id: str, hint_id: str) -> str:
    """The sentence of a hint, or "" where it is the judge's own, such as `raises`, and speaks by its name."""
    from ttutor.exercises.registry import find

    exercise = find(exercise_id)
    hints = [(one.id, one.says) for one in exercise.mistakes] + [(one.id, one.says) for one in exercise.properties]
    return dict(hints).get(hint_id, "")


def why_open(record: Record) -> str:
    """Return why a person has to look at a submission before it has a total."""
    if record.mark.state is State.GRADER_ERROR:
        return "The grader made a mistake of its own: see grader-errors.txt."
    which = [one.exercise_id for one in record.mark.exercises if one.state is State.NOT_GRADABLE]
    said = [record.problem or "", f"Open: {', '.join(which)}." if which else "", *record.mark.notes]
    return " ".join(filter(None, said)) or record.mark.state.value


def look_at_these(records: Sequence[Record]) -> tuple[str, ...]:
    """Return what stands in answers that their exercises give no reason for, a sentence for each exercise."""
    return tuple(
        f"{record.student}: {one.exercise_id}: {'; '.join(one.warnings)}"
        for record in records
        for one in record.mark.exercises
        if one.warnings
    )


def _late(records: Sequence[Record]) -> tuple[str, ...]:
    return tuple(
        f"{record.student}: {number(record.late.hours)} hours"
        + (f", {number(record.late.percent)} % taken off" if record.late.percent else "")
        for record in records
        if record.late is not None and record.late.hours > 0
    )
