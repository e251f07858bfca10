"""Exercises of an instructor's own, graded: a mistake in how one is written costs the instructor, and no student."""

from __future__ import annotations

import sys

import pytest

from tests.exercises.test_own import MINE
from tests.grading.bench import handed_in, homework
from ttutor.exercises import registry
from ttutor.exercises.registry import add_folder
from ttutor.exercises.verify import problems_of
from ttutor.grading.bundle import cut
from ttutor.grading.grader import Grader
from ttutor.grading.marks import State

RIGHT = "def twice(values, *others):\n    return values + values\n"
SEEN = "\ndef seen(answer, *given):\n    return answer(*given)\n"
START = "exercise = Exercise(\n"


def mine(observe: str = "", handed: str = "", before: str = "", after: str = "") -> str:
    """The exercise, observed by something, with something else among its inputs."""
    text = MINE.replace("(values):", "(values, *others):").replace(
        "generator=random),)", f"generator=random), {handed})"
    )
    return text.replace(START, f"{before}\n\n{START}{f'observe={observe},' if observe else ''}") + after


@pytest.fixture
def added(tmp_path):
    """Adds an exercise, which is forgotten afterwards."""

    def add(text: str):
        (tmp_path / "mine.py").write_text(text)
        return add_folder(tmp_path)[0]

    yield add
    registry._own.clear()
    cut.cache_clear()  # which goes by names
    sys.modules.pop("ttutor.exercises.own.mine", None)


def graded(sandbox):
    """The mark of a right answer."""
    return Grader(homework("attention.twice"), sandbox).grade(handed_in(RIGHT))


@pytest.mark.parametrize(
    "given",
    [
        {"observe": "seen", "before": SEEN},
        {"observe": "seen", "before": SEEN, "handed": "seen"},
        {"handed": "torch.nn.functional.tanh"},
    ],
    ids=["observe", "among the inputs", "one of PyTorch's"],
)
def test_functions_that_have_names_are_found(added, forks, given) -> None:
    assert problems_of(added(mine(**given))) == []
    mark = graded(forks)
    assert (mark.state, mark.earned) == (State.OK, 10), mark.notes


NESTED = "def made():\n    def seen(answer, *given):\n        return answer(*given)\n    return seen\n"
OBJECT = "class Sees:\n    def __call__(self, answer, *given):\n        return answer(*given)\n"
LOOKS = SEEN.replace("*given)", "*given, name=vars()['tw' + 'ice'])", 1)
BELOW_IF = "if torch:\n    def seen(answer, *given):\n        return answer(*given)\n"
HANDS = "\n@exercise.must_hold('So.', always=True)\ndef holds(trial):\n    trial.run(trial.inputs[0], lambda: 0)\n"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"observe": "lambda answer, *given: answer(*given)"}, "observe is <lambda>, which cannot be found"),
        ({"observe": "made()", "before": NESTED}, "observe is seen, which cannot be found"),
        ({"observe": "Sees()", "before": OBJECT}, "observe is Sees, which cannot be found"),
        ({"handed": "lambda x: x"}, "an input is <lambda>, which cannot be found"),
    ],
    ids=["a lambda", "a nested one", "an object", "a lambda among the inputs"],
)
def test_functions_without_names_are_refused_and_cost_no_student_a_mark(added, forks, given, says) -> None:
    exercise = added(mine(**given))
    found = problems_of(exercise)
    assert says in found[0]
    assert "write a function with `def` at the file's top level, since answers run in another process" in found[0]
    mark = graded(forks)
    assert mark.state is mark.exercises[0].state is State.GRADER_ERROR
    assert says in mark.exercises[0].message


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"observe": "seen", "before": BELOW_IF}, "own.mine.seen is not defined at the top level of its file"),
        ({"observe": "seen", "before": LOOKS}, "a worker does not get ready"),
        ({"after": HANDS}, "hands over what no worker can find"),
    ],
    ids=["below an if", "what is not followed", "by a property"],
)
def test_whatever_a_worker_lacks_is_the_graders_mistake(added, forks, given, says) -> None:
    added(mine(**given))
    mark = graded(forks)
    assert mark.state is State.GRADER_ERROR
    assert says in mark.exercises[0].message
