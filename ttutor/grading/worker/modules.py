"""Modules made of text: the parts of the course's package that an exercise gives, and the code that watches answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

COURSE = "ttutor"
STANDS_FOR_CHECK = ("check", "exercises", "find")


class NotHere(ImportError):
    """An import of a part of the course's package that is not there while grading."""


class Given(MetaPathFinder, Loader):
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
