"""The reader: takes a submission's files apart into definitions and facts, and runs nothing of them.

It works in the sandbox, since text can be made that crashes Python's compiler.
"""

from __future__ import annotations

import ast
import dis
import re
import types
from typing import Any

from .facts import facts_of, imported, named
from .texts import Piece, pieces_of

READ_CAP = 128 << 20
DEFINES = re.compile(r"^(?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)
KEPT_WHOLE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
BINDS = (*KEPT_WHOLE, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.Try, ast.With)
MOST_TEXT = 3 << 20


def read_file(name: str, data: bytes, wanted: list[str]) -> dict[str, Any]:
    """Return what a file holds: the pieces to run, facts of the answers, and notes on what was left out."""
    pieces, notes, broken, is_notebook = pieces_of(name, data)
    bindings = _bindings(pieces)
    imports = (ast.Import, ast.ImportFrom)  # what is imported is nobody's answer
    answers = [one for one in wanted if one in bindings and not isinstance(bindings[one], imports)]
    kept = _needed(pieces, answers) if is_notebook else pieces
    if sum(len(one.source) for one in kept) > MOST_TEXT:
        notes.append("its definitions are too long to be graded")
        kept, answers, broken = [], [], [*broken, *(f"def {one}" for one in answers)]
    return {
        "pieces": [{"where": one.where, "source": one.source, "line": one.line} for one in kept],
        "answers": {one: facts_of(one, bindings) for one in answers},
        "names": named([statement for one in kept for statement in one.statements]),
        "imports": imported([statement for one in kept for statement in one.statements]),
        "broken": _lost(broken, wanted, nothing_left=not pieces),
        "notes": notes[:40],
    }


def _lost(broken: list[str], wanted: list[str], *, nothing_left: bool) -> list[str]:
    """The answers that stand in texts that do not parse; any of them, where nothing of a file can be read."""
    named = {found for text in broken for found in DEFINES.findall(text)} & set(wanted)
    return sorted(named or (wanted if broken and nothing_left else ()))


def _bindings(pieces: list[Piece]) -> dict[str, ast.stmt]:
    """For each name, the statement that binds it last."""
    return {name: one for piece in pieces for one in piece.statements for name in _bound(one)}


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if not isinstance(statement, BINDS):
        return set()
    found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return found.union(*(_bound(inner) for inner in ast.walk(statement) if isinstance(inner, KEPT_WHOLE)))


def _touched(statement: ast.stmt) -> set[str]:
    """The names that a statement changes without binding them: ``Layer.forward = f``, ``@register(Layer)``."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    found = {_root(one) for one in targets if isinstance(one, (ast.Attribute, ast.Subscript))}
    for decorator in getattr(statement, "decorator_list", []):
        found |= {node.id for node in ast.walk(decorator) if isinstance(node, ast.Name)}
    return {name for name in found if name is not None}


def _root(node: ast.AST) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _globals(code: types.CodeType) -> set[str]:
    """The names that code, or a function inside it, looks up in its module."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return found.union(*(_globals(one) for one in code.co_consts if isinstance(one, types.CodeType)))


def _needed(pieces: list[Piece], answers: list[str]) -> list[Piece]:
    """The pieces of a notebook that its answers need: no trainings, no plots."""
    uses = {id(piece): _globals(piece.code()) for piece in pieces}
    bound = {id(piece): set().union(*map(_bound, piece.statements)) for piece in pieces}
    touched = {id(piece): set().union(*map(_touched, piece.statements)) for piece in pieces}
    names, kept = set(answers), set()
    while True:
        more = {
            id(one) for one in pieces if id(one) not in kept and (bound[id(one)] & names or touched[id(one)] & names)
        }
        if not more:
            return [piece for piece in pieces if id(piece) in kept]
        kept |= more
        names |= set().union(*(uses[one] for one in more))
