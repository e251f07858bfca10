"""What can be seen of an answer without running it: untouched, no function at all, or a shortcut.

The grader sees the same of code that it has not loaded: `ttutor.grading.apart.code`, which must do without this one.
"""

from __future__ import annotations

import dis
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

from ttutor.exercises.exercise import Exercise

__all__ = ["cannot_load", "is_puzzle", "is_untouched", "shortcut"]

SILENT = ("RESUME", "NOP", "COPY_FREE_VARS", "PUSH_NULL", "PRECALL", "EXTENDED_ARG")
ALIKE = {"LOAD_METHOD": "LOAD_ATTR"}


def is_untouched(exercise: Exercise, answer: Any) -> bool:
    """Return whether an answer is still the stub: nothing, an empty body, or the stub's own code.

    >>> from ttutor.exercises.registry import find
    >>> def softmax(x, dim=-1): ...
    >>> is_untouched(find("attention.softmax"), softmax)
    True
    """
    if answer is None or answer is ...:
        return True
    if isinstance(answer, type) and isinstance(exercise.stub, type):
        mine, theirs = ({name: _steps(code) for name, code in _methods(kind)} for kind in (answer, exercise.stub))
        return mine == theirs
    code, stub = _code_of(answer), _code_of(exercise.stub)
    return code is not None and (_steps(code) == _steps(_empty.__code__) or (stub and _steps(code) == _steps(stub)))


def is_puzzle(exercise: Exercise) -> bool:
    """Return whether an exercise's stub is code to be mended, not a body to be written."""
    codes = [code for _, code in _methods(exercise.stub)] if isinstance(exercise.stub, type) else []
    codes = codes or [code for code in [_code_of(exercise.stub)] if code is not None]
    return all(_steps(code) != _steps(_empty.__code__) for code in codes)


def cannot_load(exercise: Exercise, answer: Any, inputs: tuple[Any, ...], names: list[str]) -> str | None:
    """Return why an answer cannot even be called, or None where it can."""
    if isinstance(exercise.stub, type):
        if not isinstance(answer, type):
            return (
                f"I expected the class {exercise.name} itself, but {_came(answer)}. Hand in its name, without brackets."
            )
        return None
    if not callable(answer):
        return f"I expected the function {exercise.name}, but {_came(answer)}. Hand in its name, without brackets."
    if exercise.calls_directly:
        try:
            inspect.signature(answer).bind(*inputs)
        except TypeError as error:
            return (
                f"Your function cannot be called with what the exercise hands over ({', '.join(names)}): {error}. "
                "Keep the parameters of the stub, in their order."
            )
        except ValueError:  # a function written in C need not tell its parameters; calling it will tell
            return None
    return None


def shortcut(exercise: Exercise, answer: Any) -> str | None:
    """Return the name of a forbidden function that an answer uses, itself or through helpers beside it, else None."""
    forbidden, seen = set(exercise.forbids), set()  # what may not be used, and what was looked into
    queue: list[Any] = [answer]
    while queue:
        code = queue.pop()
        if id(code) in seen:
            continue
        seen.add(id(code))
        for name, target in _names_used(code):
            if _is_beside(target, answer):
                queue.append(target)
            elif found := forbidden & {name, getattr(target, "__name__", "")}:
                return found.pop()
    return None


def _came(answer: Any) -> str:
    kind = type(answer).__name__
    return f"a {kind} came"


def _empty() -> None: ...


def _code_of(answer: Any) -> types.CodeType | None:
    return getattr(inspect.unwrap(answer) if callable(answer) else answer, "__code__", None)


def _methods(kind: type) -> Iterator[tuple[str, types.CodeType]]:
    for name, member in vars(kind).items():
        function = getattr(member, "__func__", getattr(member, "fget", member))
        code = _code_of(function) if callable(function) else None
        if code is not None:
            yield name, code


def _steps(code: types.CodeType) -> list[tuple[str, Any]]:
    """What code does, without where it stands: comments, docstring, annotations and line numbers make no difference.

    Nor do the compiler's choices that hang on what else it compiles with it, and the offsets that follow from them.
    """
    steps = []
    for step in dis.get_instructions(code):
        if step.opname in SILENT:
            continue
        value = _steps(step.argval) if isinstance(step.argval, types.CodeType) else step.argval
        is_jump = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
        steps.append((ALIKE.get(step.opname, step.opname), None if is_jump else repr(value)))
    return steps


def _names_used(answer: Any) -> Iterator[tuple[str, Any]]:
    """Yield each global, attribute and import that an answer's code names, with the object where it can be told."""
    functions = [inspect.unwrap(answer)] if callable(answer) and not isinstance(answer, type) else []
    own: set[str] = set()
    if isinstance(answer, type):
        own = set(vars(answer))
        functions = [inspect.unwrap(member) for member in vars(answer).values() if callable(member)]
    for function in functions:
        code = getattr(function, "__code__", None)
        if code is None:  # written in C: its own name is all there is to see
            yield getattr(function, "__name__", ""), function
            continue
        around = {**getattr(function, "__globals__", {}), **_closure(function)}
        for name, is_attribute in _names_in(code):
            if not is_attribute:
                yield name, around.get(name)
            elif name not in own:
                yield name, None


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    filled = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            filled[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return filled


def _names_in(code: types.CodeType) -> Iterator[tuple[str, bool]]:
    """Yield the names in code and in the functions inside it, and whether each is looked up on an object."""
    for step in dis.get_instructions(code):
        if isinstance(step.argval, types.CodeType):
            yield from _names_in(step.argval)
        elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            yield step.argval, False
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "IMPORT_NAME"):
            yield str(step.argval).rpartition(".")[2], True


def _is_beside(target: Any, answer: Any) -> bool:
    """Return whether an object is a function or class that stands in the same file as the answer."""
    is_code = inspect.isfunction(target) or isinstance(target, type)
    return is_code and target.__module__ == getattr(answer, "__module__", None)
