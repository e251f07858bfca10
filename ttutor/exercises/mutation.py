"""Wrong answers that are a right one with a few characters changed."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from typing import Any

__all__ = ["mutated", "source_of"]


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
    made: dict[str, Any] = {}
    exec(compile(source, f"<{name}>", "exec"), vars(sys.modules[solution.__module__]), made)
    made[name].mutated_source = source
    return made[name]


def source_of(answer: Callable[..., Any]) -> str:
    """Return the source of a function or class, also of one that `mutated` has made."""
    return getattr(answer, "mutated_source", "") or textwrap.dedent(inspect.getsource(inspect.unwrap(answer)))
