"""The judge's end of the pipes to a worker: frames with deadlines, whatever the worker does.

On POSIX systems the pipes are waited for by `select`; on Windows, where that is not possible, by threads.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Any

from ttutor.grading.apart.framing import BODY_CAP, LENGTHS, Malformed, frame, lengths, parse_json

__all__ = ["Channel", "Ended", "Malformed", "TimedOut"]

AT_ONCE = 1 << 20
LOOK_SECONDS = 0.25


class TimedOut(Exception):
    """The other side did not answer, or did not listen, in time."""


class Ended(Exception):
    """The other side is gone."""


class Channel:
    """A pair of pipes to one process.

    Args:
        reads: the descriptor from which its frames come.
        writes: the one to which ours go.
        takes_too_much: says whether the other side, and all that it has started, uses more than it may; asked while
            waiting.
    """

    def __init__(self, reads: int, writes: int, takes_too_much: Callable[[], bool] = lambda: False) -> None:
        self.reads, self.writes, self.takes_too_much = reads, writes, takes_too_much
        for fd in (reads, writes):
            os.set_blocking(fd, False)

    def close(self) -> None:
        """Close both ends."""
        for fd in {self.reads, self.writes}:
            os.close(fd)

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
        view = memoryview(frame(header, body))
        while view:
            self._wait([], [self.writes], deadline)
            try:
                view = view[os.write(self.writes, view[:AT_ONCE]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise Ended("the worker is gone") from error

    def receive(self, deadline: float) -> tuple[dict[str, Any], bytes]:
        """Return the next frame.

        Raises:
            TimedOut: none came in time.
            Ended: the other side is gone.
            Malformed: what came is none.
        """
        header, body = lengths(bytes(self._read(LENGTHS.size, deadline)), BODY_CAP)
        found = parse_json(bytes(self._read(header, deadline)))
        if not isinstance(found, dict):
            raise Malformed("a header must be a JSON object")
        return found, bytes(self._read(body, deadline))

    def _read(self, count: int, deadline: float) -> bytearray:
        data = bytearray()
        while len(data) < count:
            self._wait([self.reads], [], deadline)
            try:
                part = os.read(self.reads, min(count - len(data), AT_ONCE))
            except BlockingIOError:
                continue
            except OSError as error:
                raise Ended("the worker is gone") from error
            if not part:
                raise Ended("the worker is gone")
            data += part
        return data

    def _wait(self, reads: list[int], writes: list[int], deadline: float) -> None:
        while (seconds := deadline - time.monotonic()) > 0:
            if any(select.select(reads, writes, [], min(seconds, LOOK_SECONDS))):
                return
            if self.takes_too_much():
                raise Ended("the worker and what it has started use too much memory")
        raise TimedOut("no answer in time")
