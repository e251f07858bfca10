"""What the text of an answer itself names: read by the judge, beside the words of its exercise."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

NAMES_A_PART = frozenset("register_buffer register_parameter register_module add_module".split())
"""Methods of a module whose first argument is the name of an attribute."""
LEAVES_A_METHOD = frozenset(
    "property cached_property abstractmethod classmethod staticmethod no_grad enable_grad inference_mode".split()
)
"""Decorators that hand no method about as a function."""
ASKS_A_CLASS = frozenset("isinstance issubclass super".split())


@dataclass(frozen=True)
class OwnWords:
    """What an answer's text itself names: variables and functions, attributes that it gives, and what it imports.

    Names in `made` never stand for anything but an object of a class of its own, and classes in `bases` hand their
    methods on to another. `selves` are the places of ``self`` in methods; `is_sealed` says that no class and no method
    is handed about, so that at these places it is an object of the answer's own class and cannot be anything else.
    """

    names: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    modules: dict[str, str] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    bases: set[str] = field(default_factory=set)
    selves: set[int] = field(default_factory=set)
    is_sealed: bool = True


def own_words(trees: list[ast.Module]) -> OwnWords:
    """Return what the text of an answer itself names."""
    own, nodes = OwnWords(), [node for tree in trees for node in ast.walk(tree)]
    for node in nodes:
        own.names.update(_bound_by(node))
        if isinstance(node, ast.ClassDef):
            own.classes.add(node.name)
            own.bases.update(root_of(base) for base in node.bases)
            own.attributes.update(class_words(node))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and root_of(node) == "self":
            own.attributes.add(node.attr)
        elif isinstance(node, ast.Call) and (name := _named_part(node)):
            own.attributes.add(name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            own.modules.update(_imported(node))
    bound = _places_bound(nodes)
    given_away = {name for name in own.classes if not all(_is_plain_class(one, own, bound) for one in bound[name])}
    own.made.update(_made(nodes, bound, own))
    functions = [one for node in nodes if isinstance(node, ast.ClassDef) for one in _functions(node)]
    own.selves.update(id(node) for one in functions if _is_method(one) for node in ast.walk(one) if _is_self(node))
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Store()) if name in own.made:
                own.attributes.add(attribute)
    is_sealed = not given_away and _is_sealed(nodes, functions, bound, own)
    return replace(own, is_sealed=is_sealed, classes=own.classes - given_away)


def _places_bound(nodes: list[ast.AST]) -> dict[str, list[ast.AST]]:
    """Each name with the places at which it is given a value."""
    bound: dict[str, list[ast.AST]] = {}
    for node in nodes:
        for name in _bound_by(node):
            bound.setdefault(name, []).append(node)
    return bound


def _made(nodes: list[ast.AST], bound: dict[str, list[ast.AST]], own: OwnWords) -> set[str]:
    """The names that are given an object of a class of one's own, and nothing else at any place."""
    classes = {name for name in own.classes if all(_is_plain_class(node, own, bound) for node in bound[name])}
    made = {id(name) for node in nodes for name, value in _given(node) if _called(value) in classes}
    return {name for name, places in bound.items() if all(id(place) in made for place in places)}


def _functions(kind: ast.ClassDef) -> list[ast.FunctionDef]:
    return [one for one in kind.body if isinstance(one, ast.FunctionDef)]


def _is_sealed(
    nodes: list[ast.AST], functions: list[ast.FunctionDef], bound: dict[str, list[ast.AST]], own: OwnWords
) -> bool:
    """Whether methods are called on objects of their class alone: nowhere is a class or a method a value."""
    of_classes = [one for one in functions if "classmethod" in _decorators(one) and one.args.args]
    classes = own.classes | {one.args.args[0].arg for one in of_classes}
    methods = {one.name for one in functions if not {"classmethod", "staticmethod"} & _decorators(one)}
    may_stand = {id(part) for node in nodes for part in _class_places(node, methods, bound, own)}
    kinds = [node for node in nodes if isinstance(node, ast.ClassDef)]
    in_bodies = [part for node in kinds for part in _run_with(node)]
    return (
        all(id(node) in may_stand or not _is_class(node, classes) for node in nodes)
        and not any(isinstance(node, ast.Name) and node.id in methods for node in in_bodies)
        and all(_is_known(one, bound, own) for function in functions for one in function.decorator_list)
        and not ("__exit__" in methods and any(map(_is_error, kinds)))  # that is handed the class of what was raised
    )


