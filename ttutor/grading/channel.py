"""The judge's end of the pipes to a worker: frames with deadlines, whatever the worker does.

Waiting for a pipe with a deadline is not possible on every system, but waiting for a thread is: one thread reads, one
writes, and each may wait for as long as it likes. Each owns its descriptor and closes it, also where the other side, or
something that it has left behind, holds the pipe open for longer than anybody listens.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from ttutor.grading.apart.framing import BODY_CAP, LENGTHS, Malformed, frame, lengths, parse_json, write_all

__all__ = ["Channel", "Ended", "Malformed", "TimedOut"]

AT_ONCE, MOST_AHEAD = 1 << 16, 16
LOOK_SECONDS = 0.25


class TimedOut(Exception):
    """The other side did not answer, or did not listen, in time."""


class Ended(Exception):
    """The other side is gone."""


class Channel:
    """A pair of pipes to one process.

    Args:
        reads: the descriptor from which its frames come; the channel closes it.
        writes: the one to which ours go; the channel closes it too.
        takes_too_much: says whether the other side, and all that it has started, uses more than it may; asked while
            waiting.
    """

    def __init__(self, reads: int, writes: int, takes_too_much: Callable[[], bool] = lambda: False) -> None:
        self.takes_too_much = takes_too_much
        self._inbox, self._outbox = _Inbox(reads), _Outbox(writes)
        self._rest = memoryview(b"")

    def close(self) -> None:
        """Stop listening, and close both ends as soon as nobody waits at them any more."""
        self._outbox.close()
        self._inbox.close()

    def send(self, header: dict[str, Any], body: bytes, deadline: float) -> None:
        """Send a frame.

        Args:
            header: JSON, ours.
            body: what goes with it.
            deadline: until when, by `time.monotonic`.

        Raises:
            TimedOut: it was not taken in time.
            Ended: nobody is there to take it.
        """
        self._outbox.frames.put(frame(header, body))
        if not self._wait(self._outbox.results, deadline):
            raise Ended("the worker is gone")

    def receive(self, deadline: float) -> tuple[dict[str, Any], bytes]:
        """Return the next frame.

        Raises:
            TimedOut: none came in time.
            Ended: the other side is gone.
            Malformed: what came is none.
        """
        header, body = lengths(self._read(LENGTHS.size, deadline), BODY_CAP)
        found = parse_json(self._read(header, deadline))
        if not isinstance(found, dict):
            raise Malformed("a header must be a JSON object")
        return found, self._read(body, deadline)

    def _read(self, count: int, deadline: float) -> bytes:
        parts = []
        while True:
            part, self._rest = self._rest[:count], self._rest[count:]
            parts.append(part)
            count -= len(part)
            if not count:
                return b"".join(parts)
            self._rest = memoryview(self._wait(self._inbox.parts, deadline))
            if not self._rest:
                self._inbox.parts.put(b"")  # whoever asks again is told the same
                raise Ended("the worker is gone")

    def _wait(self, answers: queue.Queue[Any] | queue.SimpleQueue[Any], deadline: float) -> Any:
        """Return what a thread has to say."""
        while (seconds := deadline - time.monotonic()) > 0:
            try:
                return answers.get(timeout=min(seconds, LOOK_SECONDS))
            except queue.Empty:
                if self.takes_too_much():
                    raise Ended("the worker and what it has started use too much memory") from None
        raise TimedOut("no answer in time")


class _Inbox:
    """What comes out of a pipe, part by part, the last one empty; no more is read ahead than has room."""

    def __init__(self, fd: int) -> None:
        self.parts: queue.Queue[bytes] = queue.Queue(MOST_AHEAD)
        self.closed = False
        threading.Thread(target=self._run, args=(fd,), daemon=True).start()

    def close(self) -> None:
        """Let the thread end; where it waits for room, there is some now."""
        self.closed = True
        while not self.parts.empty():
            self.parts.get()

    def _run(self, fd: int) -> None:
        part = b"..."
        while part and not self.closed:
            try:
                part = os.read(fd, AT_ONCE)
            except OSError:
                part = b""
            self.parts.put(part)
        os.close(fd)


class _Outbox:
    """What goes into a pipe, frame by frame; of each is told whether it went."""

    def __init__(self, fd: int) -> None:
        self.frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[bool] = queue.SimpleQueue()
        threading.Thread(target=self._run, args=(fd,), daemon=True).start()

    def close(self) -> None:
        """Let the thread end, once it has no frame in hand."""
        self.frames.put(b"")

    def _run(self, fd: int) -> None:
        while data := self.frames.get():
            try:
                write_all(fd, data)
            except OSError:
                self.results.put(False)
            else:
                self.results.put(True)
        os.close(fd)
