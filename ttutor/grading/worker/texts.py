"""The text of a submission, taken apart into statements: Python files, notebooks, and what is broken in them."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import types
from dataclasses import dataclass
from typing import Any

PLAIN_CELL_MAGICS = ("%%time", "%%capture", "%%prun")
STARTS = re.compile(r"^(?:@|def |class |async |import |from |if |try:|with |for |while |[A-Za-z_][\w.\[\]]*\s*[:=+\-])")
MOST_CELLS = 5000


@dataclass(frozen=True)
class Piece:
    """A statement, or several that share a line; `where` is what to call the place: the file, or a cell of it."""

    where: str
    source: str
    line: int
    statements: tuple[ast.stmt, ...]

    def code(self) -> types.CodeType:
        """It, compiled."""
        return compile(ast.Module(list(self.statements), []), self.where, "exec", dont_inherit=True)


def pieces_of(name: str, data: bytes) -> tuple[list[Piece], list[str], list[str], bool]:
    """Return a file's statements, notes on what was left out, the texts left out, and whether it is a notebook."""
    text, notes = _decoded(name, data)
    if not (name.lower().endswith(".ipynb") or (text.lstrip()[:1] == "{" and '"cells"' in text)):
        pieces, more, broken = _parsed(name, text)
        return pieces, notes + more, broken, False
    cells, problem = _cells(text)
    pieces, broken = [], [text] if problem else []
    notes += [f"{name} {problem}"] if problem else []
    for number, source in enumerate(cells, 1):
        found, more, left = _cell(f"{name}, code cell {number}", source)
        pieces, notes, broken = pieces + found, notes + more, broken + left
    return pieces, notes, broken, True


def _decoded(name: str, data: bytes) -> tuple[str, list[str]]:
    notes: list[str] = []
    try:
        encoding = "utf-8-sig"
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            encoding = "utf-16"
        elif not name.lower().endswith(".ipynb"):
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        text = data.decode("cp1252", "replace")
        notes.append(f"{name} is not in UTF-8; it was read as Windows text: save it as UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n"), notes


def _cells(text: str) -> tuple[list[str], str]:
    """Return the code cells of a notebook, and what is wrong with it."""
    try:
        found = [_source(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return [], "is not a notebook that can be read: save it again from Jupyter"
    return found[:MOST_CELLS], "" if len(found) <= MOST_CELLS else f"has more than {MOST_CELLS} code cells"


def _source(source: Any) -> str:
    text = source if isinstance(source, str) else "".join(source)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _cell(where: str, source: str) -> tuple[list[Piece], list[str], list[str]]:
    first, _, rest = source.lstrip("\n").partition("\n")
    if first.startswith("%%"):
        if not first.startswith(PLAIN_CELL_MAGICS):
            return [], [], []
        source = "\n" + rest
    if not _parses(source):
        source = "\n".join("" if _is_magic(line) else line for line in source.split("\n"))
    return _parsed(where, source)


def _is_magic(line: str) -> bool:
    bare = line.strip()
    return bare.startswith(("%", "!", "?")) or bare.endswith("?") or bool(re.match(r"[\w, ]+=\s*[!%]", bare))


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _parsed(where: str, text: str) -> tuple[list[Piece], list[str], list[str]]:
    """Take a text apart; where it does not parse, take apart those of its blocks that do."""
    try:
        return _statements(where, text, 1), [], []
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problem = _said(where, error)
    pieces, broken = [], []
    for line, block in _blocks(text):
        try:
            pieces += _statements(where, block, line)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            broken.append(block)
    return pieces, [problem], broken


def _said(where: str, error: BaseException) -> str:
    line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
    text = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
    return f"{where}{line} does not parse ({text}) and was left out"


def _blocks(text: str) -> list[tuple[int, str]]:
    """Cut a text where a line at its margin starts a statement; each block with the line on which it starts."""
    blocks: list[tuple[int, list[str]]] = []
    after_decorator = False
    for number, line in enumerate(text.split("\n"), 1):
        if not blocks or (STARTS.match(line) and not after_decorator):
            blocks.append((number, []))
        blocks[-1][1].append(line)
        after_decorator = line.startswith("@") or (
            after_decorator and not line.startswith(("def ", "class ", "async "))
        )
    return [(number, "\n".join(lines)) for number, lines in blocks]


def _statements(where: str, text: str, line: int) -> list[Piece]:
    lines = text.split("\n")
    groups: list[tuple[int, int, list[ast.stmt]]] = []
    for statement in ast.parse(text).body:
        start = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))])
        end = statement.end_lineno or start
        if groups and start <= groups[-1][1]:
            groups[-1] = (groups[-1][0], max(end, groups[-1][1]), [*groups[-1][2], statement])
        else:
            groups.append((start, end, [statement]))
    return [
        Piece(where, "\n".join(lines[start - 1 : end]), line + start - 1, tuple(found)) for start, end, found in groups
    ]
