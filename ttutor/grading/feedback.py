"""What is said of marks in words: a page for each student, and one for the instructor about the class.

It is Markdown in which whatever a text holds comes out as text, and the same as a page of HTML. Of Markdown only code
between single backticks is kept, since our own sentences use it.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from markdown_it import MarkdownIt

from ttutor.grading.assignment import Assignment, ByHand, Worth
from ttutor.grading.marks import CaseMark, ExerciseMark, State, counted, number
from ttutor.grading.record import Record
from ttutor.grading.worker.framing import Malformed, parse_json
from ttutor.texts import printable

CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
SIGNS = re.compile(r"([\\`*_\[\]#|~!{}])")
HEAD = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
    'content="default-src \'none\'; style-src \'unsafe-inline\'"><meta name="viewport" content="width=device-width">'
    "<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:48em;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{border:1px solid #8a8f98;padding:.25rem .6rem;text-align:left}"
    "code{overflow-wrap:anywhere}</style>"
)


def plain(text: str) -> str:
    """Return a text on one line, all of it escaped but code between backticks.

    >>> plain("# <b> in `x_1`")
    '\\\\# &lt;b&gt; in `x_1`'
    """
    parts = CODE.split(printable(" ".join(text.split())))  # text and code in turn
    return "".join(
        f"`{part}`" if index % 2 else SIGNS.sub(r"\\\1", html.escape(part, quote=False))
        for index, part in enumerate(parts)
    )


def items(texts: Iterable[str]) -> str:
    """Return a list of texts."""
    return "\n".join(f"- {plain(text)}" for text in texts)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    cells = [[re.sub(r"(?<!\\)\|", r"\\|", plain(cell)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *cells))


def page(title: str, blocks: Iterable[str]) -> str:
    """Return a page: a title, and blocks of Markdown below it."""
    return "\n\n".join([f"# {plain(title)}", *blocks]) + "\n"


def as_html(title: str, markdown: str) -> str:
    """Return a page as HTML that loads and runs nothing."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return f"{HEAD}<title>{html.escape(title)}</title></head><body>\n{body}</body></html>\n"


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
BY_HAND = "waits for a mark by hand"
NO_MARK = (State.NOT_GRADABLE, State.GRADER_ERROR)
KEPT_BACK = (
    "It is right on the cases that you can see, or goes wrong on others too: try inputs of other shapes and sizes."
)


def feedback(assignment: Assignment, record: Record) -> str:
    """Return the page for one student, as Markdown."""
    return page(f"{assignment.title}: {record.shown}", _blocks(assignment, record))


def in_words(one: ExerciseMark) -> str:
    """Return how an exercise ended; what has no cases to run waits, and has not failed."""
    if "." not in one.exercise_id and one.state in (State.OK, State.WRONG):
        return "marked by hand"
    return BY_HAND if one.state is State.NOT_GRADABLE and not one.cases else IN_WORDS[one.state]


def message_for(one: ExerciseMark) -> str:
    """Return the message of an exercise, or another where it names a hidden case."""
    return KEPT_BACK if any(case.hidden and case.name in one.message for case in one.cases) else one.message


def _blocks(assignment: Assignment, record: Record) -> Iterator[str]:
    yield from summed_up(assignment, record)
    if record.problem is not None:
        yield plain(record.problem)
    if record.mark.state is State.OK:
        rows = [(one.title, in_words(one), _earned(one)) for one in record.mark.exercises]
        yield table(("Exercise", "State", "Points"), rows)
        for one in record.mark.exercises:
            yield from findings(one)
    if record.mark.notes:
        yield from ("## Notes", items(record.mark.notes))
    if record.files:
        names = ", ".join(f"`{name.replace('`', chr(39))}` ({size} bytes)" for name, size, _ in record.files)
        yield plain(f"Graded: {names}.")


def summed_up(assignment: Assignment, record: Record) -> list[str]:
    """Return what a submission came to, and how late it was."""
    if record.late is None or record.late.hours <= 0:
        return [_sum(assignment, record)]
    cost = f"; {number(record.late.percent)} % of the total were taken off" if record.late.percent else ""
    late = f"It came {counted(record.late.hours, 'hour')} after the deadline{cost}."
    return [_sum(assignment, record), late]


def _sum(assignment: Assignment, record: Record) -> str:
    if record.mark.state is State.MISSING:
        return f"Nothing was handed in: 0 of {number(assignment.possible)} points."
    if record.total is None:
        return "There is no total yet: a person has to look at it first."
    return f"{number(record.total)} of {number(assignment.possible)} points."


def _earned(one: ExerciseMark) -> str:
    if one.state in NO_MARK:
        return "open"
    return f"{number(one.earned)} of {number(one.possible)}"


def findings(one: ExerciseMark) -> list[str]:
    """Return what was found in one exercise."""
    name = f" ({one.exercise_id})" if "." in one.exercise_id else ""  # a piece marked by hand has only its title
    blocks = [f"## {plain(one.title)}{name}: {_earned(one)}"]
    if message := message_for(one):
        blocks.append(plain(message))
    cases = () if one.state is State.MISSING else one.cases
    if seen := [_case(case) for case in cases if not case.hidden]:
        blocks.append(items(seen))
    if hidden := sum(case.hidden for case in cases):
        blocks.append(f"{hidden} more case{'s' * (hidden > 1)} kept for grading count{'s' * (hidden == 1)} too.")
    if one.warnings:
        blocks += ["A person may want to look at these, for which the exercise gives no reason:", items(one.warnings)]
    return blocks


