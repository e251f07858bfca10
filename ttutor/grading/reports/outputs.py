"""Everything that a run writes beside the records: made anew from the records each time, so that it is never stale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ttutor.grading.assignment import Assignment
from ttutor.grading.intake.roster import Roster, Student
from ttutor.grading.records.gradebook import canvas, gradebook, lms_of, moodle
from ttutor.grading.records.record import Record, write_whole
from ttutor.grading.reports.exports import gradescope, junit
from ttutor.grading.reports.feedback import feedback
from ttutor.grading.reports.summary import summary

__all__ = ["write_outputs"]


def write_outputs(
    out: Path,
    assignment: Assignment,
    records: Sequence[Record],
    *,
    roster: Roster,
    rows: Mapping[str, Student | None],
    notes: Sequence[str] = (),
    failures: Mapping[str, str],
) -> None:
    """Write gradebook, feedback, exports and summary.

    Args:
        out: the folder of the results.
        assignment: what was asked.
        records: of every student, in order; of one whom the grader failed, a record without marks.
        roster: the class, for the columns that an LMS wants.
        rows: of each student the row in it, or None.
        notes: for the instructor.
        failures: of each student whom the grader failed, what went wrong: they get no feedback and no export.
    """
    graded = [record for record in records if record.student not in failures]
    for record in graded:
        markdown, html = feedback(assignment, record)
        write_whole(out / "feedback" / f"{record.student}.md", markdown)
        write_whole(out / "feedback" / f"{record.student}.html", html)
        write_whole(out / "gradescope" / f"{record.student}.json", gradescope(assignment, record))
    write_whole(out / "gradebook.csv", gradebook(assignment, records))
    write_whole(out / "junit.xml", junit(assignment, records))
    write_whole(out / "summary.md", summary(assignment, records, notes))
    pairs = [(record, rows.get(record.student)) for record in records]
    for lms, write in (("canvas", canvas), ("moodle", moodle)):
        if lms in lms_of(roster):
            write_whole(out / "lms" / f"{lms}.csv", write(assignment, pairs))
    _write_failures(out / "grader-errors.txt", failures)


def _write_failures(path: Path, failures: Mapping[str, str]) -> None:
    if failures:
        write_whole(path, "\n\n".join(f"{student}\n{why.strip()}" for student, why in sorted(failures.items())) + "\n")
    else:
        path.unlink(missing_ok=True)
