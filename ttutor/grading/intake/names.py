"""Whose a file is, read off its name: the patterns of Moodle and Canvas, and names made safe as file names.

The patterns are those of Moodle's ``mod/assign/classes/downloader.php`` (4.x; older ones end a folder's name with an
underscore) and of Canvas's ``lib/content_zipper.rb``, as their sources stood in public in 2025.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

MOODLE = re.compile(r"_([^\W_]+)_assignsubmission_(?:file|onlinetext)(?:_|$)")
CANVAS = re.compile(r"(?P<name>[^\W\d_][^\W_]*)(?P<late>_LATE)?_(?P<number>\d+)_\d+_(?P<file>.+)", re.S)
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
    """Return whether every file of a class is named as Canvas names them: a single one may be so by accident."""
    names = tuple(unicodedata.normalize("NFC", name) for name in files)
    return bool(names) and all(any(one.fullmatch(name) for one in (CANVAS_ANONYMOUS, CANVAS)) for name in names)


def owner_of(entry: str, *, is_folder: bool = False, canvas: bool = False) -> Owner:
    """Read off the name of a file or folder of a class whose it is; letters come composed, however a disk writes them.

    Args:
        entry: the name.
        is_folder: of a folder.
        canvas: the class came from Canvas, see `looks_like_canvas`.

    >>> owner_of("Ada Lovelace_417_assignsubmission_file", is_folder=True).raw
    'Ada Lovelace 417'
    >>> owner_of("lovelaceada_LATE_417_9001_hw1-2.ipynb", canvas=True)
    Owner(raw='lovelaceada 417', number='417', name='lovelaceada', file='hw1-2.ipynb', late=True)
    >>> owner_of("ada.py").raw
    'ada'
    """
    entry = unicodedata.normalize("NFC", entry)
    if canvas and not is_folder:
        for pattern in (CANVAS_ANONYMOUS, CANVAS):
            if (found := pattern.fullmatch(entry)) is not None:
                name, number = found["name"], found["number"]
                return Owner(f"{name} {number}", number, name, found["file"], bool(found["late"]))
    elif readings := [one for one in _moodle(entry) if one.file or is_folder]:
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
    """Return a name as it can be shown anywhere: one line, printable, not too long.

    >>> shown("a\\x1b[2J\\nb" + "\\udcff")
    'a\ufffd[2J\ufffdb\ufffd'
    """
    plain = "".join(one if one.isprintable() else "\ufffd" for one in name)
    return plain if len(plain) <= 120 else f"{plain[:117]}..."


def _slug(raw: str) -> str:
    plain = unicodedata.normalize("NFKD", raw).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", plain).strip("-._")[:LONGEST].rstrip("-._")
    slug = re.sub(r"\.{2,}", ".", slug)
    return f"x-{slug}" if RESERVED.fullmatch(slug) else slug


def _digest(raw: str) -> str:
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:8]
