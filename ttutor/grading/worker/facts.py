"""Facts about the definitions of one file: what each does, uses and is like; nothing is run."""

from __future__ import annotations

import ast
import copy
import hashlib
import zlib
from typing import Any

MOST_GRAMS = 4000
TELLING = (
    "__import__ compile eval exec globals open setprofile settrace _pop_mode _pop_torch_dispatch_stack "
    "_disable_current_modes _DisableTorchDispatch DisableTorchFunction DisableTorchFunctionSubclass _ops "
    "_get_frame _getframe"
).split()
"""Names that a human may want to look at: they run text as code, open files, or reach for the watch."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
NOTHING = (ast.Return(), ast.Return(ast.Constant(None)))


def facts_of(name: str, bindings: dict[str, ast.stmt]) -> dict[str, Any]:
    """Return what can be told of the answer of a name."""
    statement = _followed(name, bindings)
    return {
        "is_class": isinstance(statement, ast.ClassDef),
        "steps": steps_of(statement),
        "methods": methods_of(statement) if isinstance(statement, ast.ClassDef) else {},
        "syntax": syntax(statement),
    }


def steps_of(statement: ast.stmt) -> str:
    """What a function or a lambda does, as a digest; nothing of anything else. Names and docstrings do nothing."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Lambda):
        body: list[ast.stmt] = [ast.Return(value.body)]
    elif isinstance(statement, Function):
        body = [one for one in statement.body if not isinstance(one, ast.Pass) and not _is_constant(one)]
    else:
        return ""
    steps = [ast.dump(one) for one in body]
    if steps and steps[-1] in map(ast.dump, NOTHING):
        del steps[-1]
    return hashlib.sha256(repr(steps).encode("utf-8", "replace")).hexdigest()[:32]


def methods_of(statement: ast.ClassDef) -> dict[str, str]:
    """What each method of a class does."""
    return {one.name: steps_of(one) for one in statement.body if isinstance(one, Function)}


def imported(statements: list[ast.stmt]) -> list[str]:
    """The packages that statements import, wherever in them."""
    found = set()
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return sorted(found)[:200]


def named(statements: list[ast.stmt]) -> list[str]:
    """Those names of `TELLING` that statements use, as names, as attributes or in texts."""
    found = set()
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
            found.add(node.value)
    return sorted(found & set(TELLING))


def syntax(statement: ast.stmt) -> list[int]:
    """The shape of a definition as a bag of numbers, one for each node: names and docstrings make no difference."""
    numbers = []
    for node in ast.walk(copy.deepcopy(statement)):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, Definition):
            node.name, node.body = "", [one for one in node.body if not _is_constant(one)]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        if not isinstance(node, (ast.expr_context, ast.operator, ast.Load)):
            numbers.append(zlib.crc32(_shape(node).encode()))
    return numbers[:MOST_GRAMS]


def _shape(node: ast.AST) -> str:
    """One node with its children, in words."""
    own = getattr(node, "attr", "") or (repr(node.value)[:40] if isinstance(node, ast.Constant) else "")
    return f"{type(node).__name__}:{own}:" + ",".join(type(child).__name__ for child in ast.iter_child_nodes(node))


def _is_constant(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, or three dots."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _followed(name: str, bindings: dict[str, ast.stmt]) -> ast.stmt:
    """Follow ``softmax = my_softmax`` to where it is defined."""
    for _ in range(10):
        statement = bindings[name]
        value = getattr(statement, "value", None)
        if not (isinstance(statement, ast.Assign) and isinstance(value, ast.Name) and value.id in bindings):
            break
        name = value.id
    return bindings[name]
