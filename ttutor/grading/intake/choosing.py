"""Choosing and reading the files of one submission that count, within one allowance of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial

from ttutor.grading.intake.archives import MOST_BYTES, MOST_ENTRIES, BadArchive, Member, members_of, read_member
from ttutor.grading.intake.sources import Source
from ttutor.grading.marks import SourceFile
from ttutor.texts import normal_form

IGNORED = {"__MACOSX", "__pycache__", "desktop.ini", "Thumbs.db"}
MOST_FILES, MOST_NESTED, MOST_NOTES = 100, 2, 20
MOST_TOGETHER = 2 * MOST_BYTES


@dataclass
class Reading:
    """The reading of one submission: what may count, what was noted, and how many bytes may still be unpacked."""

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
        read = [(one.name, self._read(one)) for one in chosen[-MOST_FILES:]]
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

    def _read(self, source: Source) -> bytes | None:
        """Read a file out of the allowance, or note why not."""
        try:
            data = source.read(min(MOST_BYTES, self.left))
        except BadArchive as error:
            self._say(f"{source.name} {error}.")
        except OSError as error:
            self._say(f"{source.name} cannot be read: {error.strerror}.")
        else:
            self.left -= len(data)
            return data
        return None

    def _candidates(self, source: Source, depth: int = 0) -> Iterator[Source]:
        """The files that may count: it, or what it holds if it is an archive."""
        if source.problem:
            self._say(f"{source.name} was left out: it {source.problem}.")
        elif not source.parts[-1].lower().endswith(".zip"):
            yield from (source,) if self._counts(source) else ()
        elif depth == MOST_NESTED:
            self._say(f"{source.name} was left out: archives are read {MOST_NESTED} deep.")
        elif (data := self._read(source)) is not None:
            try:
                for one in self._members(data):
                    yield from self._candidates(
                        Source((*source.parts, *one.parts), one.modified, partial(read_member, one)), depth + 1
                    )
            except BadArchive as error:
                self._say(f"{source.name} {error}.")

    def _members(self, data: bytes) -> Iterator[Member]:
        for one in members_of(data):
            self.entries_left -= 1
            if self.entries_left < 0:
                raise BadArchive(f"was left out from here on: more than {MOST_ENTRIES} entries are not read")
            if isinstance(one, str):
                self.notes += [one] if one else []
            elif not any(part.startswith(".") or part in IGNORED for part in one.parts):
                yield one

    def _counts(self, source: Source) -> bool:
        if any(fnmatchcase(normal_form(source.parts[-1]), normal_form(pattern)) for pattern in self.patterns):
            return True
        self._say(f"{source.name} was left out: only {', '.join(self.patterns)} count.")
        return False

    def _newest(self, candidates: list[Source]) -> list[Source]:
        """Of each file its newest version, in the order in which they were written."""
        latest: dict[tuple[str, ...], Source] = {}
        for one in sorted(candidates, key=lambda one: (one.modified, one.parts)):
            if (older := latest.pop(one.family, None)) is not None:
                self._say(f"{one.name} counts, being newer than {older.name}.")
            latest[one.family] = one
        return list(latest.values())