def _is_error(kind: ast.ClassDef) -> bool:
    """Whether a class can be raised."""
    return any(ast.unparse(base).endswith(("Error", "Exception")) for base in kind.bases)


def _is_known(decorator: ast.expr, bound: dict[str, list[ast.AST]], own: OwnWords) -> bool:
    """Whether a decorator is Python's or PyTorch's, by its own name, and hands no method about."""
    plain = decorator.func if isinstance(decorator, ast.Call) else decorator
    root = root_of(plain)
    path = own.modules.get(root, root) + ast.unparse(plain)[len(root) :]
    is_only = [isinstance(one, (ast.Import, ast.ImportFrom)) for one in bound.get(root, [])] in ([], [True])
    return is_only and path.rpartition(".")[2] in LEAVES_A_METHOD


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_class(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is a class of the answer's own: its name, or `type` asked for one thing's."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "type"
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names


def _is_method(function: ast.FunctionDef) -> bool:
    """Whether ``self`` is its first argument and stays it."""
    nodes = [*ast.walk(function)]
    bound = [name for node in nodes for name in _bound_by(node)]
    is_first = [one.arg for one in (*function.args.posonlyargs, *function.args.args)][:1] == ["self"]
    return is_first and bound.count("self") == 1 and "staticmethod" not in _decorators(function)


def _decorators(function: ast.FunctionDef) -> set[str]:
    """The last words of its decorators."""
    plain = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    return {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in plain}


def _class_places(
    node: ast.AST, methods: set[str], bound: dict[str, list[ast.AST]], own: OwnWords
) -> Iterator[ast.AST]:
    """Where a class may stand without being handed about: to make an object, as a base, a kind or an annotation."""
    match node:
        case ast.Call(func=ast.Attribute(value=kind), args=[first, *_]) if id(first) in own.selves:
            yield kind  # one's own object handed to a base's method
        case ast.Call(func=ast.Name(id=word), args=arguments) if word in ASKS_A_CLASS and word not in bound:
            yield from (part for one in arguments for part in _kinds(one, bound, own))
        case ast.Call(func=kind) | ast.Raise(exc=kind) | ast.MatchClass(cls=kind) if kind is not None:
            yield kind
        case ast.Attribute(value=kind, attr=name) if name not in methods:
            yield kind
        case ast.ClassDef(bases=bases):
            yield from bases
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[right]):
            yield from (node.left, right)
        case ast.ExceptHandler(type=kind) | ast.arg(annotation=kind) | ast.FunctionDef(returns=kind) if kind:
            yield from _kinds(kind, bound, own)
        case ast.AnnAssign(annotation=kind):
            yield from _kinds(kind, bound, own)


def _kinds(node: ast.expr, bound: dict[str, list[ast.AST]], own: OwnWords) -> Iterator[ast.AST]:
    """The parts of an annotation, or of several kinds to choose from."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            yield from (one for part in parts for one in _kinds(part, bound, own))
        case ast.BinOp(left=left, right=right):
            yield from (*_kinds(left, bound, own), *_kinds(right, bound, own))
        case ast.Subscript(value=value, slice=inner) if root_of(value) not in bound or root_of(value) in own.modules:
            yield from _kinds(inner, bound, own)
        case ast.Name() | ast.Call():
            yield node


def _run_with(node: ast.AST) -> Iterator[ast.AST]:
    """What of a class's body runs when the class is made, decorators aside."""
    for part in node.body if isinstance(node, ast.ClassDef) else ast.iter_child_nodes(node):
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from (
                one for given in (*part.args.defaults, *part.args.kw_defaults) if given for one in ast.walk(given)
            )
        elif not isinstance(part, ast.ClassDef):
            yield part
            yield from _run_with(part)


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
