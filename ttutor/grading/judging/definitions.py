"""What is said of an answer without running it: which definition counts, untouched, copied, suspicious."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache

from ttutor.exercises.exercise import Exercise
from ttutor.exercises.source import solution_source, stub_source
from ttutor.grading.judging.submitted import Facts, FileRead
from ttutor.grading.worker.facts import methods_of, steps_of, syntax

EMPTY = ast.parse("def f(): ...").body[0]
STRANGE = {
    "ctypes": "reaches into memory",
    "gc": "looks for objects of the program around it",
    "inspect": "looks at the program around it",
    "multiprocessing": "starts processes",
    "os": "talks to the operating system",
    "pickle": "makes objects from bytes",
    "requests": "talks to the network",
    "signal": "talks to the operating system",
    "socket": "talks to the network",
    "subprocess": "starts processes",
    "threading": "starts threads",
    "ttutor": "is the course's package; most of it is not there while grading",
    "urllib": "talks to the network",
}


def names_of(exercise: Exercise) -> tuple[str, str]:
    """The names under which an answer is looked for, the better one first."""
    return f"my_{exercise.name}", exercise.name


def chosen(exercise: Exercise, files: list[FileRead]) -> tuple[int, str, Facts] | None:
    """Return the definition that counts: file, name and facts; None where there is none.

    The last file that has one wins, and one that somebody has worked on wins over an untouched stub.
    """
    found = list(_candidates(exercise, files))
    return next((one for one in found if not is_untouched(exercise, one[2])), found[0] if found else None)


def _candidates(exercise: Exercise, files: list[FileRead]) -> Iterator[tuple[int, str, Facts]]:
    for number, file in reversed([*enumerate(files)]):
        yield from ((number, name, file.answers[name]) for name in names_of(exercise) if name in file.answers)


def is_broken(exercise: Exercise, files: list[FileRead]) -> bool:
    """Whether an answer stands in a part of a file that does not parse."""
    return any(name in file.broken for file in files for name in names_of(exercise))


def is_untouched(exercise: Exercise, facts: Facts) -> bool:
    """Whether an answer is still the stub: see `ttutor.exercises.student_code.is_untouched`."""
    stub = ast.parse(stub_source(exercise)).body[0]
    if facts.is_class and isinstance(stub, ast.ClassDef):
        return facts.methods == methods_of(stub)
    return bool(facts.steps) and facts.steps in (steps_of(stub), steps_of(EMPTY))


def similarity(exercise: Exercise, facts: Facts) -> float | None:
    """The share of the published solution's syntax that an answer has, from 0 to 1."""
    solution = _solution(exercise)
    shared = (solution & Counter(facts.syntax)).total()
    return round(shared / solution.total(), 2) if solution else None


def warnings_about(file: FileRead) -> tuple[str, ...]:
    """What a human may want to look at in a file, one sentence each."""
    imports = [f"It imports `{name}`, which {STRANGE[name]}." for name in file.imports if name in STRANGE]
    return (*imports, *(f"It uses `{name}`." for name in file.names))


@cache
def _solution(exercise: Exercise) -> Counter[int]:
    return Counter(syntax(ast.parse(solution_source(exercise)).body[0]))
