"""What the reader told of a submission's files, checked: the judge itself never looks into them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ttutor.grading.marks import SourceFile
from ttutor.grading.worker.framing import Malformed
from ttutor.grading.worker.reader import READ_CAP

__all__ = ["Facts", "FileRead", "Piece", "files_read", "read_files", "shown_name"]

SHAPE = {"pieces": list, "answers": dict, "imports": list, "names": list, "broken": list, "notes": list}
MOST_PIECES = 5000


@dataclass(frozen=True)
class Piece:
    """A definition to run: what to call the place, its text, and the line on which it starts."""

    where: str
    source: str
    line: int


@dataclass(frozen=True)
class Facts:
    """What an answer is, as far as that shows without running it.

    Args:
        is_class: whether it is a class.
        steps: the digest of a function's code, or nothing where it cannot be told.
        methods: those of a class's methods.
        syntax: how often each shape of syntax stands in it.
    """

    is_class: bool
    steps: str
    methods: dict[str, str]
    syntax: Counter[int]


@dataclass(frozen=True)
class FileRead:
    """One file, read.

    Args:
        pieces: what to run, in order.
        answers: the facts of each answer, by the name that it has in the file.
        imports: the packages that the pieces import.
        names: names in them that a human may want to look at.
        broken: names of answers that stand in parts that do not parse.
        notes: what was left out, one sentence each.
        problem: why nothing could be read, or None.
    """

    pieces: tuple[Piece, ...] = ()
    answers: dict[str, Facts] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str | None = None


def read_files(session: Any, files: tuple[SourceFile, ...], wanted: list[str]) -> list[FileRead]:
    """Have files read in a session; where they do not get through together, each by itself.

    Args:
        session: a `ttutor.grading.judging.session.Session`.
        files: what was handed in.
        wanted: the names that answers may have.
    """
    small = tuple(file for file in files if len(file.data) <= READ_CAP)
    together = session.read(small, wanted) if sum(len(file.data) for file in small) <= READ_CAP else None
    found = dict(zip(small, together or [_alone(session, file, wanted) for file in small], strict=True))
    too_large = f"and at most {READ_CAP >> 20} MiB are read"
    return [
        found.get(file) or FileRead(problem=f"{shown_name(file)} has {len(file.data) >> 20} MiB, {too_large}")
        for file in files
    ]


def _alone(session: Any, file: SourceFile, wanted: list[str]) -> FileRead:
    found = session.read((file,), wanted)
    reason = "reading it ends the process that does it, or takes too long"
    return found[0] if found else FileRead(problem=f"{shown_name(file)} could not be read: {reason}")


def shown_name(file: SourceFile) -> str:
    """A file's name as it can be shown; only its end counts."""
    return "".join(one if one.isprintable() else "\ufffd" for one in file.name[-120:])


def files_read(came: Any, count: int) -> list[FileRead]:
    """Check what the reader sent for some files; raises `Malformed`."""
    if not isinstance(came, list) or len(came) != count:
        raise Malformed("expected as many files as were sent")
    return [file_read(one) for one in came]


def file_read(came: Any) -> FileRead:
    """Check what the reader sent for one file; raises `Malformed`."""
    if not isinstance(came, dict) or set(came) != set(SHAPE):
        raise Malformed(f"a file must have {', '.join(SHAPE)}")
    if not all(type(came[name]) is kind for name, kind in SHAPE.items()):
        raise Malformed(f"a file must have {', '.join(SHAPE)}, each of its type")
    if len(came["pieces"]) > MOST_PIECES:
        return FileRead(problem=f"it has more than {MOST_PIECES} definitions")
    return FileRead(
        pieces=tuple(_piece(piece) for piece in came["pieces"]),
        answers={_text(name): _facts(facts) for name, facts in came["answers"].items()},
        imports=_texts(came["imports"]),
        names=_texts(came["names"]),
        broken=_texts(came["broken"]),
        notes=_texts(came["notes"]),
    )


def _piece(came: Any) -> Piece:
    if not isinstance(came, dict) or set(came) != {"where", "source", "line"}:
        raise Malformed("a definition must have a place, a source and a line")
    if type(came["line"]) is not int or not 0 < came["line"] < 1 << 31:
        raise Malformed("a line must be a number")
    return Piece(_text(came["where"]), _text(came["source"], 1 << 22), came["line"])


def _facts(came: Any) -> Facts:
    if not isinstance(came, dict) or set(came) != {"class", "steps", "methods", "syntax"}:
        raise Malformed("an answer must have its facts")
    numbers = came["syntax"]
    if type(came["class"]) is not bool or type(came["methods"]) is not dict or type(numbers) is not list:
        raise Malformed("the facts of an answer must have their types")
    if not all(type(number) is int for number in numbers):
        raise Malformed("syntax must be numbers")
    methods = {_text(name): _text(steps) for name, steps in came["methods"].items()}
    return Facts(came["class"], _text(came["steps"]), methods, Counter(numbers))


def _texts(came: Any) -> tuple[str, ...]:
    if type(came) is not list or len(came) > 5000:
        raise Malformed("expected a list of texts")
    return tuple(_text(one) for one in came)


def _text(came: Any, longest: int = 2000) -> str:
    if type(came) is not str or len(came) > longest:
        raise Malformed("expected a text")
    return came.encode("utf-8", "replace").decode("utf-8")
