"""The course's own solutions and the wrong answers that it knows, as a student would hand them in."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from ttutor.exercises.exercise import Answer, Exercise, Mistake
from ttutor.exercises.source import imports, solution_source
from ttutor.grading.assignment import Assignment, Limits, Worth
from ttutor.grading.judging.bundles import cut
from ttutor.grading.marks import SourceFile, Submission

__all__ = ["Wrong", "everything", "solutions", "wrong_answers"]

SEED = "the seed of the self-test, which is no secret"


def everything(exercises: Iterable[Exercise], *, seed: str = SEED, limits: Limits | None = None) -> Assignment:
    """Return an assignment of these exercises, each for its own points."""
    worth = tuple(Worth(one.id, float(one.points)) for one in exercises)
    return Assignment(title="All exercises", seed=seed, exercises=worth, limits=limits or Limits())


def solutions(exercises: Iterable[Exercise], student: str = "reference") -> Submission:
    """Return a submission that solves these exercises, one file for each.

    Each answer is called ``my_...``, so that none takes the place of a function that another one imports.
    """
    files = tuple(SourceFile(f"{one.id}.py", _code(one).encode()) for one in exercises)
    return Submission(student=student, shown="the reference", files=files)


def _code(exercise: Exercise) -> str:
    return "\n".join([*imports(exercise), "", "", solution_source(exercise, f"my_{exercise.name}")])


@dataclass(frozen=True)
class Wrong:
    """A wrong answer of the course's list, as a student would hand it in.

    Args:
        exercise_id: the exercise.
        hint_id: the hint that it deserves.
        file: its code.
    """

    exercise_id: str
    hint_id: str
    file: SourceFile


def wrong_answers(exercise: Exercise) -> tuple[list[Wrong], int]:
    """Return one wrong answer for each mistake of an exercise, and how many mistakes have none that stands alone."""
    found = [
        next(filter(None, (_wrong(exercise, one, answer) for answer in one.answers)), None) for one in exercise.mistakes
    ]
    wrong = [one for one in found if one is not None]
    return wrong, len(found) - len(wrong)


def _wrong(exercise: Exercise, mistake: Mistake, answer: Answer) -> Wrong | None:
    """A wrong answer cut out of its module, or None where it needs others of the course."""
    sources = cut(((answer.__module__, answer.__name__),))
    if len(sources) != 1:
        return None
    tree = ast.parse(sources[answer.__module__])
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == answer.__name__:
            node.name = f"my_{exercise.name}"
        elif isinstance(node, ast.Name) and node.id == answer.__name__:
            node.id = f"my_{exercise.name}"
    file = SourceFile(f"{exercise.id}.{mistake.id}.py", ast.unparse(tree).encode())
    return Wrong(exercise.id, mistake.id, file)
