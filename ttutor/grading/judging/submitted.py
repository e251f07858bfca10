"""What the worker's reader says of a submission's files, checked: the judge itself never looks into them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, Strict, StringConstraints, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from ttutor.grading.marks import SourceFile
from ttutor.grading.worker.framing import Malformed
from ttutor.grading.worker.reader import READ_CAP

NO_MORE = ConfigDict(extra="forbid")
Text = Annotated[str, StringConstraints(max_length=2000)]
Texts = Annotated[tuple[Text, ...], Field(max_length=5000)]


@dataclass(frozen=True, config=NO_MORE)
class Piece:
    """A definition to run: what to call the place, its text, and the line on which it starts."""

    where: Text
    source: Annotated[str, StringConstraints(max_length=1 << 22)]
    line: Annotated[int, Strict(), Field(gt=0, lt=1 << 31)]


@dataclass(frozen=True, config=NO_MORE)
class Facts:
    """What an answer is, as far as that shows without running it.

    Args:
        is_class: whether it is a class.
        steps: the digest of a function's code, or nothing where it cannot be told.
        methods: those of a class's methods.
        syntax: how often each shape of syntax stands in it, by the digest of the shape.
    """

    is_class: Annotated[bool, Strict()]
    steps: Text
    methods: dict[Text, Text]
    syntax: Annotated[tuple[Annotated[int, Strict()], ...], Field(max_length=5000)]


@dataclass(frozen=True, config=NO_MORE)
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

    pieces: Annotated[tuple[Piece, ...], Field(max_length=5000)] = ()
    answers: dict[Text, Facts] = Field(default_factory=dict)
    imports: Texts = ()
    names: Texts = ()
    broken: Texts = ()
    notes: Texts = ()
    problem: Text | None = None


def read_files(session: Any, files: tuple[SourceFile, ...], wanted: list[str]) -> list[FileRead]:
    """Have files read in a session; where they do not get through together, each by itself."""
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
    try:
        found = TypeAdapter(list[FileRead]).validate_python(came)
    except ValidationError as error:
        raise Malformed(f"expected what files hold: {error.errors()[0]['msg']}") from error
    if len(found) != count:
        raise Malformed("expected as many files as were sent")
    return found
