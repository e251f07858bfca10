"""Grading submissions side by side: a pool of processes, each with a grader of its own."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ttutor.grading.assignment import Assignment
from ttutor.grading.intake.submissions import Handed
from ttutor.grading.mark_one import GraderFailed, Grading, Marker
from ttutor.grading.sandbox.choose import BUBBLEWRAP

__all__ = ["CannotGrade", "Done", "OpenGrader", "grade_in_parallel", "real_grader"]

OpenGrader = Callable[[Assignment], Grading]
_grader: Grading | None = None


class CannotGrade(RuntimeError):
    """No grader can be opened here; the message says why and what to do."""


@dataclass(frozen=True)
class Done:
    """How one submission went.

    Args:
        student: whose.
        is_new: it was graded now; its marks did not stand already.
        error: what went wrong in the grader, or "": then its record is written.
    """

    student: str
    is_new: bool
    error: str = ""


def real_grader(
    assignment: Assignment, sandbox: str = BUBBLEWRAP, hidden: tuple[Path, ...] = (), own: Path | None = None
) -> Grading:
    """Open the grader that runs submissions in workers.

    Args:
        assignment: what was asked.
        sandbox: how they are shut in.
        hidden: places of the class.
        own: a folder of exercises of one's own, or None.
    """
    from ttutor.exercises.registry import add_folder
    from ttutor.grading.judging.grader import Grader
    from ttutor.grading.sandbox.choose import SandboxError

    if own is not None:
        add_folder(own)
    try:
        return Grader(assignment, sandbox=sandbox, hidden=hidden)
    except SandboxError as error:
        raise CannotGrade(str(error)) from error


def grade_in_parallel(
    marker: Marker, students: Iterable[Handed], *, jobs: int, open_grader: OpenGrader = real_grader
) -> Iterator[Done]:
    """Mark submissions, as many at a time as there are jobs; yield how each went, in the order in which they end.

    Args:
        marker: marks one.
        students: whose work.
        jobs: how many processes.
        open_grader: opens a process's grader; must be a function of a module, or a `partial` of one.

    Raises:
        CannotGrade: no grader opens.
    """
    waiting = list(students)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        max(1, min(jobs, len(waiting))), context, initializer=_open, initargs=(partial(open_grader, marker.assignment),)
    )
    with pool:
        tasks = {pool.submit(_mark, marker, handed): handed for handed in waiting}
        try:
            for task in as_completed(tasks):
                yield _done(task, tasks[task])
        finally:
            pool.shutdown(cancel_futures=True)


def _done(task: Future[Done], handed: Handed) -> Done:
    try:
        return task.result()
    except BrokenProcessPool:
        return Done(handed.student, False, "a process of the judge died; grade again, and what is graded stands")


def _open(open_grader: Callable[[], Grading]) -> None:
    """Prepare a process of the pool; where no grader opens, every task says why."""
    global _grader
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which ends its processes
    try:
        _grader = open_grader()
    except CannotGrade as error:
        _grader = _Refusing(str(error))


def _mark(marker: Marker, handed: Handed) -> Done:
    if isinstance(_grader, _Refusing):
        raise CannotGrade(_grader.why)
    try:
        return Done(handed.student, marker.mark(handed, _grader))
    except GraderFailed as error:
        return Done(handed.student, False, str(error))
    except Exception:
        return Done(handed.student, False, traceback.format_exc())


@dataclass
class _Refusing:
    """Stands where no grader opened."""

    why: str
    level: str = ""
