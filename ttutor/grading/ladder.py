"""Choosing the strongest sandbox that works here, by trying: nothing is assumed from what is installed."""

from __future__ import annotations

import itertools
import os
import sys
import time
from functools import cache

from ttutor.grading.channel import Ended, Malformed, TimedOut
from ttutor.grading.fresh import FreshLane
from ttutor.grading.sandbox import LEVELS, Level, SandboxError, landlock_problem, worker_user
from ttutor.grading.zygotes import Lane, WarmLane

__all__ = ["choose_level", "open_lane", "problem_with"]

PROBE_MEMORY = 1 << 30
_numbers = itertools.count()


def choose_level(name: str | None = None, *, require_sandbox: bool = False) -> Level:
    """Return the level to grade at: the named one, or the strongest that works.

    Args:
        name: of `LEVELS`, or None for the strongest.
        require_sandbox: refuse levels that do not hide this machine's files.

    Raises:
        SandboxError: there is no such level, it does not work here, or it is too weak; the message says why.
    """
    if name is not None and name not in (known := [level.name for level in LEVELS]):
        raise SandboxError(f"expected a level of {', '.join(known)}, but {name!r} came")
    allowed = [level for level in LEVELS if name in (None, level.name)]
    reasons = []
    for level in allowed:
        if require_sandbox and not level.hides_files:
            reasons.append(f"{level.name}: does not hide this machine's files")
        elif (why := problem_with(level)) is not None:
            reasons.append(f"{level.name}: {why}")
        else:
            return level
    raise SandboxError(f"no sandbox can be had: {'; '.join(reasons)}. Install bubblewrap, or allow a weaker level")


def open_lane(level: Level) -> Lane:
    """Return a lane of a level, the fast one where that is as strong."""
    user = worker_user(next(_numbers))
    if level.name == "bubblewrap" and _forks():
        return WarmLane(level, user)
    return FreshLane(level, user, network=level.name == "landlock" and _cuts_network())


@cache
def problem_with(level: Level) -> str | None:
    """Return why a level does not work here, or None; tried once."""
    if level.name != "clock" and os.name != "posix":
        return f"it cannot be had on {sys.platform}"
    if level.name == "landlock" and (why := landlock_problem()) is not None:
        return why
    if level.name == "bubblewrap" and _forks():
        return None
    return _complaint(FreshLane(level, worker_user(next(_numbers))))


@cache
def _forks() -> bool:
    """Whether a zygote in bubblewrap can fork processes with namespaces of their own."""
    return _complaint(WarmLane(LEVELS[0], worker_user(next(_numbers)), torch=False)) is None


@cache
def _cuts_network() -> bool:
    """Whether a process may take a network of its own."""
    return _complaint(FreshLane(LEVELS[1], worker_user(next(_numbers)), network=True)) is None


def _complaint(lane: Lane) -> str | None:
    """Let a lane start a reader and ask it something; return what is wrong, or None."""
    try:
        process = lane.open("reader", PROBE_MEMORY)
        try:
            deadline = time.monotonic() + 30
            process.channel.send({"id": 0, "files": [], "wanted": []}, b"", deadline)
            answer, _ = process.channel.receive(deadline)
            return None if answer == {"id": 0} else "its process does not answer as it should"
        finally:
            process.end()
    except (SandboxError, TimedOut, Ended, Malformed) as error:
        return str(error)
    finally:
        lane.close()
