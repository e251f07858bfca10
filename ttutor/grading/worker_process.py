"""One worker, from the judge's side: asked and answered in frames, each with a deadline, whatever the worker does.

Waiting for a pipe with a deadline is not possible on every system, but waiting for a thread is: one thread reads, one
writes, and each may wait for as long as it likes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ttutor.grading.sandbox import Sandbox, SandboxError
from ttutor.grading.worker.framing import Malformed, frame, read_frame, write_all

LONGEST_QUEUE = 2


class TimedOut(Exception):
    """The worker did not answer in time."""


class Ended(Exception):
    """The worker is gone."""


class Process:
    """A process of its own for one submission."""

    def __init__(self, sandbox: Sandbox, memory: int) -> None:
        started = sandbox.started(memory)
        try:
            self._process = subprocess.Popen(
                started.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=started.folder,
                env=started.environment,
                start_new_session=True,
                **started.user,
            )
        except OSError as error:
            raise SandboxError(f"a worker could not be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to_worker, self._from_worker = self._process.stdin, self._process.stdout
        self._frames: queue.Queue[Any] = queue.Queue(LONGEST_QUEUE)
        self._sent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._is_over = False
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    def ask(self, header: dict[str, Any], body: bytes, deadline: float) -> tuple[dict[str, Any], bytes]:
        """Send a frame and return the next that comes; raises `TimedOut`, `Ended` or `Malformed`."""
        self._sent.put(frame(header, body))
        try:
            came = self._frames.get(timeout=max(deadline - time.monotonic(), 0.001))
        except queue.Empty:
            raise TimedOut("no answer in time") from None
        if isinstance(came, Exception):
            raise came
        if not isinstance(came[0], dict):
            raise Malformed("a header must be a JSON object")
        return came

    def end(self) -> tuple[int, float]:
        """End it; return the most memory that it used, in bytes, and seconds of a core; 0 where that cannot be told."""
        used = _used(self._process.pid)
        self._is_over = True
        self._sent.put(None)
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()
        memory, seconds = _reap(self._process)
        with contextlib.suppress(queue.Empty):  # the thread that reads may wait for room
            while True:
                self._frames.get_nowait()
        return max(used[0], memory), max(used[1], seconds)

    def _read(self) -> None:
        came: Any = None
        while not self._is_over and not isinstance(came, Exception):
            try:
                came = read_frame(self._from_worker.fileno())
                came = Ended("the worker is gone") if came is None else came
            except (Malformed, OSError, ValueError) as error:
                came = error if isinstance(error, Malformed) else Ended("the worker is gone")
            self._frames.put(came)
        with contextlib.suppress(OSError):
            self._from_worker.close()

    def _write(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # it is gone: the thread that reads says so
            while (data := self._sent.get()) is not None:
                write_all(self._to_worker.fileno(), data)
        with contextlib.suppress(OSError):
            self._to_worker.close()


def _reap(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Wait for a process; return the memory and seconds that it used, a child that it has waited for included."""
    if not hasattr(os, "wait4"):  # Windows
        process.wait()
        return 0, 0.0
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024), usage.ru_utime + usage.ru_stime


def _used(pid: int) -> tuple[int, float]:
    """Memory and seconds that a process and, of bubblewrap, its child have used while they live."""
    try:
        pids = [str(pid), *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        statuses = [Path(f"/proc/{one}/status").read_text() for one in pids]
        stats = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in pids]
    except OSError:  # no Linux, or it is gone
        return 0, 0.0
    rows = [line.split() for text in statuses for line in text.splitlines() if line.startswith("VmHWM:")]
    ticks = sum(int(number) for stat in stats for number in stat[11:13])  # in user and in system mode
    return max((int(row[1]) * 1024 for row in rows), default=0), ticks / os.sysconf("SC_CLK_TCK")
