"""All exercises, found by walking the chapters' folders."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from ttutor.errors import FileError, SettingError
from ttutor.exercises.exercise import CHAPTERS, Exercise
from ttutor.exercises.order import ORDER

__all__ = ["add_folder", "exercises", "find"]


OWN = "ttutor.exercises.own"
_own: dict[Exercise, None] = {}
"""Exercises of an instructor's own, in the order in which they were added."""


@cache
def exercises(chapter: str | None = None) -> tuple[Exercise, ...]:
    """Return every exercise, or those of one chapter, in the order of the book; those that it lacks come last.

    Every module in ``ttutor/exercises/<chapter>/`` is imported; whatever `Exercise` one makes is an exercise.

    Raises:
        ValueError: an exercise stands in another chapter's folder, or an id or a stub's name is given twice.

    Example:
        >>> "attention.softmax" in [exercise.id for exercise in exercises("attention")]
        True
    """
    chapters = CHAPTERS if chapter is None else (chapter,)
    found = [exercise for name in chapters for exercise in _of_chapter(name)]
    for what in ("id", "name"):
        names = [getattr(exercise, what) for exercise in found]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"each exercise must have its own {what}, but twice came {', '.join(twice)}")
    return tuple(found)


def add_folder(folder: Path) -> tuple[Exercise, ...]:
    """Add the exercises of a folder of one's own: Python files of the form of ours.

    Returns them. A file may import from the package, and not from its neighbours.

    Raises:
        FileError: it cannot be read, has no exercises, or gives an id or a name twice.
    """
    paths = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    if not paths:
        raise FileError(f"{folder} holds no Python files with exercises")
    found = [one for path in paths for one in made_in(_loaded(path))]
    if not found:
        raise FileError(f"no file of {folder} makes an Exercise")
    for what in ("id", "name"):
        names = [getattr(one, what) for one in (*exercises(), *found)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise FileError(f"each exercise must have its own {what}, but twice came {', '.join(twice)}")
    _own.clear()
    _own.update(dict.fromkeys(found))
    return tuple(found)


def _loaded(path: Path) -> ModuleType:
    """Load a file as a module of this package, which is how workers know it too."""
    name = f"{OWN}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise FileError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def find(exercise_id: str) -> Exercise:
    """Return the exercise with this id.

    Raises:
        SettingError: there is none.

    Example:
        >>> find("attention.softmax").chapter
        'attention'
        >>> find("attention.sofmax")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ttutor.errors.SettingError: there is no exercise 'attention.sofmax'; did you mean ...
    """
    for exercise in _own:
        if exercise.id == exercise_id:
            return exercise
    chapter = exercise_id.partition(".")[0] if isinstance(exercise_id, str) else ""
    for exercise in exercises(chapter) if chapter in CHAPTERS else ():
        if exercise.id == exercise_id:
            return exercise
    if not isinstance(exercise_id, str):
        raise SettingError('give the name of the exercise first, then your answer: check("attention.softmax", mine)')
    if exercise_id in CHAPTERS:
        has = ", ".join(exercise.id for exercise in exercises(exercise_id))
        raise SettingError(f"there is no exercise {exercise_id!r}, which is a chapter; its exercises are {has}")
    known = [exercise.id for exercise in exercises()] if "." in exercise_id else list(CHAPTERS)
    near = difflib.get_close_matches(exercise_id, known, n=3, cutoff=0.6)
    advice = f"did you mean {' or '.join(near)}?" if near else "`ttutor exercises attention` lists those of a chapter"
    raise SettingError(f"there is no exercise {exercise_id!r}; {advice}")


def made_in(module: ModuleType) -> list[Exercise]:
    """Return the exercises that a module makes; those that it imports are another's."""
    found = [one for one in vars(module).values() if isinstance(one, Exercise)]
    return [one for one in found if one.stub.__module__ == module.__name__]


@cache
def _of_chapter(chapter: str) -> tuple[Exercise, ...]:
    name = f"ttutor.exercises.{chapter}"
    if importlib.util.find_spec(name) is None:
        return ()
    folder = importlib.import_module(name)
    modules = [importlib.import_module(f"{name}.{module.name}") for module in pkgutil.iter_modules(folder.__path__)]
    found = [exercise for module in modules for exercise in made_in(module)]
    if astray := [exercise.id for exercise in found if exercise.chapter != chapter]:
        raise ValueError(f"exercises in ttutor/exercises/{chapter}/ must be {chapter}.*, but {', '.join(astray)} came")
    places = {f"{chapter}.{name}": place for place, name in enumerate(ORDER.get(chapter, "").split())}
    return tuple(sorted(found, key=lambda exercise: (places.get(exercise.id, len(places)), exercise.id)))
