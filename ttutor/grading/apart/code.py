"""What compiled code shows without being run: its steps, and the names that it uses.

`steps` and `names_in` stand in `ttutor.exercises.student_code` too, some thirty lines. They cannot be shared: exercises
know nothing of the grader, and what runs apart has nothing of the package but this folder. Tests hold them together.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import types
from collections.abc import Iterator
from typing import Any

__all__ = ["definition_of", "digest", "globals_of", "methods_of", "names_in", "steps"]

SILENT = ("RESUME", "NOP", "COPY_FREE_VARS", "PUSH_NULL", "PRECALL", "EXTENDED_ARG")
ALIKE = {"LOAD_METHOD": "LOAD_ATTR"}
GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")


def steps(code: types.CodeType) -> list[tuple[str, Any]]:
    """What code does, without where it stands: as `ttutor.exercises.student_code` sees it in live functions."""
    found = []
    for step in dis.get_instructions(code):
        if step.opname in SILENT:
            continue
        value = steps(step.argval) if isinstance(step.argval, types.CodeType) else step.argval
        is_jump = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
        found.append((ALIKE.get(step.opname, step.opname), None if is_jump else repr(value)))
    return found


def digest(code: types.CodeType) -> str:
    """A short text, the same for code that does the same."""
    return hashlib.sha256(repr(steps(code)).encode()).hexdigest()[:32]


def names_in(code: types.CodeType) -> Iterator[tuple[str, bool]]:
    """Yield the names in code and in the functions inside it, and whether each is looked up on an object."""
    for step in dis.get_instructions(code):
        if isinstance(step.argval, types.CodeType):
            yield from names_in(step.argval)
        elif step.opname in (*GLOBAL, "LOAD_DEREF"):
            yield step.argval, False
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "IMPORT_NAME"):
            yield str(step.argval).rpartition(".")[2], True


def globals_of(code: types.CodeType) -> set[str]:
    """The names that code, or a function inside it, looks up in its module."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in GLOBAL}
    return found.union(*(globals_of(one) for one in code.co_consts if isinstance(one, types.CodeType)))


def definition_of(statement: ast.stmt) -> types.CodeType | None:
    """Return the code of the function or of the class's body that a statement defines."""
    module = compile(ast.Module([statement], []), "<definition>", "exec", dont_inherit=True)
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        names: tuple[str, ...] = (statement.name,)
    else:
        names = ("<lambda>",)
    found = [one for one in module.co_consts if isinstance(one, types.CodeType) and one.co_name in names]
    return found[-1] if found else None


def methods_of(body: types.CodeType) -> dict[str, types.CodeType]:
    """The functions that stand in a class's body."""
    return {one.co_name: one for one in body.co_consts if isinstance(one, types.CodeType) and one.co_name[0] != "<"}
