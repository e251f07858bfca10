"""Grading a class from beginning to end: find, mark, write; and again, to the same bytes."""

from __future__ import annotations

import difflib
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tqdm import tqdm

from ttutor.errors import InputError
from ttutor.files import sole_writer, write_text
from ttutor.grading.assignment import Assignment
from ttutor.grading.exports import junit
from ttutor.grading.feedback import as_html, feedback, feedback_notebook, summary
from ttutor.grading.gradebook import (
    FILE,
    canvas,
    gradebook,
    lms_of,
    moodle,
    read_by_hand,
    with_marks_by_hand,
    write_by_hand,
)
from ttutor.grading.marking import Marker, mark_side_by_side, real_grader, record_path
from ttutor.grading.marks import State, ungraded
from ttutor.grading.record import Record, changes, read_record, read_records
from ttutor.grading.roster import Roster
from ttutor.grading.sandbox import BUBBLEWRAP, Sandbox
from ttutor.grading.submission import ClassWork, FoundSubmission, find_work, is_inside, read_work

LOCK = ".grading"
ALL_GRADED, SOME_OPEN, GRADER_ERROR = 0, 1, 3
"""Exit codes: all is graded; a human has to look at some; a mistake of the grader's own."""


@dataclass(frozen=True, kw_only=True)
class GradeRequest:
    """What is to be graded, and how.

    Args:
        submissions: the folder, zip or file.
        assignment: what was asked.
        out: the folder for the results.
        jobs: how many submissions at a time.
        roster: the class, if there is a list of it.
        student: all that lies there is the work of this one.
        only: the ids of those to grade; the others keep the marks that they have.
        regrade: grade again what is graded already.
        sandbox: how submissions are shut in.
        compare: a folder of older results, of which every changed mark is listed.
        own: a folder of exercises of one's own.
        hidden: places beside submissions and results that no submission may read.
        bytecode: where the bytecode of a worker's packages stands, see `Sandbox`.
        make_grader: makes a grader, given assignment, sandbox and own exercises.
    """

    submissions: Path
    assignment: Assignment
    out: Path
    jobs: int = 1
    roster: Roster = field(default_factory=Roster)
    student: str | None = None
    only: tuple[str, ...] = ()
    regrade: bool = False
    sandbox: str = BUBBLEWRAP
    own: Path | None = None
    hidden: tuple[Path, ...] = ()
    bytecode: Path | None = None
    compare: Path | None = None
    make_grader: Callable[[Assignment, Sandbox, Path | None], Any] = real_grader


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Args:
        records: of everyone, in the order of the ids.
        failures: of each student whom the grader failed, what went wrong.
        n_new: how many were graded now.
        changed: every mark that differs from the older results.
        notes: what was found while collecting.
    """

    records: tuple[Record, ...]
    failures: dict[str, str]
    n_new: int
    changed: tuple[str, ...] | None
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 all graded, 1 some for a human to look at, 3 a mistake of the grader's own."""
        if self.failures:
            return GRADER_ERROR
        ambiguous = any("was given to nobody" in note for note in self.notes)
        return SOME_OPEN if ambiguous or any(record.is_open for record in self.records) else ALL_GRADED


def grade_class(request: GradeRequest) -> Outcome:
    """Grade a class and write all results.

    Args:
        request: what is to be graded.

    Raises:
        InputError: there is nothing to grade, or it lies where the results would go.
        FileError: another process grades there; the older results or the marks by hand cannot be read; or results
            cannot be written, as where the disk is full. What was graded before stands.
    """
    _check_places(request)
    with sole_writer(request.out / LOCK):
        return _grade_class(request)


def _grade_class(request: GradeRequest) -> Outcome:
    work = find_work(request.submissions, request.roster, request.student)
    _check_extensions(request.assignment, work)
    given = read_by_hand(request.out / FILE, request.assignment)
    before = read_records(request.compare) if request.compare is not None else None
    chosen = _chosen(work, request.only)
    failures, n_new = _mark(request, chosen)
    records, left = _collect(request, work, failures)
    records = [with_marks_by_hand(request.assignment, one, given) for one in records]
    notes = [*work.notes, *_without_times(request), *([f"Not graded yet: {', '.join(left)}."] if left else [])]
    write_outputs(request.out, request.assignment, records, work, notes, failures)
    write_by_hand(request.out / FILE, request.assignment, records, given)
    kept = {record.student: record for record in records if record.student not in failures}
    changed = None if before is None else tuple(changes(before, kept))
    return Outcome(tuple(records), failures, n_new, changed, (*work.notes, *_without_times(request)))


