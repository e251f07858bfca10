"""Whose a file is, read off its name: the patterns of Moodle and Canvas, and names made safe as file names.

The patterns are those of Moodle's ``mod/assign/classes/downloader.php`` (4.x; older ones end a folder's name with an
underscore) and of Canvas's ``lib/content_zipper.rb``, as their sources stood in public in 2025.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ttutor.errors import FileError
from ttutor.texts import normal_form, printable

MOODLE = re.compile(r"_([^\W_]+)_assignsubmission_(?:file|onlinetext)(?:_|$)")
CANVAS_NAME = r"(?P<name>[^\W\d_](?:[^\W_]|[-'.])*)(?P<late>_LATE)?_(?P<number>\d+)"
CANVAS = re.compile(rf"{CANVAS_NAME}_(?:\d+_(?P<file>.+)|(?P<text>text\.html))", re.S)
CANVAS_ANONYMOUS = re.compile(r"(?P<late>LATE_)?(?P<name>anon)_(?P<number>[^\W_]+)_\d+_(?P<file>.+)", re.S)
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.I)
LONGEST = 60


@dataclass(frozen=True)
class Owner:
    """Who handed a file in, as far as its name tells.

    Args:
        raw: what tells one student from another.
        number: the LMS's own number of the student, or "".
        name: the student's name as the LMS writes it, or "".
        file: the file's own name, where the LMS has put something before it, else "".
        late: whether the LMS marked it as late.
    """

    raw: str
    number: str = ""
    name: str = ""
    file: str = ""
    late: bool = False


class Ambiguous(ValueError):
    """A name that can be read as more than one student's."""

    def __init__(self, entry: str, readings: list[Owner]) -> None:
        names = " or of ".join(f"{shown(one.name)} ({one.number})" for one in readings)
        super().__init__(f"{shown(entry)} can be read as the work of {names}, and was given to nobody: rename it.")


def looks_like_canvas(files: Iterable[str]) -> bool:
    """Return whether most files of a class are named as Canvas names them: a single one may be so by accident."""
    owners = [canvas_owner(name) for name in files]
    return 2 * sum(owner is not None for owner in owners) > len(owners)


def canvas_owner(entry: str) -> Owner | None:
    """Return whose a file is if Canvas has named it, else None."""
    entry = unicodedata.normalize("NFC", entry)
    found = CANVAS_ANONYMOUS.fullmatch(entry) or CANVAS.fullmatch(entry)
    if found is None:
        return None
    parts, late = found.groupdict(), bool(found["late"])
    return Owner(
        f"{parts['name']} {parts['number']}", parts["number"], parts["name"], parts["file"] or "text.html", late
    )


def owner_of(entry: str, *, is_folder: bool = False, canvas: bool = False) -> Owner:
    """Read off the name of a file or folder of a class whose it is; letters come composed, however a disk writes them.

    Args:
        entry: the name.
        is_folder: of a folder.
        canvas: it may have come from Canvas: see `looks_like_canvas`.

    >>> owner_of("Ada Lovelace_417_assignsubmission_file", is_folder=True).raw
    'Ada Lovelace 417'
    >>> owner_of("lovelaceada_LATE_417_9001_hw1-2.ipynb", canvas=True)
    Owner(raw='lovelaceada 417', number='417', name='lovelaceada', file='hw1-2.ipynb', late=True)
    >>> owner_of("ada.py").raw
    'ada'
    """
    entry = unicodedata.normalize("NFC", entry)
    if canvas and not is_folder and (owner := canvas_owner(entry)) is not None:
        return owner
    if readings := [one for one in _moodle(entry) if one.file or is_folder]:
        if len({one.raw for one in readings}) > 1:
            raise Ambiguous(entry, readings)
        return readings[0]
    return Owner(entry if is_folder else entry.rpartition(".")[0] or entry)


def _moodle(entry: str) -> list[Owner]:
    """Every way in which a name can be read as Moodle writes it: a student's own part may look like Moodle's."""
    readings = []
    for found in MOODLE.finditer(entry):
        name, number = entry[: found.start()], found[1]
        if name:
            readings.append(Owner(f"{name} {number}", number, name, entry[found.end() :]))
    return readings


def safe_ids(raws: Iterable[str]) -> dict[str, str]:
    """Return for each name one that is safe as a file name, in a formula-free cell and on a command line.

    Two that would become one, also on a disk that takes capitals and small letters for the same, are told apart by a
    digest of what they were.

    >>> safe_ids(["Zoë Ångström", "../../etc/passwd"])
    {'Zoë Ångström': 'Zoe-Angstrom', '../../etc/passwd': 'etc-passwd'}
    """
    slugs = {raw: _slug(raw) for raw in raws}
    alike: dict[str, int] = {}
    for slug in slugs.values():
        alike[slug.casefold()] = alike.get(slug.casefold(), 0) + 1
    return {
        raw: slug if slug and alike[slug.casefold()] == 1 else f"{slug or 'student'}-{_digest(raw)}"
        for raw, slug in slugs.items()
    }


