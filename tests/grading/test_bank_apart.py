"""The whole bank, in workers: every answer gets the same verdict, hint and words there as `check` gives here."""

from __future__ import annotations

import pytest

from tests.exercises.bank import EXERCISES, RIGHT, STRAY
from tests.grading.bench import SEED, remote_verdict, session_of_answers
from ttutor.exercises.judge import judge
from ttutor.grading.marks import State

SEEN_WITHOUT_RUNNING = ("cannot_load",)
SAMPLE = EXERCISES[::20]


def same_verdicts(forks, exercise, answers):
    """Hold the verdicts there against the verdicts here; return how many there were."""
    with session_of_answers(forks, exercise, answers) as session:
        for number, answer in enumerate(answers):
            here = judge(exercise, answer, seed=SEED, hidden=True)
            if here.hint_id in SEEN_WITHOUT_RUNNING:
                continue
            there = remote_verdict(session, exercise, number)
            right = [case.state is State.OK for case in there.cases]
            wanted = [bool(one.right) for one in here.tried]
            assert (there.hint_id, right) == (here.hint_id, wanted), answer.__name__
            if here.hint_id != "raises":  # that names a line, and lines are others there
                assert there.message == here.message, answer.__name__
    return len(answers)


def answers_to(exercise):
    listed = [one for mistake in exercise.mistakes for one in mistake.answers]
    return [*listed, *RIGHT[exercise.id], *(one for one, _ in STRAY[exercise.id])]


@pytest.mark.parametrize("exercise", SAMPLE, ids=lambda one: one.id)
def test_answers_of_some_exercises_get_the_same_verdict(forks, exercise):
    answers = answers_to(exercise)
    assert same_verdicts(forks, exercise, answers[:: max(1, len(answers) // 6)]) > 2


@pytest.mark.soak
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda one: one.id)
def test_every_answer_gets_the_same_verdict(forks, exercise):
    assert same_verdicts(forks, exercise, answers_to(exercise)) > 2
