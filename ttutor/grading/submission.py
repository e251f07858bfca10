"""Choosing and reading the files of one submission that count, within one allowance of bytes."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from ttutor.errors import InputError
from ttutor.grading.archive import (
    EMPTY,
    MOST_BYTES,
    MOST_ENTRIES,
    BadArchive,
    Member,
    Source,
    members_of,
    read_in_archive,
    read_member,
    read_plain,
    walk,
)
from ttutor.grading.marks import SourceFile, Submission
from ttutor.grading.roster import (
    Ambiguous,
    Owner,
    Roster,
    Student,
    canvas_owner,
    looks_like_canvas,
    owner_of,
    safe_ids,
    shown,
)
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
    problem: str | None = None

    def files(self, sources: tuple[Source, ...]) -> tuple[SourceFile, ...]:
        """Read the files that count, oldest first, so that what was written last wins.

        Of several versions of one file the newest counts. What is left out is noted.
        """
        chosen = self._newest([one for source in sources for one in self._candidates(source)])
        if len(chosen) > MOST_FILES:
            named = [one for one in chosen if self._is_asked_for(one)]
            kept = [*named, *reversed([one for one in chosen if one not in named])][:MOST_FILES]
            self.problem = f"It has {len(chosen)} files that count, of which {MOST_FILES} are read: hand in fewer."
            chosen = [one for one in chosen if one in kept]
        read = [(one.name, self._read(one)) for one in chosen]
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
        """Read a file if the size limit allows it; note the reason otherwise."""
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

    def _is_asked_for(self, source: Source) -> bool:
        """Whether a file's name is one that the assignment asks for, and not only its ending."""
        own = [pattern for pattern in self.patterns if not pattern.startswith("*")]
        return any(fnmatchcase(normal_form(source.parts[-1]), normal_form(pattern)) for pattern in own)

    def _newest(self, candidates: list[Source]) -> list[Source]:
        """Of each file its newest version, in the order in which they were written."""
        latest: dict[tuple[str, ...], Source] = {}
        for one in sorted(candidates, key=lambda one: (one.modified, one.parts)):
            if (older := latest.pop(one.family, None)) is not None:
                self._say(f"{one.name} counts, being newer than {older.name}.")
            latest[one.family] = one
        return list(latest.values())


@dataclass(frozen=True, kw_only=True)
class FoundSubmission:
    """What one student handed in, found and not yet read.

    Args:
        student: the id, safe as a file name.
        shown: the name to show.
        sources: the files, wherever they lie.
        on_roster: the student's row, or None.
        notes: what was found while collecting.
    """

    student: str
    shown: str
    sources: tuple[Source, ...] = ()
    on_roster: Student | None = None
    notes: tuple[str, ...] = ()

    @property
    def submitted(self) -> str | None:
        """When it came in, as the list of the class says; the dates of files tell who copied them when."""
        return self.on_roster.submitted if self.on_roster is not None else None


@dataclass(frozen=True)
class ClassWork:
    """All of a class, in the order of the ids, and what an instructor should know of how it was found."""

    students: tuple[FoundSubmission, ...]
    notes: tuple[str, ...] = ()
    roster: Roster = field(default_factory=Roster)


def find_work(path: Path, roster: Roster | None = None, student: str | None = None) -> ClassWork:
    """Find the work of a class.

    Args:
        path: a folder of files, folders and zips, an LMS's zip, or the one file of one student.
        roster: who should have handed in; those who have not are listed as missing.
        student: all that lies there is the work of this one.

    Raises:
        InputError: there is nothing there, or nothing that can be read.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist; name a folder with a file, a folder or a zip for each student")
    notes: list[str] = []
    sources = _sources(path, is_one=student is not None, notes=notes)
    owned = [(Owner(student), source) for source in sources] if student else _owned(sources, roster or Roster(), notes)
    if not owned and (roster is None or not roster.students):
        raise InputError(f"{path} holds no submission: expected a file, a folder or a zip for each student")
    return _of_class(owned, roster or Roster(), notes)


def _sources(path: Path, *, is_one: bool, notes: list[str]) -> list[Source]:
    """Every file that lies there, with the path by which its owner can be told."""
    if path.is_dir():
        found = walk(path)
    elif path.suffix.lower() == ".zip" and not is_one:
        found = _of_export(path, notes)
    else:
        found = [Source((path.name,), path.stat().st_mtime, partial(read_plain, path))]
    kept = [one for one in found if not any(_is_ignored(part) for part in one.parts)]
    return sorted(kept, key=lambda one: one.parts)


def _is_ignored(part: str) -> bool:
    return part in IGNORED or (part.startswith(".") and part.strip(".") != "")


def _of_export(path: Path, notes: list[str]) -> list[Source]:
    found = []
    try:
        with path.open("rb") as file:
            for one in members_of(file):
                if isinstance(one, str):
                    notes += [one] if one else []
                else:
                    found.append(Source(one.parts, one.modified, partial(read_in_archive, path, one.info.filename)))
    except (BadArchive, OSError) as error:
        raise InputError(f"{path} {error}") from error
    return found


def _owned(sources: Iterable[Source], roster: Roster, notes: list[str]) -> list[tuple[Owner, Source]]:
    """Whose each file is, told by its own name; the path that is left is the one inside that student's work."""
    sources = tuple(sources)
    tops = [source.parts[0] for source in sources if len(source.parts) == 1]
    mostly_canvas = looks_like_canvas(tops)
    owned = []
    for source in sources:
        is_folder = len(source.parts) > 1
        named = None if is_folder else canvas_owner(source.parts[0])
        canvas = named is not None and (mostly_canvas or roster.find(named.number, named.name) is not None)
        try:
            owner = owner_of(source.parts[0], is_folder=is_folder, canvas=canvas)
        except Ambiguous as error:
            notes += [str(error)] if str(error) not in notes else []
            continue
        rest = source.parts[1:] if is_folder else (owner.file or source.parts[0],)
        owned.append((owner, replace(source, parts=rest, versioned=canvas)))
    return owned


