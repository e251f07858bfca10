"""The list of a class: who should have handed in, and what an LMS wants to see of each in a gradebook."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ttutor.texts import normal_form

KEYS = ("student", "identifier", "id")
"""The columns that may say who a student is, the first that there is; Canvas's own `Student` is a name beside an ID."""
NAMES = ("name", "full name", "student name", "student")
EMAILS = ("email", "email address", "e-mail")


class BadRoster(ValueError):
    """A list of a class cannot be used; the message says why and what was expected."""


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
        BadRoster: it cannot be read, has no column that says who is who, or says it twice.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), restkey="", restval=""))
    except OSError as error:
        raise BadRoster(f"cannot read {path}: {error.strerror}; check the path") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadRoster(f"{path} is not CSV in UTF-8: {error}") from error
    columns = {str(name).strip().casefold(): str(name) for name in (rows[0] if rows else {}) if name}
    key = _key_column(path, columns)
    students = tuple(_student(path, row, columns, key) for row in rows if _text(row, key) and not _is_scale(row))
    keys = [normal_form(student.key) for student in students]
    if twice := sorted({one for one in keys if keys.count(one) > 1}):
        raise BadRoster(f"{path} must name each student once, but twice came {', '.join(twice)}")
    return Roster(students, tuple(columns.values()))


def _key_column(path: Path, columns: Mapping[str, str]) -> str:
    if "student" in columns and "id" in columns and "sis login id" in columns:  # as Canvas exports it
        return columns["id"]
    found = next((columns[name] for name in KEYS if name in columns), None)
    if found is None:
        raise BadRoster(f"{path} must have rows and a column `student` (or Moodle's Identifier, Canvas's ID)")
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
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise BadRoster(
            f"{path}: submitted of {who} must be a time with its offset, such as 2026-11-20T23:59:00+01:00, "
            f"but came as {text!r}"
        )
    return moment.astimezone(UTC).isoformat()


def _text(row: Mapping[str, str], name: str) -> str:
    return str(row.get(name) or "").strip()


def _is_scale(row: Mapping[str, str]) -> bool:
    """Whether a row is Canvas's row of points, not a student."""
    return any(str(value).strip().casefold() == "points possible" for value in row.values())
