"""Exercises of an instructor's own: a folder is added, verified, and graded like ours."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from ttutor import cli
from ttutor.errors import FileError
from ttutor.exercises import find, registry
from ttutor.exercises.checking import check
from ttutor.exercises.registry import add_folder

MINE = '''
import torch

from ttutor.exercises.exercise import Case, Exercise


def twice(values):
    """Two times each value."""
    return 2 * values


exercise = Exercise(
    id="attention.twice",
    title="Twice",
    statement="Double them.",
    reference=twice,
    cases=(Case(name="five numbers", inputs=lambda random: (torch.randn(5, generator=random),)),),
    hints=("Two.", "Times.", "2 * values"),
    difficulty=1,
    minutes=5,
    section="02-attention",
)


@exercise.mistake("That is three times.")
def thrice(values):
    return 3 * values


@exercise.like("thrice")
def thrice_by_sums(values):
    return values + values + values


exercise.mutations("""
half: "2 * values" -> "values / 2"
    That is half of it.
""")
'''


@pytest.fixture
def folder(tmp_path, as_readers_run_it):
    """A folder with one exercise, which is forgotten afterwards."""
    (tmp_path / "mine.py").write_text(MINE)
    yield tmp_path
    registry._own.clear()
    sys.modules.pop("ttutor.exercises.own.mine", None)


def test_an_exercise_of_ones_own_is_found_and_checked(folder) -> None:
    (exercise,) = add_folder(folder)
    assert find("attention.twice") is exercise
    assert check("attention.twice", lambda values: values + values).passed
    assert check("attention.twice", lambda values: values * 3).hint_id == "thrice"
    assert check("attention.twice", lambda values: values / 2).hint_id == "half"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", "attention.twice: as it should be"),
        ("return 3 * values", "return values + values", "the mistake thrice (thrice) earns all points"),
        ("torch.randn(5, generator=random)", "torch.ones(5)", "what is right for one seed is right for 5 of 5 others"),
        ("reference=twice", "reference=lambda values: 3 * values, solution=twice", "the solution does not pass"),
        ("minutes=5", "minutes=5, observe=lambda answer, values: answer(values)", "observe is <lambda>, which cannot"),
    ],
)
def test_verifying_says_what_is_wrong(folder, old, new, says) -> None:
    (folder / "mine.py").write_text(MINE.replace(old, new) if old else MINE)
    result = CliRunner().invoke(cli.build_app(), ["exercises", "--verify", str(folder)])
    assert says in result.output
    assert result.exit_code == bool(old)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1", "makes an Exercise"),
        (MINE.replace('"2 * values" ->', '"3 * values" ->'), "should stand once in the source"),
        (MINE.replace("->", "to"), "changes are written as"),
        (MINE.replace("half: ", "thrice: "), "each hint id must be given once"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        (MINE.replace("attention.twice", "attention.softmax"), "its own id"),
    ],
)
def test_a_folder_that_cannot_be_used_is_named(folder, text, says) -> None:
    (folder / "mine.py").write_text(text)
    with pytest.raises(FileError, match=says):
        add_folder(folder)
