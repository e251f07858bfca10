"""One file over HTTP, from a server that may break off at any byte.

Pooch checks and places what is downloaded, but begins every download anew; a downloader of one's own is the hook it
has for more. Ours keeps what has come and asks for the rest (the header `Range` of HTTP), begins again where the
server cannot do that, and tries again, after growing pauses, where the trouble may pass.
"""

import os
import time
from pathlib import Path

import requests

from ttutor.corpora.datasets import DataFile, sha256_of
from ttutor.corpora.http_answers import (
    CHUNK,
    Interruption,
    Patience,
    answer,
    body_start,
    chunks,
    unpacked,
    without_password,
)
from ttutor.errors import FetchError


class Watcher:
    """Looks on while files come, and shows nothing; a class that shows something overrides both methods."""

    def has(self, file: DataFile, n_bytes: int) -> None:
        """So many bytes of the file are here; fewer than before where it had to begin again."""

    def tell(self, message: str) -> None:
        """Something that a person who waits wants to know."""


class ResumingDownloader:
    """A downloader as `pooch.retrieve` takes it, for one file; what has come when it fails stays in `partial`.

    Afterwards `resumed` says whether the file was joined from pieces, and `sha256` what its bytes amount to.
    """

    def __init__(self, file: DataFile, partial: Path, patience: Patience, watcher: Watcher):
        self.file, self.partial, self.patience, self.watcher = file, partial, patience, watcher
        self.resumed = False
        self.sha256 = ""

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Bring the file and put it where pooch wants it.

        Raises:
            FetchError: it does not come.
            OSError: it cannot be kept.
        """
        for pause in (*self.patience.pauses, None):
            try:
                self._attempt(url)
                break
            except Interruption as reason:
                self._wait_or_give_up(url, reason, pause)
        self.sha256 = sha256_of(self.partial)
        os.replace(self.partial, output_file)

    def _wait_or_give_up(self, url: str, reason: Interruption, pause: float | None) -> None:
        if pause is None:
            attempts = len(self.patience.pauses) + 1
            raise FetchError(
                f"{without_password(url)} cannot be fetched: {reason} ({attempts} attempts); what has come is kept: "
                "the same command goes on from there"
            )
        self.watcher.tell(f"{self.file.name}: {reason}; trying again in {pause:g} s.")
        time.sleep(pause)

    def _attempt(self, url: str) -> None:
        """Ask for the file, or for the part of it that is not here yet, and store what comes.

        Raises:
            Interruption: it did not come whole, which may pass.
        """
        n_here = self._n_bytes_here()
        self.resumed = n_here > 0
        self.watcher.has(self.file, n_here)
        if n_here == self.file.size:  # killed between its last byte and the check
            return
        with answer(url, n_here, self.patience) as response:
            start = body_start(response, n_here, url)
            if start is not None:
                self.resumed = start > 0
                self._store(response, start)
                return
        self.partial.unlink()  # the server has no such part: begin again
        self._attempt(url)

    def _n_bytes_here(self) -> int:
        """The length of what earlier attempts have left; more than the whole file is none of it."""
        if not self.partial.exists():
            return 0
        size = self.partial.stat().st_size
        if size > self.file.size:
            self.partial.unlink()
            return 0
        return size

    def _store(self, response: requests.Response, start: int) -> None:
        """Write the body behind the first `start` bytes, as it comes and, at its end, through to the disk."""
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        at_most = self.file.size if encoding == "identity" else 2 * self.file.size + CHUNK
        with self.partial.open("ab" if start else "wb") as file:
            for chunk in chunks(response, at_most - start):
                file.write(chunk)
                self.watcher.has(self.file, min(file.tell(), self.file.size))
            file.flush()
            os.fsync(file.fileno())
        self._undo(encoding)

    def _undo(self, encoding: str) -> None:
        """Make of what is stored the file itself, where the server has compressed it for the journey.

        Some servers only say so of a file that is a .gz; then its length tells that nothing is to be undone.

        Raises:
            Interruption: the body ended early.
        """
        size = self.partial.stat().st_size
        if encoding in ("gzip", "x-gzip") and size != self.file.size:
            self.partial.write_bytes(unpacked(self.partial.read_bytes(), self.file.size))
        elif size < self.file.size:
            raise Interruption(f"it ended after {size:,} of {self.file.size:,} bytes")
