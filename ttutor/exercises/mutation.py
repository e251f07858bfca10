"""Code that is made of an exercise's solution: its stub, and wrong answers with a few characters changed."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from typing import Any

LITERAL = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\''
CHANGE = re.compile(rf"({LITERAL})\s*->\s*({LITERAL})\s*(?:,\s*|$)")


def read_mutations(text: str) -> list[tuple[str, str, list[dict[str, str]]]]:
    """Return what a list of mutations says: of each its id, its sentence and the changes of each wrong answer.

    >>> read_mutations('''
    ... half: "2 * values" -> "values / 2"
    ...     That is half of it.
    ... sign: "2" -> "-2"
    ... or: "values" -> "-values"
    ...     Look for
    ...     a sign.
    ... ''')[1]
    ('sign', 'Look for a sign.', [{'2': '-2'}, {'values': '-values'}])
    """
    found = []
    for block in re.split(r"^(?=\w+: )(?!or: )", text, flags=re.MULTILINE)[1:]:
        lines = block.rstrip().splitlines()
        says = " ".join(line.strip() for line in lines if line.startswith("    "))
        head = "\n".join(line for line in lines if not line.startswith("    "))
        id, changes = head.split(": ", 1)
        answers = re.split(r"^or: ", changes, flags=re.MULTILINE)
        found.append((id, says, [_changes(id, answer) for answer in answers]))
    return found


def _changes(id: str, text: str) -> dict[str, str]:
    """Read `"old" -> "new", "other old" -> "other new"`."""
    pairs = CHANGE.findall(text)
    if not pairs or CHANGE.sub("", text).strip():
        raise ValueError(f'{id}: changes are written as "old" -> "new", with commas between, but came as {text!r}')
    return {ast.literal_eval(old): ast.literal_eval(new) for old, new in pairs}


def emptied(solution: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with another's signature and docstring, and nothing else: what a student finds.

    Raises:
        ValueError: there is no docstring.
    """
    source = source_of(solution)
    (definition,) = ast.parse(source).body
    if not (isinstance(definition, ast.FunctionDef) and ast.get_docstring(definition)):
        raise ValueError(
            f"{solution.__name__}: a stub is made of a solution that is a function with a docstring; give another stub"
        )
    kept = source.splitlines()[: definition.body[0].end_lineno]
    return _compiled(solution, solution.__name__, "\n".join([*kept, "    ...", ""]))


def mutated(solution: Callable[..., Any], name: str, changes: dict[str, str]) -> Callable[..., Any]:
    """Return a function or class made of another's source with some texts replaced; `source_of` tells its source.

    Args:
        solution: what is changed; it stands in a file.
        name: what the result is called.
        changes: the texts to replace, each of which stands in the source exactly once, and what replaces them.

    Raises:
        ValueError: a text stands there never, or more than once.
    """
    source = textwrap.dedent(inspect.getsource(solution))
    for old, new in changes.items():
        if source.count(old) != 1:
            raise ValueError(
                f"{name}: {old!r} should stand once in the source of {solution.__module__}.{solution.__name__}, but "
                f"stands there {source.count(old)} times"
            )
        source = source.replace(old, new)
    source = re.sub(rf"\b(def|class) {solution.__name__}\b", rf"\1 {name}", source, count=1)
    return _compiled(solution, name, source)


def _compiled(solution: Callable[..., Any], name: str, source: str) -> Callable[..., Any]:
    """Return what a source defines under a name, among the names of the solution's module."""
    made: dict[str, Any] = {}
    exec(compile(source, f"<{name}>", "exec"), vars(sys.modules[solution.__module__]), made)
    made[name].mutated_source = source
    return made[name]


def source_of(answer: Callable[..., Any]) -> str:
    """Return the source of a function or class, also of one that `mutated` has made."""
    return getattr(answer, "mutated_source", "") or textwrap.dedent(inspect.getsource(inspect.unwrap(answer)))
