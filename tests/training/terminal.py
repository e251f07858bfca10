"""A terminal for tests: what a program writes to it, and what a person sees in the end."""

import fcntl
import os
import pty
import struct
import termios
import threading
from typing import TextIO


class Terminal:
    """A terminal of so many columns; `stream` writes to it, `screen()` closes it and tells what stands there."""

    def __init__(self, columns: int):
        self._reader, writer = pty.openpty()
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream: TextIO = os.fdopen(writer, "w", encoding="utf-8")
        self._written: list[bytes] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._reader, 65536)
            except OSError:  # the other side is closed
                return
            if not data:
                return
            self._written.append(data)

    def screen(self) -> list[str]:
        self.stream.close()
        self._thread.join(timeout=10)
        os.close(self._reader)
        return [shown_line(line) for line in b"".join(self._written).decode().split("\n")]


def shown_line(line: str) -> str:
    """What is left to see of a line in which each carriage return goes back to its beginning."""
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown.rstrip()
