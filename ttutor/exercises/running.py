"""Running an answer on one case: fresh inputs, a seeded random state that is put back, and all that can be seen.

A student's code is expected to raise: what it raises is caught here, kept, and reported.
"""

from __future__ import annotations

import hashlib
import inspect
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise, Finding, Property, Trial
from ttutor.exercises.forbidden import without
from ttutor.exercises.values import check_comparable, differences, same


@dataclass(frozen=True)
class Observed:
    """What came of one run: the value, and the inputs as they are afterwards."""

    value: Any
    inputs: tuple[Any, ...]


@runtime_checkable
class Elsewhere(Protocol):
    """An answer that runs in another process, as the grader has them."""

    def observe(self, exercise: Exercise, case: Case, inputs: tuple[Any, ...], seed: int) -> Observed:
        """Run it as `Exercise.observe` does, where a case of that kind may run: hidden ones run apart."""
        ...

    def gradients(
        self, exercise: Exercise, case: Case, inputs: tuple[Any, ...], seed: int
    ) -> list[Tensor | None] | None:
        """Run it, and return what `gradients_of` does."""
        ...


class AnswerRaised(Exception):
    """What an answer raised when a property ran it on other inputs; carries the exception as its cause."""


@dataclass(frozen=True)
class Outcome:
    """What came of an answer on one case.

    Args:
        value: what it gave, if it raised nothing.
        error: what it raised, if anything.
        changed: names of the inputs that are no longer as they were handed over.
        broken: the first property, of those that are always tried, that does not hold although the value is right.
        finding: what that property saw.
        right: whether there is nothing to complain of.
    """

    value: Any = None
    error: BaseException | None = None
    changed: tuple[str, ...] = ()
    broken: Property | None = None
    finding: Finding | None = None
    right: bool = False


def outcome(
    exercise: Exercise, case: Case, answer: Any, expected: Any, seed: int, *, forbids: tuple[str, ...] = ()
) -> Outcome:
    """Try an answer on a case, without the forbidden functions, and compare what it gives with what is expected."""
    try:
        value, changed = _run(exercise, case, answer, seed, forbids)
    except (Exception, SystemExit) as error:
        return Outcome(error=error)
    if differences(expected, value, exercise.tolerance(case)):
        return Outcome(value=value, changed=changed)
    for prop in exercise.properties:
        if prop.always and (finding := look(prop, trial(exercise, case, answer, value, seed))) is not None:
            return Outcome(value=value, changed=changed, broken=prop, finding=finding)
    return Outcome(value=value, changed=changed, right=not changed)


def expectation(exercise: Exercise, case: Case, seed: int) -> Any:
    """Return what the reference gives for a case."""
    value, _ = _run(exercise, case, exercise.reference, seed, ())
    check_comparable(value)
    return value


def agree(known: Outcome, came: Outcome, rtol: float) -> bool:
    """Return whether two outcomes cannot be told apart, exceptions by their type alone."""
    if known.error is not None or came.error is not None:
        return type(known.error) is type(came.error)
    if known.right or came.right:  # one that is right by a hair is not like one that is wrong by a hair
        return known.right and came.right
    if (known.changed, known.broken) != (came.changed, came.broken):
        return False
    if known.finding is not None and came.finding is not None:  # a property can break in more than one way
        return known.finding.text == came.finding.text
    return same(known.value, came.value, rtol)


def say_the_same(known: Outcome, came: Outcome) -> bool:
    """Return whether two exceptions say the same, addresses of objects aside."""
    one, other = (re.sub(r"0x[0-9a-f]+", "", str(each.error)) for each in (known, came))
    return one == other


def trial(exercise: Exercise, case: Case, answer: Callable[..., Any] | Elsewhere, value: Any, seed: int) -> Trial:
    """Return what a property may look at."""

    chosen = number("answer", exercise, case, seed)

    def run(*inputs: Any) -> Any:
        try:
            seen = _observe(exercise, case, answer, inputs, chosen, ())
        except (Exception, SystemExit) as error:
            raise AnswerRaised(f"{type(error).__name__}: {error}") from error
        return viewed(exercise, seen.value, inputs)

    def gradients(*inputs: Any) -> list[Tensor | None] | None:
        try:
            return _gradients(exercise, case, answer, inputs, chosen)
        except RuntimeError:  # PyTorch's, on the way back: `look` says so
            raise
        except (Exception, SystemExit) as error:
            raise AnswerRaised(f"{type(error).__name__}: {error}") from error

    return Trial(run=run, inputs=make_inputs(exercise, case, seed), value=value, gradients=gradients)


def viewed(exercise: Exercise, value: Any, inputs: tuple[Any, ...]) -> Any:
    """Return what is compared of a value: see `Exercise.view`. One that cannot be looked at is compared as it is."""
    if exercise.view is None:
        return value
    try:
        return exercise.view(value, *inputs)
    except Exception:  # whatever a student's code gives: the comparison says what was expected in its place
        return value


