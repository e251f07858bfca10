"""What the text of an answer itself names: read by the judge, beside the words of its exercise."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

NAMES_A_PART = frozenset("register_buffer register_parameter register_module add_module".split())
"""Methods of a module whose first argument is the name of an attribute."""


@dataclass(frozen=True)
class OwnWords:
    """What an answer's text itself names: variables and functions, attributes that it gives, and what it imports.

    Names in `made` never stand for anything but an object of a class of its own.
    """

    names: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    modules: dict[str, str] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)


def own_words(trees: list[ast.Module]) -> OwnWords:
    """Return what the text of an answer itself names."""
    own, nodes = OwnWords(), [node for tree in trees for node in ast.walk(tree)]
    for node in nodes:
        own.names.update(_bound_by(node))
        if isinstance(node, ast.ClassDef):
            own.classes.add(node.name)
            own.attributes.update(class_words(node))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and root_of(node) == "self":
            own.attributes.add(node.attr)
        elif isinstance(node, ast.Call) and (name := _named_part(node)):
            own.attributes.add(name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            own.modules.update(_imported(node))
    own.made.update(_made(nodes, own))
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Store()) if name in own.made:
                own.attributes.add(attribute)
    return own


def _made(nodes: list[ast.AST], own: OwnWords) -> set[str]:
    """The names that are given an object of a class of one's own, and nothing else at any place."""
    bound: dict[str, list[ast.AST]] = {}
    for node in nodes:
        for name in _bound_by(node):
            bound.setdefault(name, []).append(node)
    classes = {name for name in own.classes if all(_is_plain_class(node, own, bound) for node in bound[name])}
    made = {id(name) for node in nodes for name, value in _given(node) if _called(value) in classes}
    return {name for name, places in bound.items() if all(id(place) in made for place in places)}


def _given(node: ast.AST) -> Iterable[tuple[ast.expr, ast.expr]]:
    """What an assignment gives a value to, each with the value, where both stand there."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            has_rest = any(isinstance(one, ast.Starred) for one in (*names, *values))
            return () if has_rest else zip(names, values, strict=False)
        case ast.Assign(targets=targets, value=value):
            return [(target, value) for target in targets]
    return ()


def _bound_by(node: ast.AST) -> list[str]:
    """The names that are given a value at one place."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case ast.Import() | ast.ImportFrom():
            return [name for name, _ in _imported(node)]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name]
        case ast.ExceptHandler(name=str(name)):
            return [name]
    return []


def _is_plain_class(node: ast.AST, own: OwnWords, bound: dict[str, list[ast.AST]]) -> bool:
    """Whether this defines a class that stays what its body says: no decorator but that of dataclasses."""
    names = [root_of(one) for one in node.decorator_list] if isinstance(node, ast.ClassDef) else [""]
    return all(own.modules.get(one, "").startswith("dataclasses") and len(bound[one]) == 1 for one in names)


def _called(node: ast.expr) -> str:
    """The name of what is called, or ""."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _named_part(node: ast.Call) -> str:
    """The attribute that a module gets by `self.register_buffer("name", ...)` and the like, or ""."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="self"), attr=method), args=[ast.Constant(value=str() as name), *_]
        ) if method in NAMES_A_PART:
            return name
    return ""


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import binds, each with what it stands for."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        else:
            first = alias.name.partition(".")[0]
            yield alias.asname or first, alias.name if alias.asname else first


def class_words(node: ast.ClassDef) -> Iterator[str]:
    """The methods and attributes that a class defines in its body."""
    for one in node.body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield one.name
        elif isinstance(one, (ast.Assign, ast.AnnAssign)):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def root_of(node: ast.AST) -> str:
    """The name with which a chain of attributes, calls and indices begins."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
