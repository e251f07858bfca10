"""Lanes: processes that grade side by side, each with a grader of its own.

What passes between a lane and the run is ours on both ends: tasks one way, one word on how each went the other way. A
lane that dies or hangs costs the submission that it had in hand, and is replaced.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from ttutor.grading.assignment import Assignment
from ttutor.grading.desk import Desk, GraderFailed, Grading
from ttutor.grading.submissions import Handed

__all__ = ["CannotGrade", "Done", "OpenGrader", "grade_side_by_side", "real_grader"]

OpenGrader = Callable[[Assignment, bool], AbstractContextManager[Grading]]
SPARE_SECONDS = 300.0
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


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


def real_grader(assignment: Assignment, require_sandbox: bool) -> AbstractContextManager[Grading]:
    """Open the grader that runs submissions apart."""
    from ttutor.grading.judging import Grader

    return Grader(assignment, require_sandbox=require_sandbox, submission_seconds=assignment.longest)


def grade_side_by_side(
    desk: Desk,
    students: Iterable[Handed],
    *,
    lanes: int,
    require_sandbox: bool = False,
    open_grader: OpenGrader = real_grader,
    tell_level: Callable[[str], None] = lambda level: None,
) -> Iterator[Done]:
    """Mark submissions, as many at a time as there are lanes; yield how each went, in the order in which they end.

    Args:
        desk: marks one.
        students: whose work.
        lanes: how many processes.
        require_sandbox: refuse to run where submissions cannot be shut in.
        open_grader: opens a lane's grader; must be a function of a module, since a lane imports it.
        tell_level: is told the sandbox level, once.

    Raises:
        CannotGrade: no grader opens.
    """
    waiting = list(students)[::-1]
    running: list[_Lane] = []
    levels: set[str] = set()
    try:
        running += [_Lane(desk, require_sandbox, open_grader) for _ in range(max(1, min(lanes, len(waiting))))]
        while waiting or any(lane.student for lane in running):
            for lane in running:
                lane.give(waiting)
            for lane in _speaking(running):
                word = lane.hear()
                if isinstance(word, Done):
                    yield word
                elif word not in levels:
                    levels.add(word)
                    if len(levels) > 1:
                        raise CannotGrade(f"lanes came to different sandbox levels ({', '.join(sorted(levels))})")
                    tell_level(word)
    finally:
        for lane in running:
            lane.end()


@dataclass(eq=False)
class _Lane:
    """One process, from this side."""

    desk: Desk
    require_sandbox: bool
    open_grader: OpenGrader
    student: str = ""
    is_ready: bool = False
    since: float = 0.0
    process: Any = field(init=False)
    connection: Any = field(init=False)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (theirs, self.desk, self.require_sandbox, self.open_grader)
        self.process = context.Process(target=_serve, args=arguments)
        self.process.start()
        theirs.close()
        self.since = time.monotonic()

    def give(self, waiting: list[Handed]) -> None:
        """Hand it the next submission, if it is free."""
        if self.is_ready and not self.student and waiting:
            handed = waiting.pop()
            self.student, self.since = handed.student, time.monotonic()
            self.connection.send(handed)

    @property
    def is_stuck(self) -> bool:
        """Whether it takes longer than any submission may."""
        if self.is_ready and not self.student:
            return False
        return time.monotonic() - self.since > 2 * self.desk.assignment.longest + SPARE_SECONDS

    def hear(self) -> Done | str:
        """Take its next word: how a submission went, or the level that its grader reached."""
        try:
            kind, text = ("stuck", "") if self.is_stuck else self.connection.recv()
        except (EOFError, OSError):
            kind, text = "died", ""
        match kind:
            case "level":
                self.is_ready = True
                return text
            case "refused":
                raise CannotGrade(text)
            case "graded" | "stood" | "failed":
                student, self.student = self.student, ""
                return Done(student, kind == "graded", text)
        return self._replace(f"The judge's process {'took too long' if kind == 'stuck' else 'died'}.")

    def _replace(self, why: str) -> Done:
        student = self.student
        self.end()
        if not self.is_ready:
            raise CannotGrade(f"a lane could not be opened: {why}")
        self.student, self.is_ready = "", False
        self.__post_init__()
        return Done(student, False, why)

    def end(self) -> None:
        """End the process, and wait until it is gone."""
        self.connection.close()
        self.process.join(0.0 if self.student else 10.0)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(10.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _speaking(running: list[_Lane]) -> list[_Lane]:
    """The lanes that have something to say, or that have been silent for too long."""
    by_connection = {lane.connection: lane for lane in running if lane.student or not lane.is_ready}
    ready = [by_connection[one] for one in wait(list(by_connection), timeout=1.0)]
    return ready or [lane for lane in by_connection.values() if lane.is_stuck]


def _serve(connection: Any, desk: Desk, require_sandbox: bool, open_grader: OpenGrader) -> None:
    """Run a lane: open a grader, then mark what comes until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which ends its lanes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the grader is closed
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    try:
        with open_grader(desk.assignment, require_sandbox) as grader:
            connection.send(("level", grader.level))
            _mark_all(connection, desk, grader)
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the run is over
        return
    except Exception as error:
        connection.send(("refused", f"{type(error).__name__}: {error}"))


def _mark_all(connection: Any, desk: Desk, grader: Grading) -> None:
    while True:
        handed = connection.recv()
        try:
            word = "graded" if desk.mark(handed, grader) else "stood"
        except GraderFailed as error:
            connection.send(("failed", str(error)))
        except Exception:
            connection.send(("failed", traceback.format_exc()))
        else:
            connection.send((word, ""))
