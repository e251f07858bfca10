"""The marks as other programs read them: Gradescope, GitHub Classroom, and whatever reads JUnit's XML.

None holds the name of a hidden case: all are shown to students by some of the programs that read them.
"""

from __future__ import annotations

import base64
import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from functools import partial
from typing import Any

from ttutor.grading.assignment import Assignment
from ttutor.grading.feedback import IN_WORDS, in_words, message_for
from ttutor.grading.marks import CaseMark, ExerciseMark, State
from ttutor.grading.record import Record
from ttutor.texts import printable

_printable = partial(printable, kept="\n\t")  # what XML 1.0 and a terminal can hold of a text
TAGS = dict.fromkeys((State.WRONG, State.ERROR, State.TIMEOUT, State.CRASH), "failure")
TAGS |= {State.MISSING: "skipped", State.NOT_GRADABLE: "error", State.GRADER_ERROR: "error"}


def gradescope(assignment: Assignment, record: Record) -> str:
    """Return one submission as Gradescope's autograder expects it.

    An exercise is one entry for what its student may see, and one for its hidden cases, whose visibility is the
    assignment's. Where a human has to look first there is no score: Gradescope then shows the run as failed.
    """
    tests = [entry for one in record.mark.exercises for entry in _entries(assignment, one)]
    output = [record.problem or "", *record.mark.notes, f"Sandbox: {record.mark.sandbox}."]
    table: dict[str, Any] = {
        "output": "\n".join(_printable(line) for line in output if line),
        "output_format": "text",
        "visibility": assignment.visibility.results,
        "stdout_visibility": "hidden",
        "tests": [] if record.is_open else tests,
        "extra_data": {"state": record.state},  # no key: the secret seed could be guessed from it
    }
    if record.total is not None:
        table = {"score": record.total, **table}
    return json.dumps(table, indent=1) + "\n"


def classroom(assignment: Assignment, record: Record) -> str:
    """Return one submission as the runners of GitHub Classroom do: JSON in base64, a score for each exercise.

    ``classroom-resources/autograding-grading-reporter`` adds the scores up, so parts of the points count. What
    lateness costs is not among them: a workflow runs when something is pushed, not when it is due.
    """
    tests = [
        {
            "name": one.exercise_id,
            "status": "pass" if one.state is State.OK else "fail",
            "score": 0.0 if record.is_open else round(one.earned, 4),
            "message": _why(record, one),
        }
        for one in record.mark.exercises
    ]
    status = "pass" if all(test["status"] == "pass" for test in tests) and not record.is_open else "fail"
    result = {"version": 1, "status": status, "max_score": assignment.possible, "tests": tests}
    return base64.b64encode(json.dumps(result).encode()).decode()


def junit(assignment: Assignment, records: Sequence[Record]) -> str:
    """Return a class as JUnit's XML: a suite for each student, a test for each exercise, with its points."""
    root = ET.Element("testsuites", name=_printable(assignment.title))
    for record in records:
        suite = ET.SubElement(root, "testsuite", name=record.student)
        for one in record.mark.exercises:
            test = ET.SubElement(suite, "testcase", classname=record.student, name=one.exercise_id)
            properties = ET.SubElement(test, "properties")
            for name, points in (("earned", one.earned), ("possible", one.possible)):
                ET.SubElement(properties, "property", name=name, value=f"{points:g}")
            if tag := "error" if record.is_open else TAGS.get(one.state):
                ET.SubElement(test, tag, message=_why(record, one))
    for part in (root, *root):
        counted = (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
        for name, tag in counted:
            part.set(name, str(len(part.findall(f".//{tag}"))))
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _entries(assignment: Assignment, one: ExerciseMark) -> list[dict[str, Any]]:
    seen = tuple(case for case in one.cases if not case.hidden)
    text = f"{in_words(one)}. {message_for(one)}".strip()
    if len(seen) == len(one.cases):
        return [_entry(one.title, one.earned, one.possible, one.state is State.OK, assignment.visibility.results, text)]
    earned, possible = _share(one, seen)
    rest = max(0.0, one.earned - earned), max(0.0, one.possible - possible)
    kept, about = f"{one.title}: cases kept for grading", "They try inputs that nobody has seen."
    return [
        _entry(one.title, earned, possible, one.state is State.OK, assignment.visibility.results, text),
        _entry(kept, *rest, rest[0] >= rest[1], assignment.visibility.hidden_cases, about),
    ]


def _entry(name: str, earned: float, possible: float, right: bool, visibility: str, output: str) -> dict[str, Any]:
    return {
        "name": _printable(name),
        "score": round(earned, 4),
        "max_score": round(possible, 4),
        "status": "passed" if right else "failed",
        "output": _printable(output),
        "output_format": "text",
        "visibility": visibility,
    }


def _share(one: ExerciseMark, cases: tuple[CaseMark, ...]) -> tuple[float, float]:
    """What some of an exercise's cases earned and are worth, in the assignment's points."""
    whole = sum(case.possible for case in one.cases) or 1
    earned, possible = sum(case.earned for case in cases), sum(case.possible for case in cases)
    return one.possible * earned / whole, one.possible * possible / whole


def _why(record: Record, one: ExerciseMark) -> str:
    if record.mark.state in (State.NOT_GRADABLE, State.GRADER_ERROR):
        return IN_WORDS[record.mark.state]
    return _printable(message_for(one) or in_words(one))
