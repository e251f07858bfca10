"""Sentences that come in one by one, from a pipe or a file, and answers that go into a file whole or not at all."""

import gzip
import os
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

from ttutor.errors import InputError
from ttutor.files import write_file

CHUNK = 65_536
"""How many bytes are asked for at a time; a pipe gives what it has."""
LARGEST_GROUP = 64
"""The most lines that are handed on together."""


def read_groups(stream: BufferedIOBase, name: str) -> Iterator[list[str]]:
    """The lines of a stream as they come, in groups: as many as are there, so that nobody waits for a group to fill.

    Args:
        stream: open for bytes; text in UTF-8, a line feed (or carriage return and line feed) after each line.
        name: what messages call it.

    >>> import io
    >>> list(read_groups(io.BytesIO("un\\n\\ntrois".encode()), "the input"))
    [['un', ''], ['trois']]
    """
    number = 0
    for lines in _as_they_come(stream, name):
        for start in range(0, len(lines), LARGEST_GROUP):
            group = lines[start : start + LARGEST_GROUP]
            yield [_decoded(line, number + place, name) for place, line in enumerate(group, start=1)]
            number += len(group)


def _as_they_come(stream: BufferedIOBase, name: str) -> Iterator[list[bytes]]:
    """Whole lines, without their line feeds, each time some have come; the last may lack its end."""
    rest: list[bytes] = []
    try:
        while chunk := stream.read1(CHUNK):
            head, *lines = chunk.split(b"\n")
            rest.append(head)
            if lines:
                whole = [b"".join(rest), *lines[:-1]]
                rest = [lines[-1]]
                yield whole
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{name} ends in .gz but cannot be decompressed ({error}); fetch or pack it again") from None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror or error}") from None
    if last := b"".join(rest):
        yield [last]


def _decoded(line: bytes, number: int, name: str) -> str:
    """A line as text; the first without the mark that some editors put in front."""
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\r")
    except UnicodeDecodeError as error:
        if number == 1 and line.startswith(b"\x1f\x8b"):
            raise InputError(f"{name} is compressed by gzip, but its name does not say so; let it end in .gz") from None
        raise InputError(
            f"{name} is not UTF-8: line {number}, byte {error.start + 1}; convert it to UTF-8 (iconv does it)"
        ) from None


def open_text(path: Path) -> BufferedIOBase:
    """A file of sentences, open for bytes; one that ends in .gz is decompressed."""
    try:
        return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; check the path") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def check_output(path: Path) -> None:
    """Refuse, before any work is done, a path to which `write_text` could not write."""
    folder = path.resolve().parent
    if path.exists() and not path.is_file():
        raise InputError(f"--output {path} is no file but a folder or a device; leave it out to print, or name a file")
    if not folder.is_dir():
        raise InputError(f"--output {path}: there is no folder {folder}; create it or choose another")
    if not os.access(folder, os.W_OK):
        raise InputError(f"--output {path}: the folder may not be written to; choose another")


def write_text(path: Path, lines: list[str]) -> None:
    """Write lines whole or not at all, compressed if the name ends in .gz; a link stays one.

    Raises:
        FileError: the disk is full or the like; a former file stays as it was.
    """
    data = "".join(line + "\n" for line in lines).encode()
    write_file(path.resolve(), gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
