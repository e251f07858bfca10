"""A lane that starts every process anew, at any level and on any system, and ends what is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from ttutor.grading.channel import Channel
from ttutor.grading.sandbox import (
    APART,
    INSIDE,
    Level,
    SandboxError,
    bubblewrap_command,
    environment,
    is_private,
    landlock_places,
    python_command,
)
from ttutor.grading.zygotes import MOST_PROCESSES, Process, memory_of, together

__all__ = ["FreshLane"]

MARK = "TTUTOR_WORKER"
OPEN_PLACES = ("/tmp", "/var/tmp", "/dev/shm")


class FreshLane:
    """Starts one process after the other.

    Args:
        level: how it is confined.
        user: whom it becomes, where the judge is root.
        network: whether it can be cut off from the network by a namespace.
    """

    def __init__(self, level: Level, user: int | None, *, network: bool = False) -> None:
        self.level, self.user, self.network = level, user, network
        self.mark = uuid.uuid4().hex

    def open(self, role: str, memory: int) -> Process:
        """Start a process."""
        return _Started(self, role, memory)

    def strays(self) -> list[int]:
        """Whatever is left of the processes that were started."""
        return _processes(self.user, self.mark)

    def close(self) -> None:
        """Nothing is held."""

    def settings(self, role: str, memory: int, home: str | None) -> dict[str, Any]:
        """What ``apart.alone`` is told."""
        name = self.level.name
        limited = name != "clock"
        return {
            "role": role,
            "memory": memory if limited else None,
            "processes": MOST_PROCESSES if limited else None,
            "user": self.user,
            "network": self.network and name == "landlock",
            "landlock": landlock_places() if name == "landlock" else None,
            "home": home,
            "everything": self.user is not None and is_private(),
        }


class _Started:
    """A process that was started for one submission."""

    def __init__(self, lane: FreshLane, role: str, memory: int) -> None:
        self.lane, self.mark = lane, lane.mark
        in_sandbox = lane.level.name == "bubblewrap"
        self.home = None if in_sandbox else _scratch(lane.user)
        settings = json.dumps(lane.settings(role, memory, self.home))
        command = python_command("alone", settings, INSIDE if in_sandbox else str(APART.parent))
        try:
            self.process = subprocess.Popen(
                bubblewrap_command(command) if in_sandbox else command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.home,
                env=environment(self.home or "/tmp") | {MARK: self.mark},
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"a worker could not be started: {error}") from error
        reads, writes = os.dup(self.process.stdout.fileno()), os.dup(self.process.stdin.fileno())
        self.channel = Channel(reads, writes, lambda: memory_of(lane.strays()) > together(memory))
        self.process.stdin.close()
        self.process.stdout.close()

    def end(self) -> int:
        """End it and what it left behind; remove its folder."""
        memory = _peak(self.process.pid)
        self.channel.close()
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self._end_strays()
        if self.home is not None:
            shutil.rmtree(self.home, ignore_errors=True)
            _sweep(self.lane.user)
        return memory

    def _end_strays(self) -> None:
        """End whatever left the process's group: all of its user's where it has one of its own, else by a mark."""
        deadline = time.monotonic() + 5
        while (strays := _processes(self.lane.user, self.mark)) and time.monotonic() < deadline:
            for pid in strays:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)


def _processes(user: int | None, mark: str) -> list[int]:
    """The numbers of the processes of a user, or, without one, of those with a mark in their environment."""
    if not os.path.isdir("/proc/self"):
        return []
    names = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    return [int(name) for name in names if _is_ours(Path("/proc", name), user, mark)]


def _is_ours(process: Path, user: int | None, mark: str) -> bool:
    try:
        status = (process / "status").read_text()
        if "\nState:\tZ" in status:
            return False
        if user is not None:
            return f"\nUid:\t{user}\t" in status
        return f"{MARK}={mark}".encode() in (process / "environ").read_bytes()
    except OSError:  # it has ended meanwhile, or is somebody else's
        return False


def _sweep(user: int | None) -> None:
    """Remove what a user of ours has left in the folders that everybody may write."""
    for place in OPEN_PLACES if user is not None else ():
        for entry in os.scandir(place) if os.path.isdir(place) else ():
            if entry.stat(follow_symlinks=False).st_uid == user:
                _remove(entry.path)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _scratch(user: int | None) -> str:
    """Make the one folder that a process may write."""
    folder = tempfile.mkdtemp(prefix="ttutor-worker-")
    if user is not None:
        os.chown(folder, user, user)
    return folder


def _peak(pid: int) -> int:
    """The most memory that a process has used, in bytes, or 0 where that cannot be told."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    rows = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(rows[0].split()[1]) * 1024 if rows else 0
