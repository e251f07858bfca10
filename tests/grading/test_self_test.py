"""`ttutor.grading.self_test`: what the grader is tried with on an instructor's machine."""

from __future__ import annotations

import ast
import re

import pytest

from ttutor.exercises import exercises, find
from ttutor.grading.self_test import ATTACKS, run_self_test, solutions, wrong_answers

SOFTMAX = find("attention.softmax")


@pytest.mark.soak
def test_the_self_test_tells_what_held_and_what_did_not(as_readers_run_it, sandbox) -> None:
    told: list[str] = []
    assert run_self_test(told.append, chosen=[SOFTMAX])
    assert "Solutions: 1 of 1 earn all their points." in told
    assert f"Attacks: {len(ATTACKS)} of {len(ATTACKS)} gain nothing." in told
    assert any(line.startswith("Wrong answers: ") and " lose points" in line for line in told)
    assert any(re.fullmatch(r"  by chapter: attention \d+ of \d+", line) for line in told)
    assert told[-1] == "All is as it should be."


@pytest.mark.soak
@pytest.mark.parametrize("exercise", exercises(), ids=lambda one: one.id)
def test_what_is_handed_in_is_python_of_the_right_name(exercise) -> None:
    wrong, missing = wrong_answers(exercise)
    assert len(wrong) + missing == len(exercise.mistakes)
    for file in (*solutions([exercise]).files, *(one.file for one in wrong)):
        names = [node.name for node in ast.parse(file.data).body if hasattr(node, "name")]
        assert names.count(f"my_{exercise.name}") == 1