def _case(case: CaseMark) -> str:
    sign = "✓" if case.state is State.OK else "✗"
    why = "" if case.state in (State.OK, State.WRONG) else f" ({IN_WORDS[case.state]})"
    return f"{sign} with {case.name}{why}"


MOST_BYTES, MOST_CELLS = 8 << 20, 5000
KINDS = ("code", "markdown", "raw")


def feedback_notebook(assignment: Assignment, record: Record, data: bytes) -> str | None:
    """Return a notebook with the findings in it, or None where the bytes are none that can be copied."""
    cells = _cells(data)
    if cells is None or record.mark.state is not State.OK:
        return None
    below: dict[int, list[str]] = {}
    for one in record.mark.exercises:
        place = _place(cells, one.exercise_id.rpartition(".")[2])
        below.setdefault(place, []).extend(findings(one))
    copied = [_from_grader(summed_up(assignment, record))]
    for count, (kind, source) in enumerate(cells):
        copied.append((kind, source))
        copied += [_from_grader(below[count])] if count in below else []
    copied += [_from_grader(below[len(cells)])] if len(cells) in below else []
    return notebook_of(copied)


def notebook_of(cells: Iterable[tuple[str, str]]) -> str:
    """Return a notebook of cells, each a kind and a text."""
    written: list[dict[str, Any]] = []
    for count, (kind, source) in enumerate(cells):
        cell = {"id": f"cell-{count}", "cell_type": kind, "metadata": {}, "source": source}
        written.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    table = {"cells": written, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(table, indent=1) + "\n"


def _cells(data: bytes) -> list[tuple[str, str]] | None:
    """Kind and text of each cell; None where a notebook of format 4 is expected and something else came."""
    if len(data) > MOST_BYTES:
        return None
    try:
        cells = parse_json(data.removeprefix(b"\xef\xbb\xbf"))["cells"]
        found = [(cell["cell_type"], _text(cell["source"])) for cell in cells]
    except (Malformed, KeyError, TypeError, IndexError):
        return None
    fits = len(found) <= MOST_CELLS and all(kind in KINDS for kind, _ in found)
    return found if fits else None


def _text(source: Any) -> str:
    if isinstance(source, str):
        return source
    return "".join(line for line in source if isinstance(line, str))


def _place(cells: list[tuple[str, str]], name: str) -> int:
    """The last cell that defines an answer, or the end where none does."""
    defines = re.compile(rf"^(?:(?:async )?def|class) (?:my_)?{re.escape(name)}\b|^(?:my_)?{re.escape(name)} *=", re.M)
    places = [count for count, (kind, source) in enumerate(cells) if kind == "code" and defines.search(source)]
    return places[-1] if places else len(cells)


def _from_grader(blocks: list[str]) -> tuple[str, str]:
    return "markdown", "\n\n".join(["*From the grader.*", *blocks])


HEADER = ("Exercise", "Hint", "Students")


def summary(assignment: Assignment, records: Sequence[Record], notes: Sequence[str] = ()) -> str:
    """Return the page for the instructor, as Markdown."""
    blocks = [_counted(records), *_totals(assignment, records), "## Exercises", _exercises(assignment, records)]
    hints = [(exercise, hint, str(count), _says(exercise, hint)) for exercise, hint, count in misconceptions(records)]
    if known := [row for row in hints if row[3]]:
        blocks += ["## What was misunderstood", table((*HEADER, "What they are told"), known)]
    if others := [row[:3] for row in hints if not row[3]]:
        blocks += ["## Other trouble", table(HEADER, others)]
    urgent = [f"{one.student} ({one.shown}): {why_open(assignment, one)}" for one in to_look_at(assignment, records)]
    for heading, sentences in (
        ("To look at", [*urgent, *wait_for_marks(assignment, records)]),
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
    """Return lines for the terminal: the average, and the totals in ten equal steps, full marks apart."""
    totals = [one.total for one in records if one.mark.state is State.OK and one.total is not None]
    if not totals:
        return []
    counts = Counter(min(int(10 * total / assignment.possible), 10) for total in totals)
    steps = [(step, counts[step]) for step in range(11)]
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
    return f"{counted(len(records), 'student')}: {', '.join([f'{graded} graded', *rest])}."


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


def to_look_at(assignment: Assignment, records: Sequence[Record]) -> list[Record]:
    """Return those that a person has to look at for more than what is marked by hand anyway."""
    return [one for one in records if one.mark.state in NO_MARK or _open(assignment.exercises, one)]


def wait_for_marks(assignment: Assignment, records: Sequence[Record]) -> list[str]:
    """Return one sentence for all who wait for a mark by hand, or nothing."""
    waiting = [found for record in records if (found := _open(assignment.by_hand, record))]
    pieces = dict.fromkeys(piece for found in waiting for piece in found)
    wait = "waits" if len(waiting) == 1 else "wait"
    return [f"{len(waiting)} {wait} for a mark by hand: {', '.join(pieces)}"] if waiting else []


def _open(asked: Sequence[Worth | ByHand], record: Record) -> list[str]:
    """Which of some pieces wait for a person."""
    ids = {one.exercise_id for one in asked}
    return [one.exercise_id for one in record.mark.exercises if one.state in NO_MARK and one.exercise_id in ids]


def why_open(assignment: Assignment, record: Record) -> str:
    """Return why a person has to look at a submission before it has a total, marks by hand aside."""
    if record.mark.state is State.GRADER_ERROR:
        return "The grader made a mistake of its own: see grader-errors.txt."
    which = _open(assignment.exercises, record)
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
        f"{record.student}: {counted(record.late.hours, 'hour')}"
        + (f", {number(record.late.percent)} % taken off" if record.late.percent else "")
        for record in records
        if record.late is not None and record.late.hours > 0
    )
