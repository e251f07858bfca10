"""What stands in an answer that its exercise gives no reason for: read by the judge, before anything runs.

An answer is written in the words of its exercise: those of its statement, its stub and its solution, and the ordinary
words of Python and PyTorch below. Whatever else stands there (an unknown attribute of a module, `getattr`, frames,
names between double underscores, a class that takes another's place) is listed with its line for a person to look at.
It costs no points, and nothing that the code does at run time can undo it: exactly the text that is run is read.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import re
import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch
from torch import nn

from ttutor.exercises.exercise import Answer, Exercise
from ttutor.exercises.forbidden import kernels_of, relatives_of
from ttutor.exercises.mutation import source_of
from ttutor.exercises.source import imports
from ttutor.grading.answer import Piece
from ttutor.grading.ordinary_words import ATTRIBUTES, BASES, BUILTINS, METHODS, MODULES, OVERRIDABLE, READABLE, SETTABLE
from ttutor.grading.own_words import OwnWords, class_words, own_words, root_of

MOST_LISTED = 12
WORD = re.compile(r"[A-Za-z_]\w*")
FORMAT = re.compile(r"\{[^{}:]*\.[A-Za-z_]")
"""A text of `str.format` that takes an attribute."""
HISTORY = torch.ones(1, requires_grad=True) * 1
MODULE = nn.Module()
OPTIMIZER = torch.optim.SGD([torch.ones(1, requires_grad=True)])
RUNNING = (
    *(partial, type(cache(len)), property, type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType),
    *(types.MethodType, types.CodeType, types.FrameType, types.TracebackType, types.GeneratorType),
    *(types.CoroutineType, types.AsyncGeneratorType, types.CellType),
)
"""What holds the program itself: functions, frames and the like. A method may get one of them for its `self`."""
FOREIGN = (
    *(torch.Tensor, np.ndarray, MODULE, nn.Parameter, OPTIMIZER, torch.Generator, torch.dtype),
    *(type(HISTORY.grad_fn), torch.storage.UntypedStorage, object, str, int, float, list, dict, set, tuple, bytes),
    *(Exception, StopIteration, ImportError, *RUNNING),
)
"""What an answer can get hold of that is not its own: an attribute of theirs stays theirs, whatever has its name."""
COPIES_NAMED = frozenset(("assigned", "updated"))
"""Arguments of `functools.wraps` that make it read attributes by their names."""
DANGEROUS = frozenset("getattr setattr delattr vars globals locals eval exec compile open dir breakpoint".split())
"""Functions that are listed even where an answer gives their name to something of its own."""


@dataclass(frozen=True)
class Vocabulary:
    """The words of an exercise.

    Args:
        words: names of attributes, functions and modules that may stand in an answer.
        forbidden: names that may not, though they are ordinary: what the exercise asks to be built.
    """

    words: frozenset[str]
    forbidden: frozenset[str]

    def has(self, word: str) -> bool:
        """Whether a word may stand in an answer."""
        return word in self.words and word not in self.forbidden


def strange_words(exercise: Exercise, pieces: Sequence[Piece]) -> tuple[str, ...]:
    """Return what stands in the pieces of an answer beside the words of its exercise, one sentence each.

    >>> from ttutor.exercises.registry import find
    >>> text = "import torch\\ndef my_softmax(scores, dim=-1):\\n    return torch._safe_softmax(scores, dim)\\n"
    >>> strange_words(find("attention.softmax"), [Piece("hw1.py", text, 1)])
    ('hw1.py, line 3: `torch._safe_softmax`',)
    """
    trees = []
    for piece in pieces:
        try:
            trees.append((piece, ast.parse(piece.source)))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return (f"{piece.where}, line {piece.line}: this cannot be read here ({type(error).__name__})",)
    own = own_words([tree for _, tree in trees])
    found: dict[str, None] = {}
    for piece, tree in trees:
        for line, what in sorted(set(_Reader(vocabulary_of(exercise), own).strange(tree))):
            found[f"{piece.where}, line {piece.line + line - 1}: `{what}`"] = None
    listed = list(found)
    more = [f"and {len(listed) - MOST_LISTED} more of this kind"] if len(listed) > MOST_LISTED else []
    return (*listed[:MOST_LISTED], *more)


@cache
def vocabulary_of(exercise: Exercise) -> Vocabulary:
    """Return the words of an exercise."""
    texts = [exercise.title, exercise.statement, *exercise.hints, exercise.explanation, exercise.stub.__doc__ or ""]
    words = {word for text in texts for code in re.findall(r"`([^`]+)`", text) for word in WORD.findall(code)}
    answers: list[Answer] = [exercise.stub, exercise.reference, exercise.solution or exercise.reference]
    answers += [answer for mistake in exercise.mistakes for answer in mistake.answers]
    for tree in [*(ast.parse(source_of(one)) for one in answers), ast.parse("\n".join(imports(exercise)))]:
        words |= {word for node in ast.walk(tree) for word in _words_at(node)}
    operators = {re.split("::|[.]", name)[1] for name in kernels_of(exercise.forbids)}
    forbidden = {*exercise.forbids, *operators, *relatives_of(exercise.forbids)}
    plain = {word for word in words if not _is_dunder(word)} - set(dir(builtins))
    return Vocabulary(frozenset(plain | ATTRIBUTES | MODULES), frozenset(forbidden))


def _words_at(node: ast.AST) -> Iterator[str]:
    """The attributes and imported names at one place of a known answer."""
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (part for alias in node.names for part in (*alias.name.split("."), alias.name))
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""


def _is_dunder(word: str) -> bool:
    return word.startswith("__")


def _written(node: ast.Attribute) -> str:
    """A chain of attributes as it stands there, as far back as it is one."""
    parts, place = [node.attr], node.value
    while isinstance(place, ast.Attribute):
        parts.append(place.attr)
        place = place.value
    if isinstance(place, ast.Name):
        parts.append(place.id)
    return ".".join(reversed(parts))[-80:]


@cache
def _is_of(word: str, places: tuple[object, ...]) -> bool:
    """Whether one of these kinds of objects has an attribute of that name."""
    return any(hasattr(place, word) for place in places)


@cache
def _is_module(path: str) -> bool:
    """Whether a dotted name is a module; of what cannot be imported nothing is known, and it may be one."""
    try:
        return importlib.util.find_spec(path) is not None
    except (ImportError, ValueError, AttributeError):
        return False


@cache
def _module_behind(path: str) -> str:
    """The module that a dotted name leads to by way of another that happens to hold it, or ""."""
    first, *rest = path.split(".")
    found: object = sys.modules.get(first)
    for part in rest:
        found = getattr(found, part, None)
    return found.__name__ if isinstance(found, types.ModuleType) and found.__name__ != path else ""


def _is_underscores(node: ast.expr) -> bool:
    """Whether a text is underscores alone, as where a name between double ones is put together."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and bool(node.value)
        and not node.value.strip("_")
    )


