"""Files of submissions as they lie on the disk: found and read, each within its limits."""

from __future__ import annotations

import itertools
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from ttutor.grading.intake.archives import BadArchive, Member, members_of, read_member
from ttutor.grading.intake.names import shown

MOST_DEPTH, MOST_ENTRIES = 20, 2000
EMPTY = "is an empty folder"
COPY = re.compile(r"( \(\d+\)| - Copy( \(\d+\))?| copy( \d+)?)$", re.I)
RESUBMITTED = re.compile(r"-\d+$")
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class Source:
    """One file.

    Args:
        parts: its path inside its student's work.
        modified: when it was written, in seconds; of a member without its time zone, so good for order alone.
        read: returns its bytes, given how many at most; raises `BadArchive` or `OSError`.
        versioned: the LMS counts resubmissions in the name (``hw1-1.ipynb``).
        problem: why it is not even looked at, or "".
    """

    parts: tuple[str, ...]
    modified: float
    read: Callable[[int], bytes]
    versioned: bool = False
    problem: str = ""

    @property
    def name(self) -> str:
        """Its path, to be shown."""
        return shown("/".join(self.parts))

    @property
    def family(self) -> tuple[str, ...]:
        """What the versions of one file have in common."""
        path = PurePosixPath(unicodedata.normalize("NFC", self.parts[-1]))
        stem = RESUBMITTED.sub("", path.stem) if self.versioned else path.stem
        return (*self.parts[:-1], COPY.sub("", stem), path.suffix.lower())


def walk(folder: Path) -> list[Source]:
    """Return every file under a folder, at most `MOST_ENTRIES` for each student, who has an entry at the top.

    Links are not followed; they and whatever is no file are named as problems, so that nobody who handed in nothing
    else is overlooked.
    """
    found: list[Source] = []
    for entry in _listing(folder):
        mine = list(itertools.islice(_under(entry, (entry.name,)), MOST_ENTRIES + 1))
        if len(mine) > MOST_ENTRIES:
            mine[-1] = _problem((entry.name, "..."), f"holds more than {MOST_ENTRIES} files")
        found += mine or [_problem((entry.name, "."), EMPTY)]
    return found


def _listing(folder: Path | str) -> list[os.DirEntry]:
    with os.scandir(folder) as listing:
        return sorted(listing, key=lambda one: one.name)


def _under(entry: os.DirEntry, parts: tuple[str, ...]) -> Iterator[Source]:
    info = entry.stat(follow_symlinks=False)
    if stat.S_ISREG(info.st_mode):
        yield Source(parts, info.st_mtime, partial(read_plain, entry.path))
    elif not stat.S_ISDIR(info.st_mode):
        yield _problem(parts, "is a link" if stat.S_ISLNK(info.st_mode) else "is no plain file")
    elif len(parts) >= MOST_DEPTH:
        yield _problem(parts, "lies too deep")
    else:
        for inner in _listing(entry.path):
            yield from _under(inner, (*parts, inner.name))


def _problem(parts: tuple[str, ...], problem: str) -> Source:
    return Source(parts, 0.0, _never, problem=problem)


def _never(most: int) -> bytes:
    raise BadArchive("is never read")


def read_in_archive(path: Path, name: str, most: int) -> bytes:
    """Read a file of an instructor's archive."""
    with path.open("rb") as file:
        for one in members_of(file):
            if isinstance(one, Member) and one.info.filename == name:
                return read_member(one, most)
    raise BadArchive("is no longer in the archive")


def read_plain(path: str | Path, most: int) -> bytes:
    """Read a file that must still be a plain one, of at most so many bytes."""
    descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW)
    with open(descriptor, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise BadArchive("is no plain file")
        if info.st_size > most:
            raise BadArchive(f"has {info.st_size} bytes; at most {most} are read")
        return file.read(most)
