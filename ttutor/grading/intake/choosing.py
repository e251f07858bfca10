"""Choosing and reading the files of one submission that count, within one allowance of bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from ttutor.grading.intake.archives import MOST_BYTES, MOST_ENTRIES, BadArchive, Member, members_of, read_member
from ttutor.grading.intake.names import shown
from ttutor.grading.intake.sources import Source
from ttutor.grading.marks import SourceFile

__all__ = ["IGNORED", "Reading"]

IGNORED = {"__MACOSX", "__pycache__", "desktop.ini", "Thumbs.db"}
MOST_FILES, MOST_NESTED, MOST_NOTES = 100, 2, 20
MOST_TOGETHER = 2 * MOST_BYTES
COPY = re.compile(r"( \(\d+\)| - Copy( \(\d+\))?| copy( \d+)?)$", re.I)
RESUBMITTED = re.compile(r"-\d+$")


@dataclass(frozen=True)
class Candidate:
    """A file that may count, wherever it lies, and how to read at most so many bytes of it."""

    parts: tuple[str, ...]
    modified: float
    versioned: bool
    read: Callable[[int], bytes]

    @property
    def name(self) -> str:
        """Its path, to be shown."""
        return shown("/".join(self.parts))

    @property
    def family(self) -> tuple[str, ...]:
        """What the versions of one file have in common."""
        path = PurePosixPath(self.parts[-1])
        stem = RESUBMITTED.sub("", path.stem) if self.versioned else path.stem
        return (*self.parts[:-1], COPY.sub("", stem), path.suffix.lower())


@dataclass
class Reading:
    """The reading of one submission: what may count, what was noted, and how many bytes may still be unpacked.

    Args:
        patterns: of the file names that count.
    """

    patterns: tuple[str, ...]
    notes: list[str] = field(default_factory=list)
    left: int = field(default_factory=lambda: MOST_TOGETHER)
    entries_left: int = MOST_ENTRIES

    def files(self, sources: tuple[Source, ...]) -> tuple[SourceFile, ...]:
        """Read the files that count, oldest first, so that what was written last wins.

        Of several versions of one file the newest counts. What is left out is noted.
        """
        chosen = self._newest([one for source in sources for one in self._candidates(source)])
        if len(chosen) > MOST_FILES:
            self._say(f"Only the newest {MOST_FILES} of {len(chosen)} files were read.")
        read = [(one.name, self._read(one.parts, one.read)) for one in chosen[-MOST_FILES:]]
        files = tuple(SourceFile(name, data) for name, data in read if data is not None)
        if len(files) > 1:
            self._say(f"Read in this order, later definitions win: {', '.join(file.name for file in files)}.")
        return files

    def said(self) -> tuple[str, ...]:
        """What was noted, as far as anybody wants to read it."""
        more = len(self.notes) - MOST_NOTES
        return (*self.notes[:MOST_NOTES], *([f"And {more} more notes of this kind."] if more > 0 else []))

    def _say(self, sentence: str) -> None:
        self.notes.append(sentence)

    def _read(self, parts: tuple[str, ...], read: Callable[[int], bytes]) -> bytes | None:
        """Read a file out of the allowance, or note why not."""
        try:
            data = read(min(MOST_BYTES, self.left))
        except BadArchive as error:
            self._say(f"{shown('/'.join(parts))} {error}.")
        except OSError as error:
            self._say(f"{shown('/'.join(parts))} cannot be read: {error.strerror}.")
        else:
            self.left -= len(data)
            return data
        return None

    def _candidates(self, source: Source) -> Iterator[Candidate]:
        if source.problem:
            self._say(f"{shown('/'.join(source.parts))} was left out: it {source.problem}.")
        elif source.parts[-1].lower().endswith(".zip"):
            yield from self._in_archive(source.parts, source.read, 1)
        elif self._counts(source.parts):
            yield Candidate(source.parts, source.modified, source.versioned, source.read)

    def _in_archive(self, where: tuple[str, ...], read: Callable[[int], bytes], depth: int) -> Iterator[Candidate]:
        if depth > MOST_NESTED:
            self._say(f"{shown('/'.join(where))} was left out: archives are read {MOST_NESTED} deep.")
            return
        if (data := self._read(where, read)) is None:
            return
        try:
            for one in members_of(data):
                self.entries_left -= 1
                if self.entries_left < 0:
                    raise BadArchive(f"was left out from here on: more than {MOST_ENTRIES} entries are not read")
                if isinstance(one, str):
                    self.notes += [one] if one else []
                elif not any(part.startswith(".") or part in IGNORED for part in one.parts):
                    yield from self._of_member(where, one, depth)
        except BadArchive as error:
            self._say(f"{shown('/'.join(where))} {error}.")

    def _of_member(self, where: tuple[str, ...], member: Member, depth: int) -> Iterator[Candidate]:
        parts = (*where, *member.parts)

        def read(most: int) -> bytes:
            return read_member(member, most)

        if parts[-1].lower().endswith(".zip"):
            yield from self._in_archive(parts, read, depth + 1)
        elif self._counts(parts):
            yield Candidate(parts, member.modified, False, read)

    def _counts(self, parts: tuple[str, ...]) -> bool:
        if any(fnmatchcase(parts[-1].lower(), pattern.lower()) for pattern in self.patterns):
            return True
        self._say(f"{shown('/'.join(parts))} was left out: only {', '.join(self.patterns)} count.")
        return False

    def _newest(self, candidates: list[Candidate]) -> list[Candidate]:
        """Of each file its newest version, in the order in which they were written."""
        latest: dict[tuple[str, ...], Candidate] = {}
        for one in sorted(candidates, key=lambda one: (one.modified, one.parts)):
            if (older := latest.pop(one.family, None)) is not None:
                self._say(f"{one.name} counts, being newer than {older.name}.")
            latest[one.family] = one
        return list(latest.values())
