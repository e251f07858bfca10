"""Frames: a JSON header and a body of bytes, each with its length before it. Both sides of a pipe speak them.

A frame is eight bytes with two lengths, big-endian, then the header, a JSON object in UTF-8 of at most 1 MiB, then the
body, of at most 64 MiB. What comes from a worker is taken as hostile: `parse_json` accepts plain JSON and no more.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any, NoReturn

LENGTHS = struct.Struct(">II")
HEADER_CAP = 1 << 20
BODY_CAP = 64 << 20


class Malformed(ValueError):
    """What came through a pipe is no frame of this protocol; the message says in what way."""


def frame(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Return a frame as it goes through a pipe.

    Raises:
        Malformed: the header is too large; the other side would not take it.
    """
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > HEADER_CAP:
        raise Malformed(f"a header must have at most {HEADER_CAP} bytes, but has {len(text)}")
    return LENGTHS.pack(len(text), len(body)) + text + body


def parse_json(text: bytes) -> Any:
    """Read JSON that may be hostile: no NaN, no key twice, no endless nesting or digits.

    Raises:
        Malformed: it is not that.
    """
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"expected plain JSON, but it is not: {type(error).__name__}") from error


def read_frame(fd: int, body_cap: int = BODY_CAP) -> tuple[dict[str, Any], bytes] | None:
    """Wait for the next frame, for as long as it takes; None where the other side has closed its end.

    Raises:
        Malformed: what comes is no frame, or larger than is allowed.
    """
    start = _read(fd, LENGTHS.size)
    if start is None:
        return None
    header, body = LENGTHS.unpack(start)
    if not 2 <= header <= HEADER_CAP or body > body_cap:
        raise Malformed(f"a frame may have {HEADER_CAP} and {body_cap} bytes, but {header} and {body} were announced")
    text, content = _read(fd, header), _read(fd, body)
    if text is None or content is None:
        return None
    said = parse_json(text)
    if not isinstance(said, dict):
        raise Malformed(f"a header must be a JSON object, but is a {type(said).__name__}")
    return said, content


def write_all(fd: int, data: bytes) -> None:
    """Write all of it, for as long as it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[: 1 << 20]) :]


def _read(fd: int, count: int) -> bytes | None:
    parts = []
    while count:
        part = os.read(fd, min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
