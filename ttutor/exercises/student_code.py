"""What can be seen of an answer without running it: untouched, or no function at all."""

from __future__ import annotations

import dis
import inspect
import types
from collections.abc import Iterator, Mapping
from typing import Any

from ttutor.exercises.exercise import Exercise

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
        mine, theirs = ({name: steps(code) for name, code in _methods(kind)} for kind in (answer, exercise.stub))
        return mine == theirs
    code, stub = _code_of(answer), _code_of(exercise.stub)
    untouched = [steps(one) for one in (_empty.__code__, stub) if one is not None]
    return code is not None and steps(code) in untouched


def is_puzzle(exercise: Exercise) -> bool:
    """Return whether an exercise's stub is code to be mended, not a body to be written."""
    codes = [code for _, code in _methods(exercise.stub)] if isinstance(exercise.stub, type) else []
    codes = codes or [code for code in [_code_of(exercise.stub)] if code is not None]
    return all(steps(code) != steps(_empty.__code__) for code in codes)


def seen(answer: Any, n_inputs: int) -> dict[str, Any]:
    """Return what can be seen of an answer without calling it; the grader has this looked at beside the answer."""
    unbound = None
    if callable(answer):
        try:
            inspect.signature(answer).bind(*[None] * n_inputs)
        except TypeError as error:
            unbound = str(error)[:2000]
        except ValueError:  # a function written in C need not tell its parameters; calling it will tell
            unbound = None
    kind = type(answer).__name__[:80]
    return {"type": kind, "class": isinstance(answer, type), "callable": callable(answer), "unbound": unbound}


def cannot_load(exercise: Exercise, looks: Mapping[str, Any], names: list[str]) -> str | None:
    """Return why an answer that looks so, see `seen`, cannot even be called with inputs of these names, or None."""
    is_class = isinstance(exercise.stub, type)
    if not looks["class" if is_class else "callable"]:
        wanted = f"the {'class' if is_class else 'function'} {exercise.name}{' itself' if is_class else ''}"
        return f"I expected {wanted}, but a {looks['type']} came. Hand in its name, without brackets."
    if exercise.calls_directly and not is_class and looks["unbound"] is not None:
        return (
            f"Your function cannot be called with what the exercise hands over ({', '.join(names)}): "
            f"{looks['unbound']}. Keep the parameters of the stub, in their order."
        )
    return None


def _empty() -> None: ...


def _code_of(answer: Any) -> types.CodeType | None:
    return getattr(inspect.unwrap(answer) if callable(answer) else answer, "__code__", None)


def _methods(kind: type) -> Iterator[tuple[str, types.CodeType]]:
    for name, member in vars(kind).items():
        function = getattr(member, "__func__", getattr(member, "fget", member))
        code = _code_of(function) if callable(function) else None
        if code is not None:
            yield name, code


def steps(code: types.CodeType) -> list[tuple[str, Any]]:
    """What code does, without where it stands: comments, docstring, annotations and line numbers make no difference.

    Nor do the compiler's choices that hang on what else it compiles with it, and the offsets that follow from them.
    """
    found = []
    for step in dis.get_instructions(code):
        if step.opname in SILENT:
            continue
        value = steps(step.argval) if isinstance(step.argval, types.CodeType) else step.argval
        is_jump = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
        found.append((ALIKE.get(step.opname, step.opname), None if is_jump else repr(value)))
    return found
