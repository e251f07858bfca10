"""Whether two values are the same and, if not, in what way: type, shape, numbers that are no numbers, or numbers.

A value is a tensor, a number, a string, a bool, None, or a tuple, list or dict of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["Difference", "check_comparable", "describe", "differences", "place_of_largest", "same"]

NUMBERS = (bool, int, float)


@dataclass(frozen=True)
class Difference:
    """One way in which a value is not what it should be.

    Args:
        kind: ``type``, ``shape``, ``dtype``, ``non_finite`` or ``value``; `differences` gives the worst first.
        text: what was expected and what came, as a clause that follows "your result".
    """

    kind: str
    text: str


SEVERITY = ("type", "shape", "dtype", "non_finite", "value")


def same(expected: Any, came: Any, rtol: float) -> bool:
    """Return whether two values are equal as far as floating-point arithmetic lets one ask.

    >>> same(torch.tensor([1.0, 1000.0]), torch.tensor([1.001, 1000.0]), rtol=1e-5)
    True
    """
    return not differences(expected, came, rtol)


def differences(expected: Any, came: Any, rtol: float) -> list[Difference]:
    """Return every way in which a value differs from the expected one, the worst first.

    Two numbers are the same where they differ by at most ``rtol`` times the expected one plus the largest of its
    tensor: what is small beside the rest is compared by the size of the rest, and a tensor of learning rates near 1e-7
    by 1e-7. Infinities must be equal. Everything that is not a floating-point number must be exactly equal.
    """
    return sorted(_differences(expected, came, rtol, ""), key=lambda found: SEVERITY.index(found.kind))


def _differences(expected: Any, came: Any, rtol: float, where: str) -> Iterator[Difference]:
    if isinstance(expected, (tuple, list)):
        yield from _sequence(expected, came, rtol, where)
    elif isinstance(expected, dict):
        yield from _mapping(expected, came, rtol, where)
    elif isinstance(expected, Tensor):
        yield from _tensor(expected, came, rtol, where)
    elif expected is None or isinstance(expected, (str, *NUMBERS)):
        yield from _plain(expected, came, rtol, where)
    elif type(came) is not type(expected):
        yield Difference("type", f"{where}should be {describe(expected)}, but came as {describe(came)}")


def check_comparable(value: Any) -> None:
    """Check that a value is one that can be compared.

    Raises:
        TypeError: it is, or holds, something else.
    """
    if isinstance(value, (tuple, list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            check_comparable(part)
    elif value is not None and type(value) is not Tensor and not isinstance(value, (str, *NUMBERS)):
        raise TypeError(
            f"an exercise must give plain tensors, numbers, strings or containers of these, but its reference gave "
            f"{describe(value)}; let Exercise.observe return what can be compared of it"
        )


def _sequence(expected: tuple | list, came: Any, rtol: float, where: str) -> Iterator[Difference]:
    if not isinstance(came, (tuple, list)) or len(came) != len(expected):
        kind = "value" if isinstance(expected, list) and isinstance(came, (tuple, list)) else "type"  # a list may grow
        yield Difference(kind, f"{where}should be {len(expected)} values, but came as {describe(came)}")
        return
    for index, (one, other) in enumerate(zip(expected, came, strict=True), start=1):
        yield from _differences(one, other, rtol, f"{where}(part {index} of {len(expected)}) ")


def _mapping(expected: dict, came: Any, rtol: float, where: str) -> Iterator[Difference]:
    if not isinstance(came, dict):
        yield Difference("type", f"{where}should be a dict, but came as {describe(came)}")
        return
    if list(expected) != list(came) and set(expected) != set(came):
        wanted, given = ", ".join(map(str, expected)), ", ".join(map(str, came))
        yield Difference("type", f"{where}should have the keys {wanted}, but has {given or 'none'}")
        return
    for key, one in expected.items():
        yield from _differences(one, came[key], rtol, f"{where}({key}) ")


def _plain(expected: Any, came: Any, rtol: float, where: str) -> Iterator[Difference]:
    if isinstance(came, Tensor) and came.ndim == 0 and isinstance(expected, NUMBERS) and came.device.type != "meta":
        came = came.item()
    kinds = (int, float) if isinstance(expected, float) else (type(expected),)
    if not isinstance(came, kinds) or isinstance(came, bool) != isinstance(expected, bool):
        yield Difference("type", f"{where}should be {_kind(expected)}, but came as {describe(came)}")
    elif isinstance(expected, float):
        if math.isfinite(expected) and not math.isfinite(came):
            yield Difference("non_finite", f"{where}is {came}")
        elif not _close_numbers(expected, came, rtol):
            yield Difference("value", f"{where}is {came:.6g}, and it should not be")
    elif expected != came:
        yield Difference("value", f"{where}is {came!r}, and it should not be")


def _close_numbers(expected: float, came: float, rtol: float) -> bool:
    if math.isnan(expected) or math.isnan(came):
        return math.isnan(expected) and math.isnan(came)
    return expected == came or abs(expected - came) <= rtol * abs(expected)


def _tensor(expected: Tensor, came: Any, rtol: float, where: str) -> Iterator[Difference]:
    if type(came) is not type(expected):
        yield Difference("type", f"{where}should be a plain torch.Tensor, but came as {describe(came)}")
    elif came.shape != expected.shape:
        yield Difference("shape", f"{where}should have shape {tuple(expected.shape)}, but came as {tuple(came.shape)}")
    elif came.dtype != expected.dtype or came.device != expected.device or came.layout != expected.layout:
        wanted, given = (_make(tensor, expected, came) for tensor in (expected, came))
        yield Difference("dtype", f"{where}should be {wanted}, but came as {given}")
    elif expected.is_complex():
        yield from _floating(torch.view_as_real(expected.detach()), torch.view_as_real(came.detach()), rtol, where)
    elif expected.is_floating_point():
        yield from _floating(expected.detach(), came.detach(), rtol, where)
    elif not torch.equal(expected, came):
        wrong = expected != came
        kind = "the other way round" if expected.dtype == torch.bool else "not what they should be"
        yield Difference("value", f"{where}has {_some(wrong)} entries that are {kind}, the first at {_first(wrong)}")


def _make(tensor: Tensor, *both: Tensor) -> str:
    names = ("dtype", "device", "layout")
    return ", ".join(str(getattr(tensor, name)) for name in names if len({getattr(each, name) for each in both}) > 1)


def _floating(expected: Tensor, came: Tensor, rtol: float, where: str) -> Iterator[Difference]:
    lost = ~came.isfinite() & expected.isfinite()
    if lost.any():
        kinds = " and ".join(
            name for name, here in (("NaN", came.isnan()), ("infinite", came.isinf())) if (here & lost).any()
        )
        yield Difference(
            "non_finite", f"{where}has {_some(lost)} entries that are {kinds}, the first at {_first(lost)}"
        )
        return
    alike = (expected == came) | (expected.isnan() & came.isnan())
    finite = expected.isfinite() & came.isfinite()
    gap = (expected.double() - came.double()).abs().where(finite, 0.0)
    size = expected.double().abs().where(expected.isfinite(), 0.0)
    largest = size.amax() if size.numel() else 0.0
    wrong = ~alike & ~(finite & (gap <= rtol * (size + largest)))
    if wrong.any():
        if (wrong & finite).any():
            place = place_of_largest(gap.where(wrong, -1.0))
            by = f"differs by up to {gap[place].item():.3g}, at {place or 'its only entry'}"
        else:
            by = f"is finite where it should be infinite, or the other way round, at {_first(wrong)}"
        yield Difference("value", f"{where}{by}; {_some(wrong)} entries differ")


def place_of_largest(values: Tensor) -> tuple[int, ...]:
    """Where the largest entry stands: one number for each axis.

    It is NumPy that counts: `torch.unravel_index` loads SymPy, which takes longer than all the rest of a `check`.

    >>> place_of_largest(torch.tensor([[0.1, 0.3], [0.7, 0.2]]))
    (1, 0)
    """
    return tuple(map(int, np.unravel_index(int(values.argmax()), values.shape)))


def _some(wrong: Tensor) -> str:
    return f"{int(wrong.sum())} of {wrong.numel()}"


def _first(wrong: Tensor) -> str:
    first = tuple(wrong.nonzero()[0].tolist())
    return str(first) if first else "its only entry"


def _kind(value: Any) -> str:
    return {bool: "True or False", int: "a whole number", float: "a number", str: "a string"}.get(type(value), "None")


def describe(value: Any) -> str:
    """Return a few words for what somebody handed over.

    >>> describe(torch.zeros(2, 3)), describe(None), describe((1, 2))
    ('a tensor of shape (2, 3)', 'None (does it `return` something?)', 'a tuple of 2')
    """
    if value is None:
        return "None (does it `return` something?)"
    if isinstance(value, Tensor):
        kind = "a tensor" if type(value) is Tensor else f"a {type(value).__name__}"
        return f"{kind} of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{type(value).__name__} {value!r}" if isinstance(value, (str, *NUMBERS)) else f"a {type(value).__name__}"
