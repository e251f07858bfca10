"""A submission's code at work: calls, exceptions, deadlines, deaths, gradients and functions across the pipe."""

from __future__ import annotations

import time

import pytest
import torch

from tests.judge.bench import MEMORY
from ttutor.grading.channel import Malformed
from ttutor.grading.raised import Trouble, exception_of, place_of
from ttutor.grading.reading import FileRead, Piece
from ttutor.grading.remote_tensors import write_back
from ttutor.grading.session import Limits, Session, Target

CODE = """
import torch
import time
import os

def double(x): return x * 2
def shift(x): x += 1; return x
def fails(x): return x[len(x) + 1]
def names(x): raise KeyError("key")
def hangs(x): time.sleep(1000)
def dies(x): os._exit(0)
def twice(f, x): return f(f(x))
def grows(xs): xs.append(xs[0]); xs[0] = 9.0; return len(xs)
def settings(x): return [torch.get_default_dtype() == torch.float32, torch.is_grad_enabled(), torch.get_num_threads()]
def draws(x): return torch.randn(3)
"""


@pytest.fixture
def session(lane):
    """The code above, one definition after the other, with three seconds for each call."""
    pieces = tuple(Piece("work.py", line, n) for n, line in enumerate(CODE.splitlines()[1:], 2) if line)
    opened = Session(lane, [FileRead(pieces=pieces)], {}, Limits(3.0, 60.0, MEMORY))
    yield opened
    opened.close()


def run(session, name, *inputs):
    return session.observe(Target(0, name, None), inputs)


def test_values_come_back_and_inputs_with_them(session):
    x = torch.arange(6.0).reshape(2, 3)
    value, after = run(session, "double", x)
    assert torch.equal(value, 2 * x)
    assert torch.equal(after[0], x)
    value, after = run(session, "shift", x)
    assert torch.equal(after[0], x + 1)
    assert torch.equal(x, torch.arange(6.0).reshape(2, 3))


def test_exceptions_come_with_type_text_and_place(session):
    with pytest.raises(IndexError, match="index 4 is out of bounds") as caught:
        run(session, "fails", torch.zeros(3))
    place = place_of(caught.value)
    assert (place.where, place.line, place.code) == ("work.py", 8, "def fails(x): return x[len(x) + 1]")
    with pytest.raises(KeyError) as caught:
        run(session, "names", 1)
    assert str(caught.value) == "'key'"


def test_a_hang_costs_one_call(session):
    started = time.monotonic()
    with pytest.raises(Trouble) as caught:
        run(session, "hangs", 1)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < 10
    assert run(session, "double", 4)[0] == 8


def test_a_death_costs_one_call(session):
    with pytest.raises(Trouble) as caught:
        run(session, "dies", 1)
    assert caught.value.kind == "crash"
    assert run(session, "double", 4)[0] == 8


def test_a_definition_that_hangs_is_left_out_when_the_code_is_loaded_again(lane):
    lines = ["import os, time", "x = 1", "time.sleep(1000)", "os._exit(3)", "1 / 0", "def f(y): return x + y"]
    pieces = tuple(Piece("work.py", line, number) for number, line in enumerate(lines, 1))
    opened = Session(lane, [FileRead(pieces=pieces)], {}, Limits(0.5, 60.0, MEMORY))
    try:
        assert run(opened, "f", 2)[0] == 3
    finally:
        opened.close()
    assert opened.notes == [
        "work.py, line 3 was left out: your code was still running after 0.5 s",
        "work.py, line 4 was left out: your code ended the process that ran it",
        "work.py, line 5 was left out: ZeroDivisionError: division by zero",
    ]


def test_a_submission_has_a_deadline_of_its_own(lane):
    pieces = tuple(Piece("work.py", line, n) for n, line in enumerate(CODE.splitlines()[1:], 2) if line)
    opened = Session(lane, [FileRead(pieces=pieces)], {}, Limits(5.0, 0.6, MEMORY))
    for _ in range(2):
        with pytest.raises(Trouble, match="whole submission"):
            run(opened, "hangs", 1)
    opened.close()


def test_functions_of_ours_can_be_called_there(session):
    seen = []

    def half(x):
        seen.append(x)
        return x / 2

    value, _ = run(session, "twice", half, torch.tensor([8.0]))
    assert torch.equal(value, torch.tensor([2.0]))
    assert [one.item() for one in seen] == [8.0, 4.0]
    with pytest.raises(ValueError, match="no such thing"):
        run(session, "twice", lambda x: (_ for _ in ()).throw(ValueError("no such thing")), 1)


def test_gradients_go_there_and_back(session):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    value, _ = run(session, "double", x)
    (gradient,) = torch.autograd.grad((value * torch.tensor([1.0, 2.0, 3.0])).sum(), x)
    assert gradient.tolist() == [2.0, 4.0, 6.0]
    value, _ = run(session, "twice", lambda y: y * y, x)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    assert torch.allclose(gradient, 4 * x.detach() ** 3)


def test_lists_change_here_as_there(session):
    given = [torch.ones(2), 2.0]
    _, after = run(session, "grows", given)
    write_back([given], after)
    assert given[0] == 9.0
    assert len(given) == 3


def test_every_call_runs_in_the_same_state(session):
    assert run(session, "settings", 1)[0] == [True, True, 1]
    torch.manual_seed(5)
    first, _ = run(session, "draws", 1)
    assert torch.equal(first, torch.randn(3))
    assert not torch.equal(first, run(session, "draws", torch.manual_seed(6) and 1)[0])


def test_a_name_that_is_not_there_is_a_lookup_error(session):
    with pytest.raises(LookupError):
        session.see(Target(0, "nothing", None))


def test_what_can_be_seen_of_an_answer(session):
    seen = session.see(Target(0, "twice", None))
    assert seen == {
        "type": "function",
        "class": False,
        "callable": True,
        "parameters": [["f", 1, False], ["x", 1, False]],
    }


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {"type": "ValueError"},
        {"type": 1, "text": "x"},
        {"type": "x" * 100, "text": "x"},
        {"type": "ValueError", "text": "x", "line": "1", "where": "", "code": ""},
        {"type": "ValueError", "text": "x", "line": 1},
        {"type": "ValueError", "text": "x", "more": 1},
    ],
)
def test_what_is_no_exception_is_refused(told):
    with pytest.raises(Malformed):
        exception_of(told)


@pytest.mark.parametrize("name", ["KeyboardInterrupt", "GeneratorExit", "Malformed", "Trouble", "no name", "__class__"])
def test_no_exception_gains_power_by_its_name(name):
    error = exception_of({"type": name, "text": "x"})
    assert isinstance(error, Exception)
    assert type(error).__module__ == "ttutor.grading.raised"
    assert not isinstance(error, (Malformed, Trouble))


@pytest.mark.parametrize("name", ["IndexError", "RuntimeError", "TypeError", "NotImplementedError", "EinopsError"])
def test_known_exceptions_have_their_own_type(name):
    error = exception_of({"type": name, "text": "what it says"})
    assert type(error).__name__ == name
    assert str(error) == "what it says"
    assert not type(error).__module__.startswith("ttutor")
