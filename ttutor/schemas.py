"""Reading JSON and TOML: whatever the bytes are, the result is what was asked for, or the file is refused.

What we write ourselves has a schema, `read_as`; what others write is at least text of its kind, `parse_json` and
`parse_toml`.
"""

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ttutor.errors import FileError


@dataclass(frozen=True)
class Head:
    """What every file of ours begins with; a file of another program has none."""

    format: str | None = None


def parse_json(data: bytes, where: object, advice: str) -> Any:
    """The JSON in `data`, whatever it holds.

    Args:
        data: what the file holds.
        where: the file, for the message.
        advice: what to do about a file that is refused.

    Raises:
        FileError: it is not JSON in UTF-8, or nested without end.

    Example:
        >>> parse_json(b"[" * 50_000, "hw1.ipynb", "save it again")
        Traceback (most recent call last):
        ...
        ttutor.errors.FileError: hw1.ipynb is no JSON: it is nested too deeply; save it again
    """
    return _parsed(json.loads, data, f"{where} is no JSON", advice)


def parse_toml(data: bytes, where: object, advice: str) -> dict[str, Any]:
    """The TOML in `data`; arguments and errors as for `parse_json`."""
    return _parsed(tomllib.loads, data, f"{where} is no TOML", advice)


def _parsed(parse: Callable[[str], Any], data: bytes, complaint: str, advice: str) -> Any:
    try:
        return parse(data.decode("utf-8"))
    except RecursionError:
        raise FileError(f"{complaint}: it is nested too deeply; {advice}") from None
    except ValueError as error:  # bad syntax, not UTF-8, a number with more digits than Python reads
        raise FileError(f"{complaint}: {error}; {advice}") from None


def read_as(schema: Any, data: bytes, where: object, advice: str, *, format_: str | None = None) -> Any:
    """The JSON in `data` as a value of a type: a dataclass, a `TypedDict`, ``dict[str, int]`` and so on.

    Fields that a dataclass does not have are refused, and so are values of another type: a number is no text.

    Args:
        schema: the type.
        data: what the file holds.
        where: the file, for the message.
        advice: what to do about a file that is refused.
        format_: what the field ``format`` must say; a file of another version is named as such.

    Raises:
        FileError: the file has another format, is not JSON, is nested too deeply, or has other fields or types than
            the schema.

    Example:
        >>> read_as(dict[str, int], b'{"step": "three"}', "state.json", "copy it again")
        Traceback (most recent call last):
        ...
        ttutor.errors.FileError: state.json is damaged: step: Input should be a valid integer; copy it again
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        if format_ is not None and (found := TypeAdapter(Head).validate_json(data).format) != format_:
            raise FileError(f"{where} has the format {found!r}, expected {format_!r}; {advice}")
        return TypeAdapter(schema).validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise FileError(f"{where} is damaged: {f'{place}: ' if place else ''}{first['msg']}; {advice}") from None
