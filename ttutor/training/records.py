"""Records of a training as it goes: a file with one JSON object a line, each of which says its step.

A line is on the disk before the training goes on; what a crash cuts off costs one line and no more.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ttutor.errors import FileError
from ttutor.files import append_to, write_file


def add_record(path: Path, record: dict) -> None:
    """Append one record, through to the disk."""
    append_to(path, _line(record))


def read_records(path: Path) -> Iterator[dict]:
    """The records so far; lines that a crash cut off or damaged are left out: a training does not depend on them."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    for line in lines:
        with suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict) and type(record.get("step")) is int:
                yield record


def cut_records(path: Path, step: int) -> None:
    """Forget what was recorded after this step, from where a resumed run goes on; no file is made where none was."""
    if path.exists():
        kept = [_line(record) for record in read_records(path) if record["step"] <= step]
        write_file(path, "".join(kept).encode())


def _line(record: dict) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
