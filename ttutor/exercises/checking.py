"""`check`: is my answer right and, if not, why? For notebooks, and for whoever prefers a terminal."""

from __future__ import annotations

import _thread
import dis
import inspect
import io
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from ttutor.errors import FileError, SettingError
from ttutor.exercises.forbidden import without
from ttutor.exercises.judge import judge
from ttutor.exercises.progress import progress_file, record
from ttutor.exercises.registry import find
from ttutor.exercises.result import Result

if TYPE_CHECKING:
    from ttutor.exercises.exercise import Exercise

PATIENCE = 10
"""How many times as long as it may compute an answer may wait, by the clock."""
MOST_PRINTED = 2_000
"""Characters that an answer's prints may take: it runs on many inputs, and prints for each."""

__all__ = ["WrongAnswer", "check"]


class WrongAnswer(AssertionError):
    """An answer did not pass and `check` was asked to be strict; the message is the verdict."""


class StillRunning(Exception):
    """An answer had not come to its end when its time was up."""


def check(
    exercise_id: str,
    answer: Any = None,
    *,
    hint: int = 0,
    strict: bool = False,
    seed: int = 0,
    hidden: bool = False,
    seconds: float = 30.0,
) -> Result:
    """Check an answer to an exercise and say what is wrong with it.

    The answer runs in this process, on small inputs of which it gets copies; the random state is put back afterwards.
    Nothing is raised unless ``strict`` is set, whatever the answer does: a notebook goes on. In a notebook the points
    are kept for ``ttutor exercises``, as ``ttutor check`` keeps them. In a script the
    verdict is printed where nothing else is done with it.

    Args:
        exercise_id: such as ``attention.softmax``; `ttutor.exercises.exercises` lists them.
        answer: your function or class, itself: ``softmax``, not ``softmax(...)``.
        hint: show the exercise's first 1, 2 or 3 hints below the verdict.
        strict: raise `WrongAnswer` where the answer does not pass.
        seed: choose other inputs.
        hidden: also run what is kept for grading.
        seconds: stop the answer after so much time of the processor; right answers take less than one.

    Returns:
        The verdict, which shows itself in a notebook. ``passed``, ``points``, ``hint_id`` and ``message`` are for
        programs.

    Raises:
        WrongAnswer: only with ``strict``.

    Example:
        >>> check("attention.softmax", lambda x, dim=-1: x.exp() / x.exp().sum(dim, keepdim=True)).hint_id
        'unstable'
    """
    try:
        exercise = find(exercise_id)
    except SettingError as error:
        result = _no_verdict(exercise_id, "unknown_exercise", f"{str(error)[0].upper()}{str(error)[1:]}")
    else:
        try:
            result = _judged(exercise, answer, seconds=seconds, seed=seed, hidden=hidden)
        except KeyboardInterrupt as error:  # shown from the student's own line on, without ours above it
            raise error.with_traceback(_since(answer, error.__traceback__)) from None
        result = result.with_hints(exercise.hints[: max(0, hint)])
    if result.points and _in_a_notebook():
        try:
            record(progress_file(), [result])
        except FileError as error:
            warnings.warn(f"Your points were not kept: {error}", stacklevel=2)
    if strict and not result.passed:
        raise WrongAnswer(str(result))
    if _thrown_away_by_a_script(sys._getframe(1)):
        print(result)
    return result


def _judged(exercise: Exercise, answer: Any, *, seconds: float, seed: int, hidden: bool) -> Result:
    """Return the verdict; whatever else goes wrong, only Ctrl-C is raised."""
    try:
        with without(exercise.forbids):
            pass  # slow for the first time, which is not the answer's time
        with _stopped_after(seconds, exercise.id, answer), _a_page_of_prints():
            return judge(exercise, answer, seed=seed, hidden=hidden)
    except StillRunning as error:
        return _no_verdict(exercise.id, "still_running", str(error), exercise.title, exercise.points)
    except Exception as error:  # a mistake of ours must not stop a student's notebook; it is shown, not hidden
        place = "".join(traceback.format_tb(error.__traceback__, limit=-1)).strip()
        message = f"The check itself failed, which is our mistake: {type(error).__name__}: {error}\n{place}"
        return _no_verdict(exercise.id, "check_failed", f"{message}\nPlease report it.")


