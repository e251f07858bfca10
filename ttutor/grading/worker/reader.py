"""The reader: takes a submission's files apart into definitions and facts, and runs nothing of them.

It works in the sandbox, since text can be made that crashes Python's compiler.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import io
import json
import re
import tokenize
import types
from dataclasses import dataclass
from typing import Any

READ_CAP = 128 << 20
DEFINES = re.compile(r"^(?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)
Function = ast.FunctionDef | ast.AsyncFunctionDef
IMPORTS = (ast.Import, ast.ImportFrom)
KEPT_WHOLE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *IMPORTS)
BINDS = (*KEPT_WHOLE, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.Try, ast.With)
NOTHING = (ast.Return(), ast.Return(ast.Constant(None)))
MOST_TEXT = 3 << 20
PLAIN_CELL_MAGICS = ("%%time", "%%capture", "%%prun")
STARTS = re.compile(r"^(?:@|def |class |async |import |from |if |try:|with |for |while |[A-Za-z_][\w.\[\]]*\s*[:=+\-])")
MOST_CELLS = 5000


def read_file(name: str, data: bytes, wanted: list[str]) -> dict[str, Any]:
    """Return what a file holds: the pieces to run, facts of the answers, and notes on what was left out."""
    pieces, notes, broken, is_notebook = pieces_of(name, data)
    bindings = _bindings(pieces)
    answers = [one for one in wanted if one in bindings and not isinstance(bindings[one], IMPORTS)]
    needed = _Needs(pieces, is_notebook=is_notebook)
    by_answer = {one: needed.by(one) for one in answers}
    kept = [place for place in range(len(pieces)) if any(place in places for places in by_answer.values())]
    if sum(len(pieces[one].source) for one in kept) > MOST_TEXT:
        notes.append("its definitions are too long to be graded")
        kept, answers, broken = [], [], [*broken, *(f"def {one}" for one in answers)]
    number = {place: count for count, place in enumerate(kept)}
    chosen = [pieces[place] for place in kept]
    return {
        "pieces": [{"where": one.where, "source": one.source, "line": one.line} for one in chosen],
        "answers": {one: facts_of(one, bindings) | {"needs": [number[at] for at in by_answer[one]]} for one in answers},
        "broken": _lost(broken, wanted, nothing_left=not pieces),
        "notes": notes[:40],
    }


def _lost(broken: list[str], wanted: list[str], *, nothing_left: bool) -> list[str]:
    """The answers that stand in texts that do not parse; any of them, where nothing of a file can be read."""
    named = {found for text in broken for found in DEFINES.findall(text)} & set(wanted)
    return sorted(named or (wanted if broken and nothing_left else ()))


def _bindings(pieces: list[Piece]) -> dict[str, ast.stmt]:
    """For each name, the statement that binds it last."""
    return {name: one for piece in pieces for one in piece.statements for name in _bound(one)}


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if not isinstance(statement, BINDS):
        return set()
    found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return found.union(*(_bound(inner) for inner in ast.walk(statement) if isinstance(inner, KEPT_WHOLE)))


def _touched(statement: ast.stmt) -> set[str]:
    """The names that a statement changes without binding them: ``Layer.forward = f``, ``@register(Layer)``."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    found = {_root(one) for one in targets if isinstance(one, (ast.Attribute, ast.Subscript))}
    for decorator in getattr(statement, "decorator_list", []):
        found |= {node.id for node in ast.walk(decorator) if isinstance(node, ast.Name)}
    return {name for name in found if name is not None}


def _root(node: ast.AST) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _globals(code: types.CodeType) -> set[str]:
    """The names that code, or a function inside it, looks up in its module."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return found.union(*(_globals(one) for one in code.co_consts if isinstance(one, types.CodeType)))


class _Needs:
    """Which pieces of a file an answer needs: nothing else of it is run, no training and no plot."""

    def __init__(self, pieces: list[Piece], *, is_notebook: bool) -> None:
        self.pieces, self.count, self.is_notebook = pieces, len(pieces), is_notebook
        self._uses: dict[int, set[str]] = {}
        self.bound = [set().union(*map(_bound, piece.statements)) for piece in pieces]
        self.touched = [set().union(*map(_touched, piece.statements)) for piece in pieces]
        self.is_plain = [not any(isinstance(one, BINDS) for one in piece.statements) for piece in pieces]
        assigned = [isinstance(one, (ast.Assign, ast.AnnAssign)) for piece in pieces for one in piece.statements[:1]]
        self.data = set().union(*(names for names, is_data in zip(self.bound, assigned, strict=True) if is_data), ())

    def by(self, answer: str) -> list[int]:
        """Return the places of the pieces that an answer needs, in order."""
        names, kept = {answer}, set[int]()
        while more := {place for place in range(self.count) if place not in kept and self._serves(place, names)}:
            kept |= more
            names |= set().union(*(self.uses(place) for place in more))
        return sorted(kept)

    def uses(self, place: int) -> set[str]:
        """The names that a piece looks up, found when it is first asked for: most pieces are needed by nothing."""
        if place not in self._uses:
            self._uses[place] = self.pieces[place].uses()
        return self._uses[place]

    def _serves(self, place: int, names: set[str]) -> bool:
        """Whether a piece binds or changes one of these names; in a module also: does anything with needed data."""
        if self.bound[place] & {*names, "*"} or self.touched[place] & names:
            return True
        return not self.is_notebook and self.is_plain[place] and bool(self.uses(place) & names & self.data)


def facts_of(name: str, bindings: dict[str, ast.stmt]) -> dict[str, Any]:
    """Return what can be told of the answer of a name."""
    statement = _followed(name, bindings)
    return {
        "is_class": isinstance(statement, ast.ClassDef),
        "steps": steps_of(statement),
        "methods": methods_of(statement) if isinstance(statement, ast.ClassDef) else {},
    }


def steps_of(statement: ast.stmt) -> str:
    """What a function or a lambda does, as a digest; nothing of anything else. Names and docstrings do nothing."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Lambda):
        body: list[ast.stmt] = [ast.Return(value.body)]
    elif isinstance(statement, Function):
        body = [one for one in statement.body if not isinstance(one, ast.Pass) and not _is_constant(one)]
    else:
        return ""
    steps = [ast.dump(one) for one in body]
    if steps and steps[-1] in map(ast.dump, NOTHING):
        del steps[-1]
    return hashlib.sha256(repr(steps).encode("utf-8", "replace")).hexdigest()[:32]


def methods_of(statement: ast.ClassDef) -> dict[str, str]:
    """What each method of a class does."""
    return {one.name: steps_of(one) for one in statement.body if isinstance(one, Function)}


def _is_constant(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, or three dots."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _followed(name: str, bindings: dict[str, ast.stmt]) -> ast.stmt:
    """Follow ``softmax = my_softmax`` to where it is defined."""
    for _ in range(10):
        statement = bindings[name]
        value = getattr(statement, "value", None)
        if not (isinstance(statement, ast.Assign) and isinstance(value, ast.Name) and value.id in bindings):
            break
        name = value.id
    return bindings[name]


@dataclass(frozen=True)
class Piece:
    """A statement, or several that share a line; `where` is what to call the place: the file, or a cell of it."""

    where: str
    source: str
    line: int
    statements: tuple[ast.stmt, ...]

    def uses(self) -> set[str]:
        """The names that it looks up in its module; none where it does not compile, as running it will tell."""
        try:
            return _globals(compile(ast.Module(list(self.statements), []), self.where, "exec", dont_inherit=True))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return set()


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
