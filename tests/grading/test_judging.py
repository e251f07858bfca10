"""Whole submissions: honest, messy, missing and broken ones, their points, states, hints and words."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.grading.bench import SEED, handed_in, homework, untimed
from ttutor.exercises import find
from ttutor.exercises.judge import judge
from ttutor.exercises.source import imports, solution_source, stub_source
from ttutor.grading.grader import Grader
from ttutor.grading.marks import SourceFile, State, Submission

IDS = ("attention.softmax", "encoder.lost_stream", "encoder.layer_norm", "positions.position_table")
TASKS = [find(one) for one in IDS]


@pytest.fixture(scope="module")
def grader(forks):
    """A grader of four exercises, two of which use the same function: one gives it, the other asks for it."""
    return Grader(homework(*IDS), forks)


def solved(*exercises, name="{}"):
    parts = [solution_source(one, name.format(one.name)) for one in exercises]
    return "\n".join([*imports(*exercises), *parts])


def notebook(*sources):
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    return json.dumps({"nbformat": 4, "metadata": {"x": {}}, "cells": cells})


def states(mark):
    return [one.state.value for one in mark.exercises]


def test_right_answers_get_all_points(grader):
    mark = grader.grade(handed_in(solved(*TASKS, name="my_{}")))
    assert mark.earned == mark.possible == 40.0
    assert states(mark) == ["ok"] * 4
    assert all(one.hint_id is None and one.warnings == () for one in mark.exercises)
    assert mark.sandbox == grader.sandbox.kind
    assert [one.exercise_id for one in mark.exercises] == list(IDS)


def test_the_same_twice_is_the_same(grader):
    text = solved(*TASKS[:2]) + "\ndef layer_norm(hidden, gain, bias, eps=1e-5):\n    return hidden * gain\n"
    assert untimed(grader.grade(handed_in(text))) == untimed(grader.grade(handed_in(text)))


def test_a_wrong_answer_gets_the_hint_of_check(grader):
    def softmax(scores, dim=-1):
        powers = (scores - scores.max()).exp()
        return powers / powers.sum()

    here = judge(TASKS[0], softmax, seed=SEED, hidden=True)
    text = (
        "def softmax(scores, dim=-1):\n    powers = (scores - scores.max()).exp()\n    return powers / powers.sum()\n"
    )
    there = grader.grade(handed_in(text)).exercises[0]
    assert (there.hint_id, there.message) == (here.hint_id, here.message)
    assert there.state is State.WRONG
    assert there.earned == pytest.approx(10 * here.points / here.points_possible)


def test_points_are_the_share_of_the_cases(grader):
    text = "import torch\n\ndef softmax(scores, dim=-1):\n    powers = (scores - scores.amax(-1, True)).exp()\n"
    mark = grader.grade(handed_in(text + "    return powers / powers.sum(-1, keepdim=True)\n")).exercises[0]
    right = [case for case in mark.cases if case.state is State.OK]
    assert 0 < len(right) < len(mark.cases)
    assert mark.earned == pytest.approx(10 * len(right) / len(mark.cases))
    assert all(case.earned == 0 for case in mark.cases if case.state is not State.OK)


def test_what_is_missing_untouched_or_broken_is_told_apart(grader):
    text = stub_source(TASKS[0]) + "\n" + "\n".join(imports(*TASKS))
    text += "\n\ndef layer_norm(hidden, gain:\n    return 1\n\n\ndef position_table(x):\n    return x\n"
    mark = grader.grade(handed_in(text))
    assert states(mark) == ["missing", "missing", "not_gradable", "missing"]
    assert [one.hint_id for one in mark.exercises] == ["not_started", None, None, None]
    assert mark.earned == 0
    assert any("does not parse" in note for note in mark.notes)


@pytest.mark.parametrize(
    ("text", "hint", "words"),
    [
        ("softmax = 3\n", "cannot_load", "I expected the function softmax"),
        ("def softmax():\n    return 1\n", "cannot_load", "too many positional arguments"),
        (
            "import torch\ndef softmax(scores, dim=-1):\n    return torch.softmax(scores, dim)\n",
            "shortcut",
            "`softmax`",
        ),
        ("def softmax(scores, dim=-1):\n    raise NotImplementedError\n", "not_started", "Not started"),
        ("import nowhere\n@nowhere.mark\ndef softmax(scores, dim=-1):\n    return scores\n", "cannot_load", "nowhere"),
        ("def softmax(scores, dim=-1):\n    return scores[99]\n", "raises", "IndexError"),
        (
            "def softmax(scores, dim=-1):\n    return scores - scores.max(dim)\n",
            "raises",
            "take `.values`, or use `amax`",
        ),
    ],
)
def test_every_way_to_fail_has_its_hint(grader, text, hint, words):
    mark = grader.grade(handed_in(text)).exercises[0]
    assert (mark.hint_id, mark.earned) == (hint, 0)
    assert words in mark.message


def test_an_exception_names_the_students_own_line(grader):
    text = notebook("import torch", "# a cell\n\ndef softmax(scores, dim=-1):\n    return scores[99]\n")
    mark = grader.grade(handed_in(text, "homework.ipynb")).exercises[0]
    assert "(line 4: `return scores[99]`)" in mark.message


def test_a_messy_notebook_gets_its_points(grader):
    cells = [
        "# Homework 1\n%matplotlib inline\n!pip install torch\nimport torch, os",
        "from ttutor.exercises import check\nfrom ttutor.widgets import something",
        "def broken(:\n    pass",
        stub_source(TASKS[0]),
        "x = torch.randn(3)\nsoftmax(x)\nwhile True: pass",
        solved(TASKS[0]),
        'check("attention.softmax", softmax)\nraise ValueError("never reached")',
        "%%bash\nrm -rf /",
        solved(TASKS[2]),
    ]
    mark = grader.grade(handed_in(notebook(*cells), "Copy of homework (1).ipynb"))
    assert states(mark) == ["ok", "missing", "ok", "missing"]
    assert mark.earned == 20


def test_a_module_with_trainings_and_prints_gets_its_points(grader):
    text = "import torch\nprint('hello')\n1 / 0\n" + solved(TASKS[0]) + "\nprint(softmax(torch.zeros(3)))\nexit()\n"
    mark = grader.grade(handed_in(text))
    assert mark.exercises[0].state is State.OK
    assert mark.notes == (), "nothing was run but what the answer needs"


def test_what_an_answer_needs_of_its_module_is_run(grader):
    table = "TABLE = {}\nfor name in ('max', 'sum'):\n    TABLE[name] = 1 / (name == 'max')\n"
    text = "import torch\n" + table + solved(TASKS[0]).replace("return", "TABLE['max']; return", 1)
    mark = grader.grade(handed_in(text))
    assert mark.exercises[0].state is State.OK, mark.exercises[0].message
    assert any("ZeroDivisionError" in note for note in mark.notes)


def test_the_last_file_counts_and_files_can_import_each_other_no_more_than_is_there(grader):
    files = (
        SourceFile("first.py", b"def softmax(scores, dim=-1):\n    return scores\n"),
        SourceFile("second.py", solved(TASKS[0]).encode()),
    )
    assert grader.grade(Submission(student="ada", files=files)).exercises[0].state is State.OK
    assert grader.grade(Submission(student="ada", files=files[::-1])).exercises[0].state is State.WRONG


def test_what_one_exercise_gives_is_not_there_where_another_asks_for_it(grader):
    text = "from ttutor.layers import layer_norm as given\n\ndef layer_norm(hidden, gain, bias, eps=1e-5):\n"
    mark = grader.grade(handed_in(text + "    return given(hidden, gain, bias, eps)\n"))
    assert mark.exercises[2].earned == 0


def test_hidden_cases_do_not_show_in_what_students_read(grader, monkeypatch):
    exercise = find("attention.softmax")
    hidden = tuple(replace(case, hidden=number != 0) for number, case in enumerate(exercise.cases))
    text = "def softmax(scores, dim=-1):\n    powers = (scores - scores.amax(-1, True)).exp()\n"
    text += "    return powers / powers.sum(-1, keepdim=True) if dim == -1 else scores[77]\n"
    monkeypatch.setattr(grader, "exercises", [replace(exercise, cases=hidden), *grader.exercises[1:]])
    mark = grader.grade(handed_in(text)).exercises[0]
    assert mark.hint_id == "raises"
    assert mark.message.startswith("In a check that runs at grading only: ")
    assert not [case.name for case in hidden[1:] if case.name in mark.message]
    assert [case.hidden for case in mark.cases] == [case.hidden for case in hidden]


def test_the_secret_chooses_the_inputs():
    one, other = (homework(IDS[0], seed=secret).inputs_seed for secret in ("one secret", "another secret"))
    assert one != other
    assert one == homework(IDS[1], seed="one secret").inputs_seed


def test_points_of_the_assignment_count(grader, monkeypatch):
    first, *others = grader.assignment.exercises
    asked = replace(grader.assignment, exercises=(replace(first, points=2.5), *others))
    monkeypatch.setattr(grader, "assignment", asked)
    mark = grader.grade(handed_in(solved(TASKS[0]))).exercises[0]
    assert (mark.earned, mark.possible) == (2.5, 2.5)


def test_a_mistake_of_the_grader_writes_no_mark(grader, monkeypatch):
    monkeypatch.setattr("ttutor.grading.grader.expectations", lambda *args: 1 / 0)
    mark = grader.grade(handed_in(solved(TASKS[0])))
    assert mark.state is State.GRADER_ERROR
    assert mark.exercises[0].state is State.GRADER_ERROR
    assert mark.exercises[0].earned == 0
    assert any("ZeroDivisionError" in note for note in mark.notes)


def test_what_cannot_be_compared_costs_its_exercise_and_not_the_run(grader, monkeypatch):
    monkeypatch.setattr("ttutor.grading.grader.verdict_on", lambda *args: 1 / 0)
    mark = grader.grade(handed_in(solved(TASKS[0])))
    assert mark.state is State.OK
    assert (mark.exercises[0].state, mark.exercises[0].earned) == (State.CRASH, 0)
    assert any("cannot be compared (ZeroDivisionError" in note for note in mark.notes)


TWO = ("attention.softmax", "attention.causal_attention", "attention.scaled_dot_product_attention")
CALLS = """
import torch

