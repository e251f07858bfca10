"""Grading a class from beginning to end: find, mark, write; and again, to the same bytes."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tqdm import tqdm

from ttutor.grading.assignment import Assignment
from ttutor.grading.intake.roster import Roster
from ttutor.grading.intake.submissions import BadSubmissions, ClassWork, Handed, find_work, is_inside, read_work
from ttutor.grading.marking import Marker, mark_side_by_side, real_grader, record_path
from ttutor.grading.marks import State, ungraded
from ttutor.grading.records.by_hand import FILE, read_by_hand, with_marks_by_hand, write_by_hand
from ttutor.grading.records.changes import changes, read_records
from ttutor.grading.records.gradebook import canvas, gradebook, lms_of, moodle
from ttutor.grading.records.record import Record, read_record, write_whole
from ttutor.grading.reports.exports import junit
from ttutor.grading.reports.feedback import feedback
from ttutor.grading.reports.markdown import as_html
from ttutor.grading.reports.notebook import feedback_notebook
from ttutor.grading.reports.summary import summary
from ttutor.grading.sandbox.choose import BUBBLEWRAP, Sandbox

ALL_GRADED, SOME_OPEN, GRADER_ERROR = 0, 1, 3
"""Exit codes: all is graded; a human has to look at some; a mistake of the grader's own."""


@dataclass(frozen=True, kw_only=True)
class Wish:
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


def grade_class(wish: Wish) -> Outcome:
    """Grade a class and write all results.

    Args:
        wish: what is to be graded.

    Raises:
        BadSubmissions: there is nothing to grade, or it lies where the results would go.
        DamagedRecord: the older results cannot be read.
        BadMarks: the marks by hand cannot be read.
    """
    _check_places(wish)
    work = find_work(wish.submissions, wish.roster, wish.student)
    given = read_by_hand(wish.out / FILE, wish.assignment)
    before = read_records(wish.compare) if wish.compare is not None else None
    chosen = _chosen(work, wish.only)
    failures, n_new = _mark(wish, chosen)
    records, left = _collect(wish, work, failures)
    records = [with_marks_by_hand(wish.assignment, one, given) for one in records]
    notes = [*work.notes, *([f"Not graded yet: {', '.join(left)}."] if left else [])]
    write_outputs(wish.out, wish.assignment, records, work, notes, failures)
    write_by_hand(wish.out / FILE, wish.assignment, records, given)
    kept = {record.student: record for record in records if record.student not in failures}
    changed = None if before is None else tuple(changes(before, kept))
    return Outcome(tuple(records), failures, n_new, changed, tuple(work.notes))


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


def _check_places(wish: Wish) -> None:
    if is_inside(wish.out, wish.submissions):
        raise BadSubmissions(f"the results would lie among the submissions ({wish.out}); choose another --out")
    if wish.submissions.is_dir() and is_inside(wish.submissions, wish.out):
        raise BadSubmissions(f"the submissions lie in the folder of the results ({wish.out}); choose another --out")


def _chosen(work: ClassWork, only: Sequence[str]) -> list[Handed]:
    if not only:
        return list(work.students)
    known = {one.student: one for one in work.students}
    if unknown := [name for name in only if name not in known]:
        some = ", ".join(list(known)[:8])
        raise BadSubmissions(
            f"--only {' '.join(unknown)}: there is no such student; ids are as in the gradebook: {some}"
        )
    return [known[name] for name in dict.fromkeys(only)]


def _mark(wish: Wish, chosen: list[Handed]) -> tuple[dict[str, str], int]:
    """Mark those chosen; return whom the grader failed and why, and how many were graded now."""
    hidden = (wish.submissions, wish.out, *wish.hidden, *((wish.own,) if wish.own else ()))
    sandbox = Sandbox(wish.sandbox, hidden, wish.bytecode)
    marker = Marker(wish.assignment, wish.out, sandbox, wish.regrade, wish.own, wish.make_grader)
    failures, n_new = {}, 0
    quiet = sys.stderr is None or not sys.stderr.isatty()
    with tqdm(total=len(chosen), unit="submission", disable=quiet, dynamic_ncols=True, leave=False) as bar:
        for student, is_new, error in mark_side_by_side(marker, chosen, wish.jobs):
            n_new += is_new
            if error:
                failures[student] = error
            bar.update()
    return failures, n_new


def _collect(wish: Wish, work: ClassWork, failures: dict[str, str]) -> tuple[list[Record], list[str]]:
    """Read back what stands for each student now; a failure of the grader's stands without any mark."""
    records, left = [], []
    for one in work.students:
        path = record_path(wish.out, one.student)
        if one.student in failures:
            mark = ungraded(wish.assignment, one.student, State.GRADER_ERROR, wish.sandbox)
            records.append(Record(key="", shown=one.shown, submitted=one.submitted, mark=mark))
        elif path.exists():
            records.append(read_record(path))
        else:
            left.append(one.student)
    return records, left
