"""Reading zip files that may be hostile, in memory: nothing is ever unpacked onto the disk.

No path leads out of an archive that has no place to lead out of; what is left to fear are bombs, and every number that
an archive claims is capped before it is believed.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

from ttutor.grading.intake.names import shown

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
