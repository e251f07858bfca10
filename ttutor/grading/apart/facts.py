"""Facts about the definitions of one file: what each does, uses and is like; nothing is run."""

from __future__ import annotations

import ast
import copy
import zlib
from collections.abc import Iterator
from typing import Any

from .code import definition_of, digest, globals_of, methods_of, names_in

__all__ = ["facts_of", "imported", "syntax"]

MOST_GRAMS = 4000
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
CLASS_NAMES = {"__module__", "__qualname__", "__doc__"}


def facts_of(name: str, bindings: dict[str, ast.stmt]) -> dict[str, Any]:
    """Return what can be told of the answer of a name.

    Args:
        name: what it is called.
        bindings: for each name of the file, the statement that binds it last.
    """
    statement = _followed(name, bindings)
    code = definition_of(statement)
    is_class = isinstance(statement, ast.ClassDef)
    methods = {one: digest(method) for one, method in methods_of(code).items()} if is_class and code else {}
    return {
        "class": is_class,
        "steps": digest(code) if code is not None and not is_class else "",
        "methods": methods,
        "uses": sorted(_used(statement, bindings))[:2000],
        "syntax": syntax(statement),
    }


def imported(statements: list[ast.stmt]) -> list[str]:
    """The packages that statements import, wherever in them."""
    found = set()
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return sorted(found)[:200]


def syntax(statement: ast.stmt) -> list[int]:
    """The shape of a definition as a bag of numbers, one for each node: names and docstrings make no difference."""
    numbers = []
    for node in ast.walk(copy.deepcopy(statement)):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, Definition):
            node.returns, node.name, node.body = None, "", _undocumented(node.body)
        if not isinstance(node, (ast.expr_context, ast.operator, ast.Load)):
            numbers.append(zlib.crc32(_shape(node).encode()))
    return numbers[:MOST_GRAMS]


def _shape(node: ast.AST) -> str:
    """One node with its children, in words."""
    own = getattr(node, "attr", "") or (repr(node.value)[:40] if isinstance(node, ast.Constant) else "")
    return f"{type(node).__name__}:{own}:" + ",".join(type(child).__name__ for child in ast.iter_child_nodes(node))


def _undocumented(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if is_text else body


def _followed(name: str, bindings: dict[str, ast.stmt]) -> ast.stmt:
    """Follow ``softmax = my_softmax`` to where it is defined."""
    for _ in range(10):
        statement = bindings[name]
        value = getattr(statement, "value", None)
        if not (isinstance(statement, ast.Assign) and isinstance(value, ast.Name) and value.id in bindings):
            break
        name = value.id
    return bindings[name]


def _used(statement: ast.stmt, bindings: dict[str, ast.stmt]) -> set[str]:
    """Every name that a definition uses, itself or through those beside it, under the name that it has at its home."""
    found, seen, queue = set(), set(), [statement]
    while queue:
        one = queue.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        for name, is_attribute in _names(one):
            beside = None if is_attribute else bindings.get(name)
            if isinstance(beside, Definition) or _is_lambda(beside):
                queue.append(beside)
            else:
                found |= {name} if is_attribute else _homes(name, bindings)
    return found


def _names(statement: ast.stmt) -> Iterator[tuple[str, bool]]:
    code = definition_of(statement)
    if code is None:
        return
    if not isinstance(statement, ast.ClassDef):
        yield from names_in(code)
        return
    own = CLASS_NAMES | set(methods_of(code)) | {name for name in code.co_names if name not in globals_of(code)}
    for method in methods_of(code).values():
        yield from ((name, attribute) for name, attribute in names_in(method) if not (attribute and name in own))


def _is_lambda(statement: ast.stmt | None) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda)


def _homes(name: str, bindings: dict[str, ast.stmt]) -> set[str]:
    """A name, and what it is called where it comes from: imports and assignments may call a thing by another name."""
    names = {name}
    for _ in range(10):
        statement = bindings.get(name)
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.ImportFrom):
            return names | {one.name for one in statement.names if (one.asname or one.name) == name}
        if not isinstance(statement, ast.Assign) or not isinstance(value, (ast.Attribute, ast.Name)):
            break
        name = value.attr if isinstance(value, ast.Attribute) else value.id
        names.add(name)
        if isinstance(value, ast.Attribute):
            break
    return names
