"""A submission's code at work: calls, exceptions, deadlines, deaths, gradients and functions across the pipe."""

from __future__ import annotations

import time
from functools import partial

import pytest
import torch

from tests.grading.bench import session_of
from ttutor.exercises import find
from ttutor.exercises.encoder import lost_stream
from ttutor.exercises.running import gradients_of
from ttutor.grading.bundle import sources_for
from ttutor.grading.grader import checked_looks
from ttutor.grading.student_error import StudentCodeFailed, exception_of, place_of
from ttutor.grading.worker.framing import Malformed

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
def detached(x): return x.detach() * 2
"""
STEPS = """
def steps(kind, x):
    weight = torch.nn.Parameter(x.clone())
    optimiser = getattr(torch.optim, kind)([weight], lr=0.5)
    optimiser.zero_grad()
    weight.square().sum().backward()
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    optimiser.step()
    return weight.detach()
"""


@pytest.fixture(scope="module")
def session(forks):
    """The code above, one definition after the other."""
    sources = sources_for(find("encoder.lost_stream"))
    with session_of(forks, [*CODE.splitlines(), STEPS], sources, seconds_per_call=4.0) as opened:
        yield opened


def run(session, name, *inputs, seed=0):
    header = {"do": "observe", "file": 0, "name": name, "observe": None, "seed": seed, "grad": True}
    session.enter(None, session.definition(name))
    came = session.run(header, inputs, ("value", "inputs"))
    return came["value"], came["inputs"]


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
    with pytest.raises(StudentCodeFailed) as caught:
        run(session, "hangs", 1)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < 60
    assert run(session, "double", 4)[0] == 8


def test_a_death_costs_one_call(session):
    with pytest.raises(StudentCodeFailed) as caught:
        run(session, "dies", 1)
    assert caught.value.kind == "crash"
    assert run(session, "double", 4)[0] == 8


def test_a_definition_that_hangs_is_left_out_when_the_code_is_loaded_again(forks):
    lines = ["import os, time", "x = 1", "time.sleep(1000)", "os._exit(3)", "1 / 0", "def f(y): return x + y"]
    with session_of(forks, lines, seconds_per_call=3.0) as opened:
        assert run(opened, "f", 2)[0] == 3
    assert opened.notes == [
        "work.py, line 3 was left out: your code was still running after 3 s",
        "work.py, line 4 was left out: your code ended the process that ran it",
        "work.py, line 5 was left out: ZeroDivisionError: division by zero",
    ]


def test_a_submission_has_a_deadline_of_its_own(forks):
    with session_of(forks, CODE.splitlines(), seconds=2.0) as opened:
        for _ in range(2):
            with pytest.raises(StudentCodeFailed, match="whole submission"):
                run(opened, "hangs", 1)


def test_functions_of_the_course_travel_as_source(session):
    assert run(session, "twice", partial(lost_stream._ramp, 0.5), torch.ones(1, 3))[0].shape == (1, 3)
    with pytest.raises(TypeError, match="stands inside a function"):
        run(session, "twice", lambda x: x, 1)


def test_gradients_come_back_as_values(session):
    x = torch.randn(3, dtype=torch.float64)
    softmax = find("attention.softmax")
    (gradient,) = session.answer("double").gradients(softmax, softmax.cases[0], (x,), 0)
    (expected,) = gradients_of(lambda y: 2 * y, (x,))
    assert torch.equal(gradient, expected)
    assert session.answer("detached").gradients(softmax, softmax.cases[0], (x,), 0) is None


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_optimisers_step_in_a_worker_as_they_do_here(session, kind):
    space = {"torch": torch}
    exec(STEPS, space)
    x = torch.tensor([1.0, -2.0])
    assert torch.equal(run(session, "steps", kind, x)[0], space["steps"](kind, x))


def test_every_call_runs_in_the_same_state(session):
    assert run(session, "settings", 1)[0] == [True, True, 1]
    first, _ = run(session, "draws", 1, seed=5)
    assert torch.equal(first, torch.randn(3, generator=torch.Generator().manual_seed(5)))
    assert not torch.equal(first, run(session, "draws", 1, seed=6)[0])


def test_a_name_that_is_not_there_is_a_lookup_error(session):
    with pytest.raises(LookupError):
        session.see(session.definition("nothing"), 2)


def test_what_can_be_seen_of_an_answer(session):
    seen = session.see(session.definition("twice"), 1)
    assert seen == {
        "type": "function",
        "class": False,
        "callable": True,
        "unbound": "missing a required argument: 'x'",
    }


LOOKS = {"type": "function", "class": False, "callable": True, "unbound": None}


@pytest.mark.parametrize(
    "came", [None, [], {"type": "x"}, LOOKS | {"class": 1}, LOOKS | {"unbound": 3}, LOOKS | {"x": 1}]
)
def test_what_is_no_look_is_refused(came):
    assert checked_looks(LOOKS) == LOOKS
    with pytest.raises(Malformed):
        checked_looks(came)


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


@pytest.mark.parametrize(
    "name", ["KeyboardInterrupt", "GeneratorExit", "Malformed", "StudentCodeFailed", "no name", "__class__"]
)
def test_no_exception_gains_power_by_its_name(name):
    error = exception_of({"type": name, "text": "x"})
    assert isinstance(error, Exception)
    assert type(error).__module__ == "ttutor.grading.student_error"
    assert not isinstance(error, (Malformed, StudentCodeFailed))


@pytest.mark.parametrize("name", ["IndexError", "RuntimeError", "TypeError", "NotImplementedError", "EinopsError"])
def test_known_exceptions_have_their_own_type(name):
    error = exception_of({"type": name, "text": "what it says"})
    assert type(error).__name__ == name
    assert str(error) == "what it says"
    assert not type(error).__module__.startswith("ttutor")
