"""Reading the answers out of a student's file: a module, or the definitions of a notebook."""

from __future__ import annotations

import ast
import linecache
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ttutor.errors import FileError
from ttutor.exercises.exercise import Exercise
from ttutor.schemas import parse_json


@dataclass(frozen=True)
class Work:
    """What a file defines.

    Args:
        path: the file.
        names: the functions and classes that it defines itself; what it imports is nobody's answer.
        skipped: what could not be run in a notebook, one sentence each.
    """

    path: Path
    names: dict[str, Any]
    skipped: tuple[str, ...] = ()

    def answer_to(self, exercise: Exercise) -> Any:
        """Return the answer to an exercise, called as its stub or with ``my_`` before that, or None."""
        return self.names.get(f"my_{exercise.name}", self.names.get(exercise.name))


def read_work(path: Path) -> Work:
    """Run a student's file, and return what it defines.

    A module is run from top to bottom, as importing it would. Of a notebook only the imports, functions, classes and
    literals are run, cell by cell, so that a chapter's trainings and plots are left out.

    Raises:
        FileError: it is neither, is not there, or fails.
    """
    readers = {".py": _run_module, ".ipynb": _run_notebook}
    if path.suffix not in readers:
        raise FileError(f"{path} must be a Python file (.py) or a notebook (.ipynb): hand in one of these")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        begin = "`ttutor exercises attention --stubs > my_work.py` writes a file to begin with"
        raise FileError(f"there is no file {path}; check the path, or begin one: {begin}") from error
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not in UTF-8 (byte {error.start}): save it as UTF-8") from error
    module = ModuleType(f"answers_in_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        skipped = readers[path.suffix](path, text, module)
    finally:
        sys.path.remove(str(path.resolve().parent))
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return Work(path, own, skipped)


def _run_module(path: Path, text: str, module: ModuleType) -> tuple[str, ...]:
    try:
        exec(compile(text, str(path), "exec"), vars(module))
    except SyntaxError as error:
        raise FileError(f"{path}, line {error.lineno}: {error.msg}; mend it, then check again") from error
    except (Exception, SystemExit) as error:
        raise FileError(f"{path}{_line(path, error)} raises {type(error).__name__}: {error}; mend it first") from error
    return ()


def _run_notebook(path: Path, text: str, module: ModuleType) -> tuple[str, ...]:
    try:
        cells = parse_json(text.encode(), path, "save it again")["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (FileError, KeyError, TypeError) as error:
        raise FileError(f"{path} is not a notebook of format 4: save it again from Jupyter") from error
    skipped = [_run_cell(f"{path}, code cell {number}", source, module) for number, source in enumerate(sources, 1)]
    return tuple(sentence for sentence in skipped if sentence)


def _run_cell(where: str, source: str, module: ModuleType) -> str:
    """Run the definitions of one cell; return what went wrong, if anything."""
    lines = source.splitlines()
    if lines and lines[0].startswith("%%"):
        return ""
    plain = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)
    linecache.cache[where] = (len(plain), None, [f"{line}\n" for line in plain.splitlines()], where)
    try:
        body = [statement for statement in ast.parse(plain).body if _defines(statement)]
        for statement in body:
            exec(compile(ast.Module([statement], []), where, "exec"), vars(module))
    except (Exception, SystemExit) as error:
        return f"{where} was left out: {type(error).__name__}: {error}"
    return ""


def _defines(statement: ast.stmt) -> bool:
    """Return whether a statement defines something without doing anything."""
    if isinstance(statement, ast.Assign):
        try:
            ast.literal_eval(statement.value)
        except ValueError:
            return isinstance(statement.value, ast.Lambda)
        return True
    return isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef))


def _line(path: Path, error: BaseException) -> str:
    numbers = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f", line {numbers[-1]}," if numbers else ""
