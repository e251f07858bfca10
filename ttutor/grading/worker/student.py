"""A student's code in memory: its definitions run one by one, its functions called, its mistakes told."""

from __future__ import annotations

import ast
import sys
import traceback
from types import ModuleType
from typing import Any

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


def told(student: Student, error: BaseException) -> dict[str, Any]:
    """Return an exception in words: its type, what it says, and where."""
    try:
        text = str(error)[:LONGEST_TEXT]
    except Exception as broken:  # a student's exception may have a broken __str__
        text = f"(its text cannot be had: {type(broken).__name__})"
    return {"type": type(error).__name__[:80], "text": text} | student.place_of(error)
