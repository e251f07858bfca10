"""A student's code in memory: its definitions run one by one, its functions called, its errors described.

Beside it stand modules made of text: the parts of the course's package that an exercise gives.
"""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

COURSE = "ttutor"
STANDS_FOR_CHECK = ("check", "exercises", "find")
LONGEST_TEXT = 2000


class Student:
    """The modules of one submission, one for each of its files."""

    def __init__(self) -> None:
        self.modules: dict[int, ModuleType] = {}
        self.sources: dict[str, list[str]] = {}

    def run(self, file: int, where: str, source: str, line: int) -> None:
        """Run one definition of a file."""
        module = self._module(file)
        lines = self.sources.setdefault(where, [])
        lines.extend([""] * (line - 1 - len(lines)))
        lines[line - 1 :] = source.splitlines()
        tree = ast.increment_lineno(ast.parse(source), line - 1)
        exec(compile(tree, where, "exec", dont_inherit=True), vars(module))

    def answer(self, file: int, name: str) -> Any:
        """Return what a file calls by a name.

        Raises:
            LookupError: nothing; the definition did not run.
        """
        try:
            return vars(self.modules[file])[name]
        except KeyError as error:
            raise LookupError(name) from error

    def place_of(self, error: BaseException) -> dict[str, Any]:
        """Return where an exception left the student's own code."""
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in self.sources]
        if not frames:
            return {}
        frame, lines = frames[-1], self.sources[frames[-1].filename]
        number = frame.lineno or 0
        text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        return {"where": frame.filename, "line": number, "code": text[:200]}

    def _module(self, file: int) -> ModuleType:
        if file not in self.modules:
            module = self.modules[file] = ModuleType(f"submission_{file}")
            sys.modules[module.__name__] = module
        return self.modules[file]


def describe_error(student: Student, error: BaseException) -> dict[str, Any]:
    """Return an exception in words: its type, what it says, and where."""
    try:
        text = str(error)[:LONGEST_TEXT]
    except Exception as broken:  # a student's exception may have a broken __str__
        text = f"(its text cannot be had: {type(broken).__name__})"
    return {"type": type(error).__name__[:80], "text": text} | student.place_of(error)


class NotHere(ImportError):
    """An import of a part of the course's package that is not there while grading."""


class BundledImporter(MetaPathFinder, Loader):
    """Finds the modules of the course's package: those that are given, and packages around them; no others.

    ``ttutor.exercises`` has a ``check`` that does nothing, so that notebooks that check themselves can be loaded.
    """

    def __init__(self) -> None:
        self.sources: dict[str, str] = {f"{COURSE}.exercises": ""}

    def install(self) -> None:
        """Take the place of the course's package."""
        for name in [name for name in sys.modules if name.partition(".")[0] == COURSE]:
            del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Answer for every module of the course's package."""
        if name.partition(".")[0] != COURSE:
            return None
        holds_others = any(one.startswith(f"{name}.") for one in self.sources)
        if name not in self.sources and not holds_others:
            raise NotHere(f"{name} is not there while grading: answers run without the course's package")
        return ModuleSpec(name, self, is_package=holds_others or name == f"{COURSE}.exercises")

    def exec_module(self, module: ModuleType) -> None:
        """Run a module's text."""
        name = module.__name__
        if name == f"{COURSE}.exercises":
            for function in STANDS_FOR_CHECK:
                setattr(module, function, _nothing)
        exec(compile(self.sources.get(name, ""), f"<{name}>", "exec", dont_inherit=True), vars(module))


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing: grading does what `check` would do."""