WIDE = -float("inf")

def my_softmax(scores, dim=-1):
    return {softmax}

def weights(scores):
    return my_softmax(scores, {dim})

def my_causal_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return weights(scores.masked_fill(later, WIDE)) @ value

def my_scaled_dot_product_attention(query, key, value, mask=None):
    return query * WIDE  # my_softmax is not called

print(my_softmax(WIDE))
"""


@pytest.mark.parametrize(
    ("softmax", "dim", "says"),
    [
        ("scores.exp() / scores.exp().sum()", -1, True),
        ("my_softmax(scores, dim)", -1, True),
        (
            "torch.exp(scores - scores.amax(dim, True)) / torch.exp(scores - scores.amax(dim, True)).sum(dim, True)",
            0,
            False,
        ),
    ],
    ids=["wrong", "raises", "right"],
)
def test_an_answer_that_calls_another_wrong_one_is_told_so(forks, softmax, dim, says) -> None:
    mark = Grader(homework(*TWO), forks).grade(handed_in(CALLS.format(softmax=softmax, dim=dim)))
    first, attention, alone = mark.exercises
    assert (attention.state is State.OK) is (alone.state is State.OK) is False
    assert (first.state is State.OK) is not says
    sentence = "It calls your `my_softmax`, which is not right: mend that first. What follows may come from there: "
    assert attention.message.startswith(sentence) is says, attention.message
    assert (attention.hint_id == "calls_a_wrong_one") is says  # and no misconception is counted
    assert "It calls" not in first.message + alone.message
