"""Reading a file by a schema: whatever its bytes are, the result has the type asked for, or the file is refused."""

from dataclasses import dataclass
from typing import Any

from ttutor.errors import FileError


@dataclass(frozen=True)
class Head:
    """What every file of ours begins with; a file of another program has none."""

    format: str | None = None


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
