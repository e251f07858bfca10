"""Everything that a run writes beside the records: made anew from the records each time, so that it is never stale."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ttutor.grading.assignment import Assignment
from ttutor.grading.intake.submissions import ClassWork, read_work
from ttutor.grading.records.gradebook import canvas, gradebook, lms_of, moodle
from ttutor.grading.records.record import Record, write_whole
from ttutor.grading.reports.exports import junit
from ttutor.grading.reports.feedback import feedback
from ttutor.grading.reports.markdown import as_html
from ttutor.grading.reports.notebook import feedback_notebook
from ttutor.grading.reports.summary import summary

__all__ = ["write_outputs"]


def write_outputs(
    out: Path,
    assignment: Assignment,
    records: Sequence[Record],
    *,
    work: ClassWork,
    notes: Sequence[str] = (),
    failures: Mapping[str, str],
) -> None:
    """Write gradebook, feedback, exports and summary.

    Args:
        out: the folder of the results.
        assignment: what was asked.
        records: of every student, in order; of one whom the grader failed, a record without marks.
        work: what the class handed in, and its list with the columns that an LMS wants.
        notes: for the instructor.
        failures: of each student whom the grader failed, what went wrong: they get no feedback.
    """
    handed = {one.student: one for one in work.students}
    for record in (record for record in records if record.student not in failures):
        markdown = feedback(assignment, record)
        write_whole(out / "feedback" / f"{record.student}.md", markdown)
        write_whole(out / "feedback" / f"{record.student}.html", as_html(assignment.title, markdown))
        copy = out / "feedback" / f"{record.student}.ipynb"
        copy.unlink(missing_ok=True)
        digests = {digest for name, _, digest in record.files if name.lower().endswith(".ipynb")}
        files = read_work(handed[record.student], assignment.files).files if digests else ()
        graded = [file.data for file in files if hashlib.sha256(file.data).hexdigest() in digests]
        if graded and (notebook := feedback_notebook(assignment, record, graded[-1])) is not None:
            write_whole(copy, notebook)
    write_whole(out / "gradebook.csv", gradebook(assignment, records))
    write_whole(out / "junit.xml", junit(assignment, records))
    write_whole(out / "summary.md", summary(assignment, records, notes))
    pairs = [(record, handed[record.student].on_roster) for record in records]
    for lms, write in (("canvas", canvas), ("moodle", moodle)):
        if lms in lms_of(work.roster):
            write_whole(out / "lms" / f"{lms}.csv", write(assignment, pairs))
    errors = out / "grader-errors.txt"
    errors.unlink(missing_ok=True)
    if failures:
        write_whole(errors, "\n\n".join(f"{one}\n{why.strip()}" for one, why in sorted(failures.items())) + "\n")
