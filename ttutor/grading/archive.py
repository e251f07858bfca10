"""Reading zip files that may be hostile, in memory: nothing is ever unpacked onto the disk.

No path leads out of an archive that has no place to lead out of; what is left to fear are bombs, and every number that
an archive claims is capped before it is believed.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ttutor.grading.roster import shown

MIB = 1 << 20
MOST_BYTES = 64 * MIB
"""The largest file of a submission that is read, packed or unpacked."""
MOST_DIRECTORY = MIB
"""The largest table of contents of an archive; its entries are read into memory before anything else can be known."""
MOST_ENTRIES = 20_000
"""The most entries of all archives of a submission together, folders too."""
END, END_64 = b"PK\x05\x06", b"PK\x06\x07"
FAILURES = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError)


class BadArchive(ValueError):
    """An archive cannot be read; the message says why."""


@dataclass(frozen=True)
class Member:
    """One file of an archive: its path there, when it was written (as far as that can be told) and how to read it."""

    parts: tuple[str, ...]
    modified: float
    size: int
    archive: zipfile.ZipFile
    info: zipfile.ZipInfo


def members_of(data: bytes | BinaryIO) -> Iterator[Member | str]:
    """Yield each file of an archive, or a sentence on what was left out and why; "" for a folder.

    Args:
        data: the archive's bytes or, where it is the instructor's own and may have the large form that a class of
            hundreds needs, an open file.

    Raises:
        BadArchive: it is no zip file, or not one that can be read safely.
    """
    if isinstance(data, bytes):
        _check_end(data[-(1 << 16) - 22 :])
        data = io.BytesIO(data)
    try:
        archive = zipfile.ZipFile(data)
    except FAILURES as error:
        raise BadArchive(f"is no zip file that can be read ({shown(str(error))})") from error
    for info in archive.infolist():
        yield "" if info.is_dir() else _member(archive, info)


def _check_end(tail: bytes) -> None:
    """Look at what an archive claims of its table of contents, before anything reads that."""
    at = tail.rfind(END)
    if at < 0 or len(tail) < at + 22:
        raise BadArchive("is no zip file: it has no table of contents")
    (size,) = struct.unpack_from("<L", tail, at + 12)
    if size > MOST_DIRECTORY:
        raise BadArchive(f"has a table of contents of {size} bytes; at most {MOST_DIRECTORY} are read")
    if at >= 20 and tail[at - 20 : at - 16] == END_64:
        raise BadArchive("is a zip file of the large kind (zip64), which is not read")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member | str:
    name = info.filename.replace("\\", "/")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or ":" in name.split("/")[0] or not parts:
        return f"{shown(name)} was left out: its path leads out of the archive."
    if stat.S_ISLNK(info.external_attr >> 16):
        return f"{shown(name)} was left out: it is a link."
    if info.flag_bits & 1:
        return f"{shown(name)} was left out: it is locked with a password."
    return Member(parts, _moment(info), info.file_size, archive, info)


def read_member(member: Member, most: int) -> bytes:
    """Return the bytes of a file of an archive.

    Raises:
        BadArchive: they are more than `most`, whatever the archive claims, or damaged.
    """
    if member.size > most:
        raise BadArchive(f"unpacks to {member.size} bytes; at most {most} are read")
    if member.info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadArchive("is packed in an unusual way; use a plain zip")
    try:
        with member.archive.open(member.info) as file:
            data = file.read(most + 1)
    except FAILURES as error:
        raise BadArchive(f"is damaged ({shown(str(error))})") from error
    if len(data) > most:
        raise BadArchive(f"unpacks to more than {most} bytes")
    return data


def _moment(info: zipfile.ZipInfo) -> float:
    """When a file was written: a zip gives no time zone, so this orders files and says no more."""
    try:
        return datetime(*info.date_time, tzinfo=UTC).timestamp()
    except ValueError:  # month 0, as some tools write
        return 0.0


MOST_DEPTH, MOST_UNDER_ONE = 20, 2000
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
    """Return every file under a folder, at most `MOST_UNDER_ONE` for each student, who has an entry at the top.

    Links are not followed; they and whatever is no file are named as problems, so that nobody who handed in nothing
    else is overlooked.
    """
    found: list[Source] = []
    for entry in _listing(folder):
        mine = list(itertools.islice(_under(entry, (entry.name,)), MOST_UNDER_ONE + 1))
        if len(mine) > MOST_UNDER_ONE:
            mine[-1] = _problem((entry.name, "..."), f"holds more than {MOST_UNDER_ONE} files")
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
