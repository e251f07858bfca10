"""Grading a class from beginning to end: find, mark, write; and again, to the same bytes."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ttutor.grading.assignment import Assignment
from ttutor.grading.intake.roster import Roster
from ttutor.grading.intake.submissions import BadSubmissions, ClassWork, Handed, find_work, is_inside, read_work
from ttutor.grading.mark_one import Marker, record_path, ungraded
from ttutor.grading.marks import State
from ttutor.grading.parallel import OpenGrader, grade_in_parallel, real_grader
from ttutor.grading.records.by_hand import FILE, read_by_hand, with_marks_by_hand, write_by_hand
from ttutor.grading.records.changes import changes, read_records
from ttutor.grading.records.record import Record, read_record, write_whole
from ttutor.grading.reports.notebook import feedback_notebook
from ttutor.grading.reports.outputs import write_outputs
from ttutor.grading.sandbox.choose import BUBBLEWRAP, KINDS

__all__ = ["ALL_GRADED", "GRADER_ERROR", "SOME_OPEN", "Outcome", "Wish", "grade_class"]

ALL_GRADED, SOME_OPEN, USAGE, GRADER_ERROR = 0, 1, 2, 3
"""Exit codes: all is graded; a human has to look at some; something to mend; a mistake of the grader's own."""


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
        open_grader: opens a grader, given assignment, sandbox, hidden places and own exercises.
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
    compare: Path | None = None
    open_grader: OpenGrader = real_grader


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Args:
        records: of everyone, in the order of the ids.
        failures: of each student whom the grader failed, what went wrong.
        n_new: how many were graded now.
        left: the students who were left out, having no marks yet.
        changed: every mark that differs from the older results.
        notes: what was found while collecting.
    """

    records: tuple[Record, ...]
    failures: dict[str, str]
    n_new: int
    left: tuple[str, ...]
    changed: tuple[str, ...] | None
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 all graded, 1 some for a human to look at, 3 a mistake of the grader's own."""
        if self.failures:
            return GRADER_ERROR
        ambiguous = any("was given to nobody" in note for note in self.notes)
        return SOME_OPEN if ambiguous or any(record.is_open for record in self.records) else ALL_GRADED


def grade_class(wish: Wish, tell: Callable[[str], None] = lambda line: None) -> Outcome:
    """Grade a class and write all results.

    Args:
        wish: what is to be graded.
        tell: is told what an instructor wants to know meanwhile.

    Raises:
        BadSubmissions: there is nothing to grade, or it lies where the results would go.
        CannotGrade: no grader can be opened.
        DamagedRecord: the older results cannot be read.
        BadMarks: the marks by hand cannot be read.
    """
    _check_places(wish)
    work = find_work(wish.submissions, wish.roster, wish.student)
    given = read_by_hand(wish.out / FILE, wish.assignment)
    before = read_records(wish.compare) if wish.compare is not None else None
    chosen = _chosen(work, wish.only)
    tell(f"Sandbox: {wish.sandbox}: {KINDS[wish.sandbox]}.")
    failures, n_new = _mark(wish, chosen)
    records, left = _collect(wish, work, failures)
    records = [with_marks_by_hand(wish.assignment, one, given) for one in records]
    notes = [*work.notes, *([f"Not graded yet: {', '.join(left)}."] if left else [])]
    write_outputs(
        wish.out,
        wish.assignment,
        records,
        roster=work.roster,
        rows={one.student: one.on_roster for one in work.students},
        notes=notes,
        failures=failures,
    )
    _write_notebooks(wish, work, records)
    write_by_hand(wish.out / FILE, wish.assignment, records, given)
    kept = {record.student: record for record in records if record.student not in failures}
    changed = None if before is None else tuple(changes(before, kept))
    return Outcome(tuple(records), failures, n_new, tuple(left), changed, tuple(work.notes))


def _write_notebooks(wish: Wish, work: ClassWork, records: Sequence[Record]) -> None:
    """Write the feedback that is a copy of the notebook which was graded, if it still lies there."""
    handed = {one.student: one for one in work.students}
    for record in records:
        text, digests = None, {digest for name, _, digest in record.files if name.lower().endswith(".ipynb")}
        files = read_work(handed[record.student], wish.assignment.files).files if digests else ()
        graded = [file.data for file in files if hashlib.sha256(file.data).hexdigest() in digests]
        if graded:
            text = feedback_notebook(wish.assignment, record, graded[-1])
        path = wish.out / "feedback" / f"{record.student}.ipynb"
        if text is None:
            path.unlink(missing_ok=True)
        else:
            write_whole(path, text)


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
    marker = Marker(wish.assignment, wish.out, wish.sandbox, wish.regrade)
    hidden = (wish.submissions, wish.out, *wish.hidden, *((wish.own,) if wish.own else ()))
    open_grader = partial(wish.open_grader, sandbox=wish.sandbox, hidden=hidden, own=wish.own)
    failures, n_new = {}, 0
    with _bar(len(chosen)) as bar:
        for done in grade_in_parallel(marker, chosen, jobs=wish.jobs, open_grader=open_grader):
            n_new += done.is_new
            if done.error:
                failures[done.student] = done.error
            bar.update()
    return failures, n_new


def _bar(total: int):
    from tqdm import tqdm

    hidden = sys.stderr is None or not sys.stderr.isatty()
    return tqdm(total=total, unit="submission", disable=hidden, file=sys.stderr, dynamic_ncols=True, leave=False)


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
