"""Feedback as a copy of the student's notebook: what was found stands under the cell that it is about.

Outputs, attachments and metadata stay behind: they can be large, and can hold what a browser would run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from ttutor.grading.assignment import Assignment
from ttutor.grading.marks import State
from ttutor.grading.records.record import Record
from ttutor.grading.reports.feedback import findings, summed_up
from ttutor.grading.worker.framing import Malformed, parse_json

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
    for number, (kind, source) in enumerate(cells):
        copied.append((kind, source))
        copied += [_from_grader(below[number])] if number in below else []
    copied += [_from_grader(below[len(cells)])] if len(cells) in below else []
    return notebook_of(copied)


def notebook_of(cells: Iterable[tuple[str, str]]) -> str:
    """Return a notebook of cells, each a kind and a text."""
    written: list[dict[str, Any]] = []
    for number, (kind, source) in enumerate(cells):
        cell = {"id": f"cell-{number}", "cell_type": kind, "metadata": {}, "source": source}
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
    places = [number for number, (kind, source) in enumerate(cells) if kind == "code" and defines.search(source)]
    return places[-1] if places else len(cells)


def _from_grader(blocks: list[str]) -> tuple[str, str]:
    return "markdown", "\n\n".join(["*From the grader.*", *blocks])
