"""Markdown in which whatever a text holds comes out as text, and the same as a page of HTML.

Of Markdown only code between single backticks is kept, since our own sentences use it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt

from ttutor.grading.assignment import Assignment
from ttutor.grading.marks import CaseMark, ExerciseMark, State, number
from ttutor.grading.record import Record
from ttutor.grading.worker.framing import Malformed, parse_json

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
    line = "".join(one if one.isprintable() else "\ufffd" for one in " ".join(text.split()))
    parts = CODE.split(line)  # text and code in turn
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
    if record.mark.state is State.OK:
        rows = [(one.title, IN_WORDS[one.state], _earned(one)) for one in record.mark.exercises]
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


def findings(one: ExerciseMark) -> list[str]:
    """Return what was found in one exercise."""
    blocks = [f"## {plain(one.title)} ({one.exercise_id}): {_earned(one)}"]
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
