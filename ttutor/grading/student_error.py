"""What a student's code raised, told by a worker, as an exception that the judge can compare and put in words."""

from __future__ import annotations

import builtins
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import einops

from ttutor.exercises.forbidden import Shortcut
from ttutor.grading.worker.framing import Malformed
from ttutor.grading.worker.values import Other

WITHOUT_TEXT = ("UnicodeDecodeError", "UnicodeEncodeError", "UnicodeTranslateError", "BaseExceptionGroup")
KNOWN = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and name not in (*WITHOUT_TEXT, "ExceptionGroup")
} | {"EinopsError": einops.EinopsError, "SystemExit": SystemExit, "Shortcut": Shortcut}
"""Those whose type the known mistakes of an exercise can raise too; all others only have a name."""


class StudentRaised(Exception):
    """An exception of a type that the judge does not know; its subclasses carry the type's name."""


class StudentCodeFailed(Exception):
    """A worker that hung or died; ``kind`` is ``timeout`` or ``crash``."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class Place:
    """Where an exception left a student's own code: file or cell, line, and what stands there."""

    where: str
    line: int
    code: str

    def __str__(self) -> str:
        return f" (line {self.line}: `{self.code}`)" if self.code else f" (line {self.line})"


@lru_cache(maxsize=256)
def _kind(name: str, base: type) -> Any:
    return type(name, (base,), {})


def other_of(name: str) -> Other:
    """Return a stand-in for a value that was not sent, which shows the name of its type."""
    return _kind(name if name.isidentifier() else "object", Other)()


class _Text(str):
    """A text that is its own description: `KeyError` shows what `repr` gives."""

    def __repr__(self) -> str:
        return str(self)


def exception_of(told: Any) -> BaseException:
    """Return the exception that a worker told of; raises `Malformed` where what came tells of none.

    Args:
        told: its type, its text, and where it left the student's code.
    """
    if not isinstance(told, dict) or not {"type", "text"} <= set(told) <= {"type", "text", "where", "line", "code"}:
        raise Malformed("expected an exception's type and text")
    name, text = _plain(told["type"], 80), _plain(told["text"], 2000)
    kind = KNOWN.get(name) or _kind(name if name.isidentifier() else "Exception", StudentRaised)
    error: Any = kind(_Text(text)) if text else kind()
    error.by_worker = True
    if "line" in told:
        if type(told["line"]) is not int or not 0 <= told["line"] < 1 << 31:
            raise Malformed("expected a line's number")
        error.place = Place(_plain(told.get("where"), 400), told["line"], _plain(told.get("code"), 200))
    return error


def is_from_worker(error: BaseException) -> bool:
    """Whether a worker told of an exception; every other one is the grader's own."""
    return isinstance(error, StudentCodeFailed) or getattr(error, "by_worker", False)


def place_of(error: BaseException) -> Place | None:
    """Return where an exception left the student's code, if the worker told."""
    return getattr(error, "place", None)


def _plain(text: Any, longest: int) -> str:
    """Check that something is a short text; make what cannot be shown visible."""
    if type(text) is not str or len(text) > longest:
        raise Malformed("expected a short text")
    return shown(text)


def shown(text: str) -> str:
    """Return a text in which nothing is that cannot be shown or written, and not too much."""
    return "".join(one if one == "\n" or unicodedata.category(one)[0] != "C" else "\ufffd" for one in text[:4000])
