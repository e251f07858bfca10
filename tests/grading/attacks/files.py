"""Attacks by what is handed in: names, encodings, sizes, notebooks that are none, text that breaks compilers."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.grading.attacks.attack import WRONG, Attack
from ttutor.grading.marks import SourceFile

__all__ = ["ATTACKS"]

NAMES = (
    "../../../etc/cron.d/evil.py",
    "/etc/passwd.py",
    "a; rm -rf $HOME; b.py",
    "$(touch ttutor-was-here).py",
    "-rf.py",
    "con.py",
    "line\nbreak.py",
    "\u202egnp.py",
    "<img src=x onerror=alert(1)>.py",
    "=cmd|' /C calc'!A0.py",
    "x" * 5000 + ".py",
)


def _file(name: str, says: str, data: bytes | Callable[[], bytes], file: str = "homework.py") -> Attack:
    return Attack(name, says, lambda: (SourceFile(file, data() if callable(data) else data),))


def _notebook(name: str, says: str, content: object) -> Attack:
    return _file(name, says, json.dumps(content).encode(), "homework.ipynb")


def _cells(*sources: object, **more: object) -> dict[str, object]:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells} | more


def _deep(depth: int) -> str:
    return "[" * depth + "]" * depth


ATTACKS = (
    Attack(
        "names",
        "files whose names are paths and commands",
        lambda: tuple(SourceFile(one, WRONG.encode()) for one in NAMES),
    ),
    Attack("many_files", "three hundred files", lambda: tuple(SourceFile(f"{n}.py", b"x = 1\n") for n in range(300))),
    Attack("no_bytes", "an empty file", lambda: (SourceFile("homework.py", b""),)),
    _file("no_text", "bytes that are no text", bytes(range(256)) * 40),
    _file("null_bytes", "text full of null bytes", b"\0" * 1000 + WRONG.encode()),
    _file("strange_coding", "a coding line that transforms its text", b"# coding: rot13\n" + WRONG.encode()),
    _file("utf_7", "a coding that hides code", b"# coding: utf-7\n+AG8AcwAuAF8AZQB4AGkAdA-(0)\n"),
    _file("utf_16", "a text in UTF-16 without its end", WRONG.encode("utf-16")[:-1]),
    _file("surrogates", "characters that do not exist", b"x = '\\ud800'\n\xed\xa0\x80 = 1\n" + WRONG.encode()),
    _file("parentheses", "a hundred thousand parentheses", b"x = " + b"(" * 100_000 + b")" * 100_000),
    _file("minuses", "a million minus signs", b"x = " + b"-" * 1_000_000 + b"1\n" + WRONG.encode()),
    _file(
        "deep_indents",
        "a hundred nested blocks",
        "".join(f"{' ' * n}if 1:\n" for n in range(100)).encode() + b" " * 100 + b"x = 1\n",
    ),
    _file(
        "long_sum",
        "a sum of two hundred thousand terms",
        b"x = " + b"+".join([b"1"] * 200_000) + b"\n" + WRONG.encode(),
    ),
    _file(
        "attributes", "a chain of a hundred thousand attributes", b"x = a" + b".a" * 100_000 + b"\n" + WRONG.encode()
    ),
    _file(
        "folding",
        "constants that grow when they are folded",
        b"x = (((((9**99)**9)**9)**9)**9)**9\ny = 'a' * 10**12\n" + WRONG.encode(),
    ),
    _file("huge_number", "a number of a million digits", b"x = " + b"9" * 1_000_000 + b"\n" + WRONG.encode()),
    _file(
        "hundred_megabytes",
        "a file of 100 MB",
        lambda: WRONG.encode() + b"# all work and no play\n" * (100 * 2**20 // 23),
    ),
    _file("too_large", "a file of 140 MB", lambda: bytes(140 * 2**20)),
    _file("a_zip", "an archive that calls itself Python", b"PK\x03\x04" + bytes(1000)),
    _file("no_notebook", "a notebook that is no JSON", b"{ not json", "homework.ipynb"),
    _file("deep_notebook", "a notebook nested a hundred thousand deep", _deep(100_000).encode(), "homework.ipynb"),
    _notebook("wrong_types", "a notebook whose parts are of other types", _cells({"a": 1}, 7, None, [1, 2], [["x"]])),
    _notebook(
        "hostile_metadata",
        "a notebook with metadata that lie",
        _cells(
            WRONG,
            metadata={
                "kernelspec": {"argv": ["sh", "-c", "x"]},
                "points": 100,
                "__class__": "os.system",
                "deep": json.loads(_deep(200)),
            },
        ),
    ),
    _notebook("claimed_outputs", "a notebook whose outputs say that all is right", _cells(WRONG) | {"passed": True}),
    _notebook(
        "shell_cells",
        "cells for the shell and magics that run code",
        _cells(
            "!touch /tmp/ttutor-was-here",
            "%%bash\ntouch /tmp/ttutor-was-here",
            "%run evil.py",
            "%%python\nimport os",
            "%load_ext evil",
            WRONG,
        ),
    ),
    _notebook("ten_thousand_cells", "ten thousand cells", _cells(*["x = 1"] * 10_000)),
    _notebook("no_cells", "a notebook without cells", {"nbformat": 4, "cells": {}}),
)
