"""How far a student has come: the best points of each exercise, in one small file on this machine.

``ttutor check`` and, in a notebook, `check` write it. The environment variable ``TTUTOR_PROGRESS`` names another file,
or says ``none``: then nothing is kept, as where the book's own solutions are run.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ttutor.errors import FileError
from ttutor.exercises.result import Result
from ttutor.files import write_text
from ttutor.schemas import parse_json

VARIABLE = "TTUTOR_PROGRESS"
NOWHERE = "none"


def progress_file() -> Path | None:
    """Return the file of progress: that of ``TTUTOR_PROGRESS``, else one in the user's data folder; None for none.

    Raises:
        FileError: no file is named, and the user has no folder where one could be.
    """
    if chosen := os.environ.get(VARIABLE):
        return None if chosen == NOWHERE else Path(chosen).expanduser()
    import platformdirs

    try:
        return platformdirs.user_data_path("ttutor", appauthor=False) / "progress.json"
    except RuntimeError:  # a user without a home, as in many containers
        raise FileError(
            f"this user has no home folder where progress could be kept: set HOME, or name a file by {VARIABLE} "
            f"({VARIABLE}={NOWHERE} keeps nothing)"
        ) from None


def read_progress(path: Path | None) -> dict[str, int]:
    """Return the best points so far, by exercise id; nothing where there is no file yet.

    Raises:
        FileError: the file is damaged, or none of ours.
    """
    if path is None or not path.exists():
        return {}
    try:
        points = parse_json(path.read_bytes(), path, "delete it")["points"]
        return {str(name): int(value) for name, value in points.items()}
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}; name another by {VARIABLE}") from error
    except (FileError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise FileError(f"{path} is damaged: delete it, or name another file by {VARIABLE}") from error


def record(path: Path | None, results: list[Result]) -> None:
    """Keep the points of these results where they are better than before; the file is replaced whole or not at all."""
    if path is None:
        return
    points = read_progress(path)
    for result in results:
        points[result.exercise_id] = max(result.points, points.get(result.exercise_id, 0))
    write_text(path, json.dumps({"points": dict(sorted(points.items()))}, indent=1) + "\n")
