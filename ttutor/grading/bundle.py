"""Bundles: what a worker gets of the course's package, cut out of the source: what is needed, and nothing beside it.

From the name of a function on, everything is followed that its code mentions: functions, classes and constants of its
module, and imports from the package. The rest of each module, with its references, mistakes and hints, stays behind.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from ttutor.errors import InputError
from ttutor.exercises.exercise import Answer, Exercise
from ttutor.exercises.running import make_inputs
from ttutor.exercises.source import imports
from ttutor.exercises.verify import functions_in, lost_functions

COURSE = "ttutor"


@cache
def sources_for(exercise: Exercise) -> dict[str, str]:
    """Return the modules, name by name, that a worker needs for an exercise: what observes, and what is given.

    Raises:
        InputError: the exercise uses its imports in a way that cannot be followed, or a function that has no name.
    """
    if lost := "; ".join(lost_functions(exercise)):
        raise InputError(f"{exercise.id}: {lost}")
    observing = {"forbidden": "disable", "running": "gradients_of", "student_code": "seen"}
    roots = [(f"ttutor.exercises.{module}", name) for module, name in observing.items()]
    roots += [pair for pair in functions_for(exercise) if _is_course(pair[0])]  # PyTorch's are there anyway
    return cut(tuple(dict.fromkeys([*roots, *given_to(exercise)])))


@cache
def functions_for(exercise: Exercise) -> tuple[tuple[str, str], ...]:
    """Return what a worker is asked for by module and name: what observes, and the functions among inputs.

    Functions that a property hands over are among them; they all travel as source.
    """
    observing = () if exercise.calls_directly else (exercise.observe,)
    among = [one for case in exercise.cases for one in functions_in(make_inputs(exercise, case, 0))]
    found = [*observing, *among, *(_named_by_makers(exercise) if among else ())]
    return tuple(dict.fromkeys((one.__module__, one.__name__) for one in found))


def _named_by_makers(exercise: Exercise) -> list[Any]:
    """The functions of its module that what makes inputs, or a property, names."""
    handed: list[Callable[..., Any]] = [case.inputs for case in exercise.cases]
    handed += [prop.broken for prop in exercise.properties]
    makers: list[Any] = [inspect.unwrap(one.func if isinstance(one, partial) else one) for one in handed]
    named = [one.__globals__.get(name) for one in makers for code in _codes(one) for name in code.co_names]
    named += [made for value in named if isinstance(value, (tuple, list)) for row in value for made in _each(row)]
    found = [value.func if isinstance(value, partial) else value for value in named]
    return [one for one in found if inspect.isfunction(one) and one.__module__ == exercise.stub.__module__]


def _codes(function: Any) -> tuple[types.CodeType, ...]:
    code = function.__code__
    return (code, *(one for one in code.co_consts if isinstance(one, types.CodeType)))


def _each(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


@cache
def given_to(exercise: Exercise) -> tuple[tuple[str, str], ...]:
    """Return the functions of the package that an exercise gives to build with, as module and name."""
    tree = ast.parse("\n".join(imports(exercise)))
    froms = [one for one in tree.body if isinstance(one, ast.ImportFrom) and _is_course(one.module)]
    return tuple(sorted((one.module or "", alias.name) for one in froms for alias in one.names))


def cut_answers(answers: Sequence[Answer]) -> dict[str, str]:
    """Return the source of some known wrong answers and of all that they need, module by module.

    Raises:
        InputError: something cannot be followed.
    """
    made = tuple((one.__module__, one.mutated_source) for one in answers if hasattr(one, "mutated_source"))
    return cut(tuple((one.__module__, one.__name__) for one in answers), made)


@cache
def cut(roots: tuple[tuple[str, str], ...], made: tuple[tuple[str, str], ...] = ()) -> dict[str, str]:
    """Return the source of all that some names need, module by module.

    Args:
        roots: each a module and a name in it.
        made: definitions that stand in no file, each as the module it belongs to and its source.

    Raises:
        InputError: something cannot be followed.
    """
    modules: dict[str, _Module] = {}
    queue = list(roots)
    while queue:
        module, name = queue.pop()
        if module not in modules:
            modules[module] = _Module.read(module, [source for place, source in made if place == module])
        queue += modules[module].keep(name)
    if lost := [f"{module}.{name}" for module, name in roots if not modules[module].has(name)]:
        raise InputError(f"{lost[0]} is not defined at the top level of its file")
    return {name: modules[name].source() for name in sorted(modules)}


@dataclass
class _Module:
    """One module, and what of it is kept."""

    name: str
    body: list[ast.stmt]
    kept: dict[int, set[str]] = field(default_factory=dict)  # of an import, which names

    @classmethod
    def read(cls, name: str, made: Sequence[str] = ()) -> _Module:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise InputError(f"there is no source of {name}")
        body = ast.parse("\n".join([Path(spec.origin).read_text(encoding="utf-8"), *made])).body
        for one in body:
            if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
                one.decorator_list = [each for each in one.decorator_list if not _tells_a_mistake(each)]
        return cls(name, body)

    def keep(self, name: str) -> Iterator[tuple[str, str]]:
        """Keep what binds a name; return what that needs of other modules, and of this one."""
        for index, statement in enumerate(self.body):
            if name not in _bound(statement) or name in self.kept.get(index, ()):
                continue
            self.kept.setdefault(index, set()).add(name)
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                yield from self._imported(statement, name)
            else:
                self.kept[index] |= _bound(statement)
                yield from ((self.name, used) for used in self._used(statement))

    def has(self, name: str) -> bool:
        """Whether something that binds a name is kept."""
        return any(name in names for names in self.kept.values())

    def source(self) -> str:
        """The module with what is kept alone."""
        parts = ["from __future__ import annotations"]
        for index in sorted(self.kept):
            statement = self.body[index]
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                names = [one for one in statement.names if _name_of(one) in self.kept[index]]
                statement = type(statement)(**{**vars(statement), "names": names})
            parts.append(ast.unparse(statement))
        return "\n".join(parts) + "\n"

    def _used(self, statement: ast.stmt) -> set[str]:
        mine = set().union(*map(_bound, self.body))
        found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        texts = {node.value for node in ast.walk(statement) if isinstance(node, ast.Constant)}
        return (found | {text for text in texts if isinstance(text, str)}) & mine

    def _imported(self, statement: ast.Import | ast.ImportFrom, name: str) -> Iterator[tuple[str, str]]:
        if isinstance(statement, ast.Import):
            if any(_is_course(alias.name) for alias in statement.names if _name_of(alias) == name):
                raise InputError(f"{self.name} has `{ast.unparse(statement)}`: write `from ... import` instead")
            return
        if statement.level:
            raise InputError(f"{self.name} has a relative import: write `from {COURSE}... import` instead")
        if not _is_course(statement.module):
            return
        for alias in (alias for alias in statement.names if _name_of(alias) == name):
            inner = f"{statement.module}.{alias.name}"
            if _is_module(inner):
                yield from ((inner, used) for used in self._attributes(name))
            else:
                yield statement.module or "", alias.name

    def _attributes(self, name: str) -> Iterator[str]:
        """What this module takes from a module that it has imported, wherever it does."""
        for node in (node for statement in self.body for node in ast.walk(statement)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
                yield node.attr


def _tells_a_mistake(decorator: ast.expr) -> bool:
    """Whether a decorator is the sentence over a wrong answer, which that answer does not need."""
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func).startswith("exercise.")


def _is_course(module: str | None) -> bool:
    return (module or "").partition(".")[0] == COURSE


@cache
def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a module, not a package
        return False


def _name_of(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement at the margin of a module binds."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return set() if getattr(statement, "module", "") == "__future__" else {_name_of(one) for one in statement.names}
    if isinstance(statement, ast.Expr):
        return set()
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