def gradients_of(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor | None] | None:
    """Return the gradient of one weighted sum of all outputs for each input, None for those that take none.

    None instead of the list where the result has no history.
    """
    with torch.enable_grad():
        leaves = [_leaf(part) for part in inputs]
        # The function gets copies, so that one that edits its input meets no complaint about leaves.
        output = function(*(leaf.clone() if _takes_gradient(leaf) else leaf for leaf in leaves))
        if not (isinstance(output, Tensor) and output.requires_grad):
            return None
        weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        wanted = [leaf for leaf in leaves if _takes_gradient(leaf)]
        found = iter(torch.autograd.grad((output * weights).sum(), wanted, allow_unused=True))
    return [next(found) if _takes_gradient(leaf) else None for leaf in leaves]


def _leaf(part: Any) -> Any:
    return part.detach().clone().requires_grad_() if _takes_gradient(part) else part


def _takes_gradient(part: Any) -> bool:
    return isinstance(part, Tensor) and part.is_floating_point()


def _observe(
    exercise: Exercise, case: Case, answer: Any, inputs: tuple[Any, ...], seed: int, forbids: tuple[str, ...]
) -> Observed:
    """Run an answer, here or elsewhere; what runs elsewhere is without forbidden functions from the beginning."""
    if isinstance(answer, Elsewhere):
        return answer.observe(exercise, case, inputs, seed)
    _seed_all(seed)
    with without(forbids):
        return Observed(exercise.observe(answer, *inputs), inputs)


def _gradients(
    exercise: Exercise, case: Case, answer: Any, inputs: tuple[Any, ...], seed: int
) -> list[Tensor | None] | None:
    if isinstance(answer, Elsewhere):
        return answer.gradients(exercise, case, inputs, seed)
    _seed_all(seed)
    return gradients_of(lambda *given: exercise.observe(answer, *given), inputs)


def look(prop: Property, one: Trial) -> Finding | None:
    """Return what a property saw, or None where it holds."""
    try:
        with settled():
            saw = prop.broken(one)
    except AnswerRaised as raised:
        saw = f"With other inputs of the same kind your code raises {raised}."
    except RuntimeError as error:  # PyTorch's, on the way back through what the answer gave
        saw = f"Going back through your result, PyTorch raises: {str(error).partition('. ')[0]}."
    except Exception as error:  # a value that no honest answer gives
        saw = f"What you give cannot be looked at: {type(error).__name__}."
    return Finding(saw) if isinstance(saw, str) else saw


@contextmanager
def settled() -> Iterator[None]:
    """Run in a settled state: float32 on the CPU, gradients on; afterwards that and all randomness are back."""
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    dtype, device = torch.get_default_dtype(), torch.empty(0).device  # PyTorch 2.9 cannot be asked after a reset
    try:
        torch.set_default_dtype(torch.float32)
        with nullcontext() if device.type == "cpu" else torch.device("cpu"), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(dtype)
        if torch.empty(0).device != device:
            torch.set_default_device(device)
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        np.random.set_state(states[2])  # noqa: NPY002


def input_names(exercise: Exercise, count: int) -> list[str]:
    """Return what to call a case's inputs: the stub's parameters where it takes them, else their numbers."""
    names = [] if isinstance(exercise.stub, type) else list(inspect.signature(inspect.unwrap(exercise.stub)).parameters)
    return names[:count] if len(names) >= count else [f"input {number + 1}" for number in range(count)]


def _run(
    exercise: Exercise, case: Case, answer: Any, seed: int, forbids: tuple[str, ...]
) -> tuple[Any, tuple[str, ...]]:
    """Return an answer's value and the names of the inputs that it changed."""
    given, untouched = make_inputs(exercise, case, seed), make_inputs(exercise, case, seed)
    with settled():
        seen = _observe(exercise, case, answer, given, number("answer", exercise, case, seed), forbids)
        value = viewed(exercise, seen.value, make_inputs(exercise, case, seed))
    names = input_names(exercise, len(given))
    pairs = zip(names, untouched, seen.inputs, strict=True)
    return value, tuple(name for name, before, after in pairs if not _untouched(before, after))


def _untouched(before: Any, after: Any) -> bool:
    """Return whether an input is as it was, bit by bit; objects other than tensors and containers are not compared."""
    if callable(before):  # a function is not compared
        return True
    if type(before) is not type(after):
        return False
    if isinstance(before, Tensor):
        alike = before.shape == after.shape and before.dtype == after.dtype
        return alike and bool(((before == after) | ((before != before) & (after != after))).all())
    if isinstance(before, dict):
        return list(before) == list(after) and all(_untouched(before[key], after[key]) for key in before)
    if isinstance(before, (tuple, list)):
        return len(before) == len(after) and all(map(_untouched, before, after))
    return not isinstance(before, (str, int, float)) or before == after


def make_inputs(exercise: Exercise, case: Case, seed: int) -> tuple[Any, ...]:
    """Make a case's inputs anew: the same for the same seed, other ones for every case."""
    with settled():
        return case.inputs(torch.Generator().manual_seed(number("inputs", exercise, case, seed)))


def number(purpose: str, exercise: Exercise, case: Case, seed: int) -> int:
    """A seed for one purpose: an answer that draws must not draw its own inputs once more."""
    digest = hashlib.sha256(f"{purpose}/{exercise.id}/{case.name}/{seed}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def _seed_all(number: int) -> None:
    """Seed what an answer may draw from; only the CPU's generator, so that nothing wakes an accelerator."""
    torch.default_generator.manual_seed(number)
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002
