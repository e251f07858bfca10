"""The code of an exercise as a notebook shows it: imports, stub and solution."""

from __future__ import annotations

import ast
import inspect
import sys

from ttutor.exercises.exercise import Answer, Exercise
from ttutor.exercises.mutation import source_of

__all__ = ["imports", "solution_source", "stub_source"]


def stub_source(exercise: Exercise, name: str | None = None) -> str:
    """Return the stub as code, perhaps under another name than its own.

    >>> from ttutor.exercises.registry import find
    >>> print(stub_source(find("attention.softmax"), "my_softmax").splitlines()[0].partition("(")[0])
    def my_softmax
    """
    return _source(exercise.stub, name or exercise.name)


def solution_source(exercise: Exercise, name: str | None = None) -> str:
    """Return the solution as code, under the stub's name or another."""
    return _source(exercise.solution or exercise.reference, name or exercise.name)


def imports(*exercises: Exercise) -> list[str]:
    """Return the import lines that stubs and solutions need: those of their modules whose names they use.

    >>> from ttutor.exercises.registry import find
    >>> "from torch import Tensor" in imports(find("attention.softmax"))
    True
    """
    plain: set[str] = set()
    taken: dict[str, set[str]] = {}
    for code in (code for one in exercises for code in (one.stub, one.solution or one.reference)):
        used = {node.id for node in ast.walk(ast.parse(_source(code, code.__name__))) if isinstance(node, ast.Name)}
        for statement in ast.parse(inspect.getsource(sys.modules[code.__module__])).body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                names = {ast.unparse(alias) for alias in statement.names if _bound(alias) in used}
                if isinstance(statement, ast.ImportFrom) and names:
                    taken.setdefault(statement.module or "", set()).update(names)
                elif isinstance(statement, ast.Import):
                    plain |= {f"import {name}" for name in names}
    return [*sorted(plain), *(f"from {module} import {', '.join(sorted(taken[module]))}" for module in sorted(taken))]


def _bound(alias: ast.alias) -> str:
    """The name that an import makes."""
    return alias.asname or alias.name.partition(".")[0]


def _source(code: Answer, name: str) -> str:
    """Return the source of a function or class, under another name."""
    text = source_of(code)
    (definition,) = ast.parse(text).body
    keyword = "class" if isinstance(definition, ast.ClassDef) else "def"
    return text.replace(f"{keyword} {code.__name__}", f"{keyword} {name}", 1)
