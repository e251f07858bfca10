"""Submissions that want points or harm: each earns nothing, leaves nothing, changes no other mark and no run."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.grading.attacks import ATTACKS
from tests.grading.bench import handed_in, homework, untimed
from tests.grading.hostile import BATCHES, DROPOUT, FORBIDDEN, HOSTILE, SOFTMAX, TIED
from ttutor.exercises import find
from ttutor.exercises.judge import judge
from ttutor.grading.assignment import Limits
from ttutor.grading.grader import Grader
from ttutor.grading.marks import State, Submission
from ttutor.grading.self_test import solutions

PLACES = ("/", "/tmp", "/var/tmp", "/dev/shm")
QUICK = ("probe of dropout gives facts", "probe of batches gives verdicts", "a name in two parts", "an array as a key")


@pytest.fixture(scope="module")
def grader(sandbox):
    """A grader of the four exercises that they pretend to answer; of each its first case alone."""
    limits = Limits(seconds_per_call=10.0, seconds=60.0, memory=1024)
    found = Grader(homework(SOFTMAX, DROPOUT, TIED, BATCHES, limits=limits), sandbox)
    found.exercises = [replace(one, cases=one.cases[:1]) for one in found.exercises]
    return found


def children() -> set[str]:
    """The processes that this one has started, and that are still there."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def traces() -> set[str]:
    """What the submissions would leave in the folders that everybody may write."""
    return {f"{place}/{name}" for place in PLACES for name in os.listdir(place) if name == "ttutor-was-here"}


def earned_by(grader, submission: Submission) -> float:
    """Return what a submission earns, if it leaves nothing behind and takes what an honest one takes."""
    before, there = children(), traces()
    started = time.monotonic()
    mark = grader.grade(submission)
    assert mark.state is not State.GRADER_ERROR, mark.notes
    assert 100 << 20 < mark.memory_bytes < 3 << 30
    assert mark.cpu_seconds > 0.5
    assert time.monotonic() - started < 2 * grader.assignment.longest + 300
    assert children() <= before
    assert traces() == there
    return mark.earned


@pytest.mark.parametrize("name", QUICK)
def test_some_earn_nothing(grader, name):
    assert earned_by(grader, handed_in(HOSTILE[name], student="mallory")) == 0


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_all_earn_nothing_and_change_no_other_mark(grader):
    honest = solutions(grader.exercises)
    before = untimed(grader.grade(honest))
    assert before.earned == before.possible
    for code in HOSTILE.values():
        assert earned_by(grader, handed_in(code, student="mallory")) == 0
    assert untimed(grader.grade(honest)) == before


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", ATTACKS)
def test_older_attacks_earn_nothing(grader, name):
    assert earned_by(grader, Submission(student="mallory", files=ATTACKS[name]())) == 0


@pytest.mark.parametrize("name", [name for name in FORBIDDEN if name not in ("a thread", "without the profiler")])
def test_check_sees_forbidden_functions_as_grade_does(name):
    space: dict = {}
    exec(FORBIDDEN[name], space)
    assert judge(find(SOFTMAX), space["my_softmax"], hidden=True).hint_id == "shortcut"
