"""Values out of a TOML table, each with its type; what does not fit is named with what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["BadAssignment", "is_number", "known_keys", "number_in", "table_in", "text_in", "wrong"]


class BadAssignment(ValueError):
    """An assignment cannot be used; the message says where, what was expected and what came."""


def known_keys(where: str, table: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse a key that is not among the names."""
    for name in table:
        if name not in names:
            raise BadAssignment(f"{where} has no key {name!r}; expected {', '.join(names)}")


def wrong(name: str, expected: str, came: Any) -> BadAssignment:
    """Say of a value what was expected and what came."""
    return BadAssignment(f"{name} must be {expected}, but came as {came!r} ({type(came).__name__})")


def table_in(table: Mapping[str, Any], name: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Return a table inside another, empty where it is left out."""
    value = table.get(name, {})
    if not isinstance(value, dict):
        raise wrong(name, f"a table [{name}] with {', '.join(names)}", value)
    known_keys(f"[{name}]", value, names)
    return value


def text_in(table: Mapping[str, Any], name: str, default: str) -> str:
    """Return a text that is not empty."""
    value = table.get(name, default)
    if not isinstance(value, str) or not value.strip():
        raise wrong(name, "text in quotes", value)
    return value.strip()


def number_in(
    table: Mapping[str, Any], name: str, default: int | float, *, above: int | float, most: int | float
) -> float:
    """Return a number within its bounds."""
    value = table.get(name, default)
    if not is_number(value) or not above < value <= most:
        raise wrong(name, f"a number above {above:g} and at most {most:g}", value)
    return float(value)


def is_number(value: Any) -> bool:
    """Return whether a value is a number; TOML's true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