class _FirstPage(io.TextIOBase):
    """Hands on the first `MOST_PRINTED` characters and counts the others."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.n_written = stream, 0

    def write(self, text: str) -> int:
        self.stream.write(text[: max(0, MOST_PRINTED - self.n_written)])
        self.n_written += len(text)
        return len(text)

    def flush(self) -> None:
        self.stream.flush()


@contextmanager
def _a_page_of_prints() -> Iterator[None]:
    """Show what an answer prints, as long as it is no flood, and say how much more there was."""
    page = _FirstPage(sys.stdout)
    try:
        with redirect_stdout(page):
            yield
    finally:
        if page.n_written > MOST_PRINTED:
            more = page.n_written - MOST_PRINTED
            print(f"\n… and {more:,} more characters: your answer runs on many inputs, and prints for each.")


def _in_a_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    return "IPython" in sys.modules and hasattr(sys.modules["IPython"].get_ipython(), "kernel")


def _thrown_away_by_a_script(caller: FrameType) -> bool:
    """Return whether the caller is a script that is run, and does nothing with the verdict: nobody would see it."""
    if caller.f_globals.get("__name__") != "__main__" or "__file__" not in caller.f_globals or _in_a_notebook():
        return False
    after = (one.opname for one in dis.get_instructions(caller.f_code) if one.offset > caller.f_lasti)
    return next(after, "") == "POP_TOP"


def _since(answer: Any, trace: TracebackType | None) -> TracebackType | None:
    """Return what of a traceback begins in the file of an answer."""
    while trace is not None and trace.tb_frame.f_code.co_filename != _file_of(answer):
        trace = trace.tb_next
    return trace


@contextmanager
def _stopped_after(seconds: float, exercise_id: str, answer: Any) -> Iterator[None]:
    """Interrupt what runs inside when the time is up, as Ctrl-C would; only the main thread can be interrupted.

    The time is that of the processor, so that a machine with much else to do makes no loop endless; whatever only waits
    is stopped by the clock, `PATIENCE` times as late. The first interrupt can be lost in a callback, whose errors
    Python only prints: it is repeated each second.
    """
    time_is_up, left = threading.Event(), threading.Event()

    def interrupt() -> None:
        busy_until, latest = time.process_time() + seconds, time.monotonic() + PATIENCE * seconds
        wait = seconds
        while not left.wait(wait):
            wait = min(busy_until - time.process_time(), latest - time.monotonic())
            if wait <= 0:
                time_is_up.set()
                _thread.interrupt_main()
                wait = 1.0

    is_main = threading.current_thread() is threading.main_thread()
    is_deaf = is_main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # begun in the background: nohup, &
    if is_deaf:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_main:
        threading.Thread(target=interrupt, daemon=True).start()
    try:
        yield
    except KeyboardInterrupt as error:
        left.set()
        if not time_is_up.is_set():
            error.add_note(f"This was while {exercise_id} was being checked.")
            raise
        frames = traceback.extract_tb(error.__traceback__)
        mine = [frame for frame in frames if frame.line and frame.filename == _file_of(answer)]
        line = f", at `{mine[-1].line}` (line {mine[-1].lineno})" if mine else ""
        raise StillRunning(
            f"It was still running after {seconds:g} seconds of work and was stopped{line}. "
            "Is there a loop whose condition never becomes false, or a function that calls itself without an end?"
        ) from None
    finally:
        left.set()
        if is_deaf:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _file_of(answer: Any) -> str | None:
    """Return the file that an answer's code stands in: a cell of a notebook has one, too."""
    try:
        return inspect.getfile(inspect.unwrap(answer))
    except (TypeError, OSError):
        return None


def _no_verdict(
    exercise_id: Any, hint_id: str, message: str, title: str = "No verdict", points_possible: int = 0
) -> Result:
    return Result(
        exercise_id=str(exercise_id),
        title=title,
        passed=False,
        points=0,
        points_possible=points_possible,
        hint_id=hint_id,
        message=message,
    )
