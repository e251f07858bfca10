"""What is graded: the submission that is named, else the course's own solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ttutor.exercises import exercises, find
from ttutor.exercises.exercise import Exercise
from ttutor.grading.assignment import read_assignment
from ttutor.grading.fields import BadAssignment
from ttutor.grading.marks import ExerciseMark, Submission
from ttutor.grading.published import everything, solutions
from ttutor.grading.side_by_side import real_grader
from ttutor.grading.submissions import BadSubmissions, find_work, read_work


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that name a submission and an assignment."""
    group = parser.getgroup("grading")
    group.addoption(
        "--submission", metavar="FILE", help="grade this: a .py, an .ipynb, a zip or a folder of one student"
    )
    group.addoption("--assignment", metavar="TOML", help="what is asked; all exercises when left out")


def _asked(config: pytest.Config):
    path = config.getoption("--assignment", None)
    if path is None:
        return everything(exercises())
    try:
        return read_assignment(Path(path))
    except BadAssignment as error:
        raise pytest.UsageError(str(error)) from error


def _handed_in(config: pytest.Config, patterns: tuple[str, ...]) -> Submission | None:
    path = config.getoption("--submission", None)
    if path is None:
        return None
    try:
        (handed,) = find_work(Path(path), student="submission").students
    except BadSubmissions as error:
        raise pytest.UsageError(str(error)) from error
    return read_work(handed, patterns)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each exercise that is asked for."""
    if "exercise" in metafunc.fixturenames:
        asked = [find(one.exercise_id) for one in _asked(metafunc.config).exercises]
        metafunc.parametrize("exercise", asked, ids=[one.id for one in asked])


@pytest.fixture(scope="session")
def mark_of(pytestconfig) -> Iterator[Callable[[Exercise], ExerciseMark]]:
    """Returns the mark of an exercise; a chapter is graded when the first of its exercises is asked for."""
    asked = _asked(pytestconfig)
    submission = _handed_in(pytestconfig, asked.files)
    if submission is not None and submission.problem:
        pytest.fail(f"{submission.problem} {' '.join(submission.notes)}", pytrace=False)
    marks: dict[str, ExerciseMark] = {}
    with real_grader(asked, False) as grader:

        def mark(exercise: Exercise) -> ExerciseMark:
            if exercise.id not in marks:
                chapter = [one for one in grader.exercises if submission is not None or one.chapter == exercise.chapter]
                graded, ids = grader.grade(submission or solutions(chapter)), [one.id for one in chapter]
                marks.update({one.exercise_id: one for one in graded.exercises if one.exercise_id in ids})
            return marks[exercise.id]

        yield mark
