"""What compiled code shows without being run: its steps, and the names that it looks up.

`steps` stands in `ttutor.exercises.student_code` too. It cannot be shared: exercises know nothing of the grader, and a
worker has nothing of the package but this folder. Tests hold them together.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import types
from typing import Any

__all__ = ["definition_of", "digest", "globals_of", "methods_of", "steps"]

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