class _Reader:
    """Reads one piece of an answer."""

    def __init__(self, vocabulary: Vocabulary, own: OwnWords) -> None:
        self.vocabulary, self.own = vocabulary, own
        self.is_base: set[int] = set()  # what an attribute is taken of
        self.asks_a_kind: set[int] = set()  # the name `type` where it is asked for one thing's kind

    def strange(self, tree: ast.Module) -> Iterator[tuple[int, str]]:
        """Yield line and text of whatever stands there that is no word of the exercise."""
        self.is_base = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id="type") as name, args=[_], keywords=[]):
                    self.asks_a_kind.add(id(name))
        for node in ast.walk(tree):
            match node:
                case ast.Name(id="type") if id(node) not in self.asks_a_kind:
                    yield node.lineno, "type, as a value"
                case ast.Name():
                    yield from self._name(node)
                case ast.Attribute():
                    yield from self._attribute(node)
                case ast.Import() | ast.ImportFrom():
                    yield from self._import(node)
                case ast.ClassDef():
                    yield from self._class(node)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield from self._function(node)
                case ast.MatchClass():
                    yield from ((node.lineno, word) for word in node.kwd_attrs if not self._may_stand(word, ""))
                case ast.keyword(arg=word) if word in COPIES_NAMED:
                    yield node.value.lineno, f"{word}=..."
                case ast.BinOp(left=left, right=right) if any(map(_is_underscores, (left, right))):
                    yield node.lineno, ast.unparse(node)[:60]
                case ast.Constant(value=str() as text) if ("__" in text and text != "__main__") or FORMAT.search(text):
                    yield node.lineno, text.strip()[:60]
                case ast.Subscript(value=kind, slice=inner):
                    yield from self._annotation(inner, self.own.modules.get(root_of(kind), "").startswith("jaxtyping"))

    def _name(self, node: ast.Name) -> Iterator[tuple[int, str]]:
        known = (node.id in self.own.names and node.id not in DANGEROUS) or node.id in BUILTINS or node.id == "__name__"
        if _is_dunder(node.id) and node.id != "__name__" or not known and hasattr(builtins, node.id):
            yield node.lineno, node.id
        elif id(node) not in self.is_base and _is_module(self.own.modules.get(node.id, "")):
            yield node.lineno, f"{node.id}, a module, as a value"

    def _attribute(self, node: ast.Attribute) -> Iterator[tuple[int, str]]:
        root = self._root(node)
        is_text = isinstance(node.value, ast.Constant) and node.attr == "format"
        if not (is_text or self._may_stand(node.attr, root)):
            yield node.lineno, _written(node)
        elif id(node) not in self.is_base and root in self.own.modules and _is_module(self._path(node)):
            yield node.lineno, f"{_written(node)}, a module, as a value"
        elif root in self.own.modules and (other := _module_behind(self._path(node))):
            yield node.lineno, f"{_written(node)}, the module {other} by another way"
        elif not isinstance(node.ctx, ast.Load) and not self._may_be_set(node, root):
            yield node.lineno, f"{_written(node)} = ..."

    def _root(self, node: ast.Attribute) -> str:
        """With what a chain begins; "self" only where an attribute is taken of an object of one's own class."""
        root, is_own = root_of(node.value), self.own.is_sealed and id(node.value) in self.own.selves
        return "somebody's self" if root == "self" and not is_own else root

    def _path(self, node: ast.Attribute) -> str:
        """What a chain of attributes of something imported stands for."""
        first, dot, rest = _written(node).partition(".")
        return f"{self.own.modules.get(first, first)}{dot}{rest}"

    def _may_stand(self, word: str, root: str) -> bool:
        if _is_dunder(word):
            return word in METHODS and (root in ("super", "") or root in self.own.classes or word in READABLE)
        if self.vocabulary.has(word):
            return True
        if word not in self.own.attributes or root in self.own.modules:
            return False
        if root == "self":
            return not _is_of(word, RUNNING)
        return not (_is_of(word, FOREIGN) or word in self.vocabulary.forbidden)

    def _may_be_set(self, node: ast.Attribute, root: str) -> bool:
        """Whether an attribute may be given a value: of one's own object or class, or one that is made to be set."""
        if isinstance(node.value, ast.Name) and (root == "self" or root in self.own.classes | self.own.made):
            return node.attr in SETTABLE or not hasattr(MODULE, node.attr)
        if id(node.value) in self.own.selves:
            return node.attr in SETTABLE or not _is_of(node.attr, FOREIGN)
        return root not in self.own.modules and node.attr in SETTABLE

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[int, str]]:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, f"import {one.name}") for one in node.names if not self.vocabulary.has(one.name))
            return
        module = node.module or "."
        is_check = module == "ttutor.exercises" and {alias.name for alias in node.names} <= {"check", "find"}
        if node.level or not (self.vocabulary.has(module) or is_check or module == "__future__"):
            yield node.lineno, f"from {module} import ..."
        elif not is_check and module != "__future__":
            for alias in node.names:
                if not self.vocabulary.has(alias.name) and f"{module}.{alias.name}" not in MODULES:
                    yield node.lineno, f"from {module} import {alias.name}"

    def _class(self, node: ast.ClassDef) -> Iterator[tuple[int, str]]:
        yield from ((node.lineno, f"class {node.name}({one.arg}=...)") for one in node.keywords)
        for base in node.bases:
            name = base.value if isinstance(base, ast.Subscript) else base
            word = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
            is_own = isinstance(name, ast.Name) and word in self.own.classes
            if not (is_own or word in BASES or (word in self.vocabulary.words and word.endswith("Module"))):
                yield node.lineno, f"class {node.name}({word or '...'})"
        for word in class_words(node) if node.bases or node.name in self.own.bases else ():
            if hasattr(MODULE, word) and word not in OVERRIDABLE and not _is_dunder(word):
                yield node.lineno, f"{node.name}.{word}"

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, str]]:
        if _is_dunder(node.name) and node.name not in METHODS:
            yield node.lineno, f"def {node.name}"

    def _annotation(self, inner: ast.expr, is_jaxtyping: bool) -> Iterator[tuple[int, str]]:
        """A text in brackets is a key or the axes of an annotation, of which jaxtyping evaluates parts as Python."""
        for node in ast.walk(inner):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"[{(\[]", node.value):
                yield node.lineno, node.value[:60]
        axes = inner.elts[-1] if isinstance(inner, ast.Tuple) and inner.elts else inner
        if is_jaxtyping and not (isinstance(axes, ast.Constant) and isinstance(axes.value, str)):
            yield inner.lineno, f"axes that are no text: {ast.unparse(axes)[:40]}"
