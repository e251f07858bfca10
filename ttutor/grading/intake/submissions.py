"""Finding what a class handed in: files, notebooks, folders, zips and what Moodle and Canvas export.

Nothing is unpacked onto the disk, no link is followed, nothing is imported; what cannot be read costs its own student
a look by a human, and nobody else anything.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ttutor.grading.intake.archives import BadArchive, members_of
from ttutor.grading.intake.choosing import IGNORED, Reading
from ttutor.grading.intake.names import Ambiguous, Owner, looks_like_canvas, owner_of, safe_ids, shown
from ttutor.grading.intake.roster import Roster, Student
from ttutor.grading.intake.sources import EMPTY, Source, read_in_archive, read_plain, walk
from ttutor.grading.marks import Submission


class BadSubmissions(ValueError):
    """The place of the submissions cannot be used; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Handed:
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

    students: tuple[Handed, ...]
    notes: tuple[str, ...] = ()
    roster: Roster = field(default_factory=Roster)


def find_work(path: Path, roster: Roster | None = None, student: str | None = None) -> ClassWork:
    """Find the work of a class.

    Args:
        path: a folder of files, folders and zips, an LMS's zip, or the one file of one student.
        roster: who should have handed in; those who have not are listed as missing.
        student: all that lies there is the work of this one.

    Raises:
        BadSubmissions: there is nothing there, or nothing that can be read.
    """
    if not path.exists():
        raise BadSubmissions(f"{path} does not exist; name a folder with a file, a folder or a zip for each student")
    notes: list[str] = []
    sources = _sources(path, is_one=student is not None, notes=notes)
    owned = [(Owner(student), source) for source in sources] if student else _owned(sources, notes)
    if not owned and (roster is None or not roster.students):
        raise BadSubmissions(f"{path} holds no submission: expected a file, a folder or a zip for each student")
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
        raise BadSubmissions(f"{path} {error}") from error
    return found


def _owned(sources: Iterable[Source], notes: list[str]) -> list[tuple[Owner, Source]]:
    """Whose each file is; the path that is left is the one inside that student's work."""
    sources = tuple(sources)
    tops = [source.parts[0] for source in sources if len(source.parts) == 1]
    canvas = looks_like_canvas(tops)
    owned = []
    for source in sources:
        is_folder = len(source.parts) > 1
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
        students.append(Handed(student=ids[_raw(one)], shown=shown(one.name or one.key), on_roster=one))
    if roster.students:
        strangers = sorted(one.shown for one in students if one.on_roster is None)
        notes += [f"{name} handed in and is not on the roster." for name in strangers]
    return ClassWork(tuple(sorted(students, key=lambda one: one.student)), tuple(notes), roster)


def _check_one_row_each(owners: dict[str, Owner], rows: dict[str, Student | None]) -> None:
    """Refuse two names for one student: whose marks would stand in the row?"""
    claims: dict[str, list[str]] = {}
    for raw, owner in owners.items():
        row = rows[raw]
        if row is not None or owner.number:
            claims.setdefault(f"row {row.key}" if row is not None else f"number {owner.number}", []).append(raw)
    if twice := [raws for raws in claims.values() if len(raws) > 1]:
        both = "; ".join(" and ".join(map(shown, raws)) for raws in twice)
        raise BadSubmissions(f"several names belong to one student: {both}. Put each student's work under one name")


def _raw(absent: Student) -> str:
    """What an id is made of where no file says it: a number alone tells an instructor too little."""
    return f"{absent.name} {absent.key}".strip() if absent.key.isdigit() else absent.key


def _handed(student: str, pairs: list[tuple[Owner, Source]], row: Student | None) -> Handed:
    owner = pairs[0][0]
    name = (row.name if row is not None else "") or owner.name or owner.raw
    late = ("The LMS marked it as late.",) if any(one.late for one, _ in pairs) else ()
    sources = tuple(source for _, source in pairs)
    return Handed(student=student, shown=shown(name), sources=sources, on_roster=row, notes=late)


def read_work(handed: Handed, patterns: tuple[str, ...]) -> Submission:
    """Read what one student handed in; whatever it is, this raises nothing, but says why it cannot be graded.

    Args:
        handed: the work, as `find_work` found it.
        patterns: of the file names that count.
    """
    reading = Reading(patterns)
    files = reading.files(handed.sources)
    notes = (*handed.notes, *reading.said())
    problem = None
    if not files and any(source.problem != EMPTY for source in handed.sources):
        problem = f"Nothing was found that can be graded: a file that fits {' or '.join(patterns)} was expected."
    return Submission(student=handed.student, files=files, notes=notes, problem=problem)


def is_inside(inner: Path, outer: Path) -> bool:
    """Return whether one place lies in another, or is the same."""
    one, other = os.path.realpath(inner), os.path.realpath(outer)
    return os.path.commonpath([one, other]) == other
