"""Every exercise of a submission earns all its points."""

from __future__ import annotations

import pytest

from ttutor.grading.feedback import IN_WORDS, message_for
from ttutor.grading.marks import State


def test_exercise(exercise, mark_of, pytestconfig) -> None:
    mark = mark_of(exercise)
    if mark.state is State.MISSING and pytestconfig.getoption("--assignment", None) is None:
        pytest.skip(f"{exercise.id} is not handed in, and no --assignment asks for it")
    if mark.state is not State.OK:
        pytest.fail(f"{exercise.title}: {IN_WORDS[mark.state]}. {message_for(mark)}", pytrace=False)
    assert mark.earned == mark.possible