def _of_class(owned: list[tuple[Owner, Source]], roster: Roster, notes: list[str]) -> ClassWork:
    by_raw: dict[str, list[tuple[Owner, Source]]] = {}
    for owner, source in owned:
        by_raw.setdefault(unicodedata.normalize("NFC", owner.raw), []).append((owner, source))
    owners = {raw: pairs[0][0] for raw, pairs in by_raw.items()}
    rows = {raw: roster.find(one.raw, one.number, one.name) for raw, one in owners.items()}
    _check_one_row_each(owners, rows)
    absent = [one for one in roster.students if one not in rows.values()]
    ids = safe_ids([*by_raw, *map(_raw, absent)])
    students = [_handed(ids[raw], pairs, rows[raw]) for raw, pairs in by_raw.items()]
    for one in absent:
        students.append(FoundSubmission(student=ids[_raw(one)], shown=shown(one.name or one.key), on_roster=one))
    if roster.students:
        strangers = [one for one in students if one.on_roster is None]
        idle = [one for one in strangers if not any(_may_be_work(source) for source in one.sources)]
        notes += [f"{one.shown} is nobody on the roster and holds no work; it was left out." for one in idle]
        students = [one for one in students if one not in idle]
        _check_strangers(sorted(one.shown for one in strangers if one not in idle), absent)
        notes += [f"{one.shown} handed in and is not on the roster." for one in strangers if one not in idle]
    return ClassWork(tuple(sorted(students, key=lambda one: one.student)), tuple(notes), roster)


def _may_be_work(source: Source) -> bool:
    return source.parts[-1].lower().endswith((".py", ".ipynb", ".zip"))


def _check_strangers(strangers: list[str], absent: list[Student]) -> None:
    """Refuse a class in which some are missing while others bring work: theirs may be the work of those."""
    if strangers and absent:
        missing = ", ".join(shown(f"{one.name} ({one.key})" if one.name else one.key) for one in absent)
        raise InputError(
            f"some work belongs to nobody on the roster ({', '.join(strangers)}) while nothing was found of {missing}. "
            "Rename the work, or add whoever it is to the roster; nothing was graded"
        )


def _check_one_row_each(owners: dict[str, Owner], rows: dict[str, Student | None]) -> None:
    """Refuse two names for one student: whose marks would stand in the row?"""
    claims: dict[str, list[str]] = {}
    for raw, owner in owners.items():
        row = rows[raw]
        if row is not None or owner.number:
            claims.setdefault(f"row {row.key}" if row is not None else f"number {owner.number}", []).append(raw)
    if twice := [raws for raws in claims.values() if len(raws) > 1]:
        both = "; ".join(" and ".join(map(shown, raws)) for raws in twice)
        raise InputError(f"several names belong to one student: {both}. Put each student's work under one name")


def _raw(absent: Student) -> str:
    """What an id is made of where no file says it: a number alone tells an instructor too little."""
    return f"{absent.name} {absent.key}".strip() if absent.key.isdigit() else absent.key


def _handed(student: str, pairs: list[tuple[Owner, Source]], row: Student | None) -> FoundSubmission:
    owner = pairs[0][0]
    name = (row.name if row is not None else "") or owner.name or owner.raw
    late = ("The LMS marked it as late.",) if any(one.late for one, _ in pairs) else ()
    sources = tuple(source for _, source in pairs)
    return FoundSubmission(student=student, shown=shown(name), sources=sources, on_roster=row, notes=late)


def read_work(handed: FoundSubmission, patterns: tuple[str, ...]) -> Submission:
    """Read what one student handed in; whatever it is, this raises nothing, but says why it cannot be graded.

    Args:
        handed: the work, as `find_work` found it.
        patterns: of the file names that count.
    """
    reading = Reading(patterns)
    files = reading.files(handed.sources)
    notes = (*handed.notes, *reading.said())
    problem = reading.problem
    if not files and any(source.problem != EMPTY for source in handed.sources):
        problem = f"Nothing was found that can be graded: a file that fits {' or '.join(patterns)} was expected."
    return Submission(student=handed.student, files=files, notes=notes, problem=problem)


def is_inside(inner: Path, outer: Path) -> bool:
    """Return whether one place lies in another, or is the same."""
    one, other = os.path.realpath(inner), os.path.realpath(outer)
    return os.path.commonpath([one, other]) == other
