"""What the worker's reader says of a submission's files, checked, and which definition in them answers an exercise."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, Field, Strict, StringConstraints, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from ttutor.exercises.exercise import Exercise
from ttutor.exercises.source import stub_source
from ttutor.grading.marks import SourceFile
from ttutor.grading.worker.framing import Malformed
from ttutor.grading.worker.reader import READ_CAP, methods_of, steps_of
from ttutor.texts import printable

NO_MORE = ConfigDict(extra="forbid")
Text = Annotated[str, StringConstraints(max_length=2000)]
Texts = Annotated[tuple[Text, ...], Field(max_length=5000)]
Place = Annotated[int, Strict(), Field(ge=0, lt=5000)]
EMPTY = ast.parse("def f(): ...").body[0]


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
        needs: the places of the pieces that have to run for it.
    """

    is_class: Annotated[bool, Strict()]
    steps: Text
    methods: dict[Text, Text]
    needs: Annotated[tuple[Place, ...], Field(max_length=5000)]


@dataclass(frozen=True, config=NO_MORE)
class FileRead:
    """One file, read.

    Args:
        pieces: what can be run, in order.
        answers: the facts of each answer, by the name that it has in the file.
        broken: names of answers that stand in parts that do not parse.
        notes: what was left out, one sentence each.
        problem: why nothing could be read, or None.
    """

    pieces: Annotated[tuple[Piece, ...], Field(max_length=5000)] = ()
    answers: dict[Text, Facts] = Field(default_factory=dict)
    broken: Texts = ()
    notes: Texts = ()
    problem: Text | None = None


@dataclass(frozen=True)
class Definition:
    """The definition that counts as the answer to an exercise.

    Args:
        file: the number of its file.
        name: what it is called there.
        facts: what it is.
        pieces: what has to run for it, each with its place in the file; nothing else of the submission is run.
    """

    file: int
    name: str
    facts: Facts
    pieces: tuple[tuple[int, Piece], ...]


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
    return printable(file.name[-120:])


def files_read(came: Any, count: int) -> list[FileRead]:
    """Check what the reader sent for some files; raises `Malformed`."""
    try:
        found = TypeAdapter(list[FileRead]).validate_python(came)
    except ValidationError as error:
        raise Malformed(f"expected what files hold: {error.errors()[0]['msg']}") from error
    if len(found) != count:
        raise Malformed("expected as many files as were sent")
    if any(place >= len(file.pieces) for file in found for facts in file.answers.values() for place in facts.needs):
        raise Malformed("an answer must need pieces of its file")
    return found


def names_of(exercise: Exercise) -> tuple[str, str]:
    """The names under which an answer is looked for, the better one first."""
    return f"my_{exercise.name}", exercise.name


def chosen(exercise: Exercise, files: Sequence[FileRead]) -> Definition | None:
    """Return the definition that counts, or None where there is none.

    The last file that has one wins, and one that somebody has worked on wins over an untouched stub.
    """
    found = list(_candidates(exercise, files))
    return next((one for one in found if not is_untouched(exercise, one.facts)), found[0] if found else None)


def _candidates(exercise: Exercise, files: Sequence[FileRead]) -> Iterator[Definition]:
    for number, file in reversed([*enumerate(files)]):
        for name in (name for name in names_of(exercise) if name in file.answers):
            facts = file.answers[name]
            yield Definition(number, name, facts, tuple((place, file.pieces[place]) for place in facts.needs))


def is_broken(exercise: Exercise, files: Sequence[FileRead]) -> bool:
    """Whether an answer stands in a part of a file that does not parse."""
    return any(name in file.broken for file in files for name in names_of(exercise))


def is_untouched(exercise: Exercise, facts: Facts) -> bool:
    """Whether an answer is still the stub: see `ttutor.exercises.student_code.is_untouched`."""
    stub = ast.parse(stub_source(exercise)).body[0]
    if facts.is_class and isinstance(stub, ast.ClassDef):
        return facts.methods == methods_of(stub)
    return bool(facts.steps) and facts.steps in (steps_of(stub), steps_of(EMPTY))