def shown(name: str) -> str:
    """Return a name as it can be shown anywhere: one line, printable, not too long."""
    plain = printable(name)
    return plain if len(plain) <= 120 else f"{plain[:117]}..."


def _slug(raw: str) -> str:
    plain = unicodedata.normalize("NFKD", raw).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", plain).strip("-._")[:LONGEST].rstrip("-._")
    slug = re.sub(r"\.{2,}", ".", slug)
    return f"x-{slug}" if RESERVED.fullmatch(slug) else slug


def _digest(raw: str) -> str:
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:8]


KEYS = ("student", "identifier", "id")
"""The columns that may say who a student is, the first that there is; Canvas's own `Student` is a name beside an ID."""
NAMES = ("name", "full name", "student name", "student")
EMAILS = ("email", "email address", "e-mail")


@dataclass(frozen=True)
class Student:
    """One row of the list, kept whole for the LMS; `key` is the name of the student's files, or the LMS's number.

    When the work came in is an ISO time in UTC, where the list says so.
    """

    key: str
    name: str
    email: str
    submitted: str | None
    row: Mapping[str, str]


@dataclass(frozen=True)
class Roster:
    """The whole list, and its columns as they were named."""

    students: tuple[Student, ...] = ()
    columns: tuple[str, ...] = ()

    def find(self, *keys: str) -> Student | None:
        """Return the student with one of these keys, tried in turn, or None."""
        known = {normal_form(student.key): student for student in self.students}
        return next((known[normal_form(key)] for key in keys if key and normal_form(key) in known), None)


def read_roster(path: Path) -> Roster:
    """Read a list of a class: our own (`student`, `name`, `email`, `submitted`), Canvas's gradebook or Moodle's
    grading worksheet, as they are exported.

    Raises:
        FileError: it cannot be read, has no column that says who is who, or says it twice.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        rows = csv_rows(text)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}; check the path") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path} is not CSV in UTF-8: {error}") from error
    columns = {str(name).strip().casefold(): str(name) for name in (rows[0] if rows else {}) if name}
    key = _key_column(path, columns)
    students = tuple(_student(path, row, columns, key) for row in rows if _text(row, key) and not _is_scale(row))
    keys = [normal_form(student.key) for student in students]
    if twice := sorted({one for one in keys if keys.count(one) > 1}):
        raise FileError(f"{path} must name each student once, but twice came {', '.join(twice)}")
    return Roster(students, tuple(columns.values()))


def csv_rows(text: str) -> list[dict[str, str]]:
    """Read CSV with a header, its cells between commas or, as spreadsheets of many countries write it, semicolons."""
    header = text.partition("\n")[0]
    mark = ";" if header.count(";") > header.count(",") else ","
    return list(csv.DictReader(io.StringIO(text, newline=""), restkey="", restval="", delimiter=mark))


def _key_column(path: Path, columns: Mapping[str, str]) -> str:
    if "student" in columns and "id" in columns and "sis login id" in columns:  # as Canvas exports it
        return columns["id"]
    found = next((columns[name] for name in KEYS if name in columns), None)
    if found is None:
        has = f"it has {', '.join(map(repr, columns.values()))}" if columns else "no row came below a header"
        raise FileError(f"{path} must have a column `student` (or Moodle's Identifier, Canvas's ID), but {has}")
    return found


def _student(path: Path, row: Mapping[str, str], columns: Mapping[str, str], key: str) -> Student:
    def first(names: tuple[str, ...]) -> str:
        return next((_text(row, columns[name]) for name in names if name in columns and columns[name] != key), "")

    who = unicodedata.normalize("NFC", _text(row, key))  # an id is made of it, the same on every system
    who = who.removeprefix("Participant ") if key.casefold() == "identifier" else who
    plain = {name: _text(row, name) for name in columns.values()}
    return Student(who, first(NAMES), first(EMAILS), _moment(path, who, first(("submitted",))), plain)


def _moment(path: Path, who: str, text: str) -> str | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        in_utc = None if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # no time, or one before the first year or after the last
        in_utc = None
    if in_utc is None:
        raise FileError(
            f"{path}: submitted of {who} must be a time with its offset, such as 2026-11-20T23:59:00+01:00, "
            f"but came as {text!r}"
        )
    return in_utc.isoformat()


def _text(row: Mapping[str, str], name: str) -> str:
    return str(row.get(name) or "").strip()


def _is_scale(row: Mapping[str, str]) -> bool:
    """Whether a row is Canvas's row of points, not a student."""
    return any(str(value).strip().casefold() == "points possible" for value in row.values())