def write_outputs(
    out: Path,
    assignment: Assignment,
    records: Sequence[Record],
    work: ClassWork,
    notes: Sequence[str] = (),
    failures: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write everything beside the records: made anew from them each time, so that it is never stale.

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
        write_text(out / "feedback" / f"{record.student}.md", markdown)
        write_text(out / "feedback" / f"{record.student}.html", as_html(assignment.title, markdown))
        copy = out / "feedback" / f"{record.student}.ipynb"
        copy.unlink(missing_ok=True)
        digests = {digest for name, _, digest in record.files if name.lower().endswith(".ipynb")}
        files = read_work(handed[record.student], assignment.files).files if digests else ()
        graded = [file.data for file in files if hashlib.sha256(file.data).hexdigest() in digests]
        if graded and (notebook := feedback_notebook(assignment, record, graded[-1])) is not None:
            write_text(copy, notebook)
    write_text(out / "gradebook.csv", gradebook(assignment, records))
    write_text(out / "junit.xml", junit(assignment, records))
    write_text(out / "summary.md", summary(assignment, records, notes))
    pairs = [(record, handed[record.student].on_roster) for record in records]
    for lms, write in (("canvas", canvas), ("moodle", moodle)):
        if lms in lms_of(work.roster):
            write_text(out / "lms" / f"{lms}.csv", write(assignment, pairs))
    errors = out / "grader-errors.txt"
    errors.unlink(missing_ok=True)
    if failures:
        write_text(errors, "\n\n".join(f"{one}\n{why.strip()}" for one, why in sorted(failures.items())) + "\n")


def _check_extensions(assignment: Assignment, work: ClassWork) -> None:
    """Refuse a deadline of somebody who is not there: it would be somebody's, and have no effect."""
    known = {one.student for one in work.students}
    if unknown := [name for name in assignment.extensions if name not in known]:
        near = [one for name in unknown for one in difflib.get_close_matches(name, known, n=2, cutoff=0.4)]
        some = ", ".join(near or sorted(known)[:8])
        raise InputError(f"[extensions] {', '.join(unknown)}: there is no such student; ids are such as {some}")


def _check_places(request: GradeRequest) -> None:
    if is_inside(request.out, request.submissions):
        raise InputError(f"the results would lie among the submissions ({request.out}); choose another --out")
    if request.submissions.is_dir() and is_inside(request.submissions, request.out):
        raise InputError(f"the submissions lie in the folder of the results ({request.out}); choose another --out")


def _chosen(work: ClassWork, only: Sequence[str]) -> list[FoundSubmission]:
    if not only:
        return list(work.students)
    known = {one.student: one for one in work.students}
    if unknown := [name for name in only if name not in known]:
        some = ", ".join(list(known)[:8])
        raise InputError(f"--only {' '.join(unknown)}: there is no such student; ids are as in the gradebook: {some}")
    return [known[name] for name in dict.fromkeys(only)]


def _without_times(request: GradeRequest) -> list[str]:
    """A note where a deadline has no effect, since nobody says when work came in: Moodle's list does not."""
    has_times = any(one.submitted for one in request.roster.students)
    if request.assignment.deadline is None or has_times:
        return []
    return ["The deadline has no effect: add a column `submitted` to the list of the class, with times and offsets."]


def _mark(request: GradeRequest, chosen: list[FoundSubmission]) -> tuple[dict[str, str], int]:
    """Mark those chosen; return whom the grader failed and why, and how many were graded now."""
    hidden = (request.submissions, request.out, *request.hidden, *((request.own,) if request.own else ()))
    sandbox = Sandbox(request.sandbox, hidden, request.bytecode)
    marker = Marker(request.assignment, request.out, sandbox, request.regrade, request.own, request.make_grader)
    failures, n_new = {}, 0
    quiet = sys.stderr is None or not sys.stderr.isatty()
    with tqdm(total=len(chosen), unit="submission", disable=quiet, dynamic_ncols=True, leave=False) as bar:
        for student, is_new, error in mark_side_by_side(marker, chosen, request.jobs):
            n_new += is_new
            if error:
                failures[student] = error
            bar.update()
    return failures, n_new


def _collect(request: GradeRequest, work: ClassWork, failures: dict[str, str]) -> tuple[list[Record], list[str]]:
    """Read back what stands for each student now; a failure of the grader's stands without any mark."""
    records, left = [], []
    for one in work.students:
        path = record_path(request.out, one.student)
        if one.student in failures:
            mark = ungraded(request.assignment, one.student, State.GRADER_ERROR, request.sandbox)
            records.append(Record(key="", shown=one.shown, submitted=one.submitted, mark=mark))
        elif path.exists():
            records.append(read_record(path))
        else:
            left.append(one.student)
    return records, left
