"""What can be seen of a module or a step, as facts in words: the values that `Exercise.observe` gives for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ttutor.exercises.exercise import Property, Trial

__all__ = ["fact", "gradients", "numbers_in", "traced", "trainable_numbers_in"]


def fact(key: str, expected: Any, says: str, *, id: str) -> Property:
    """One fact that every right answer shows.

    Args:
        key: the fact's name in the dict that the exercise observes.
        expected: what is observed of a right answer, or a function that says it for a case's inputs.
        says: what should be so, and what to look at.
        id: the hint's id.
    """

    def broken(trial: Trial) -> str | None:
        came = trial.value[key]
        wanted = expected(*trial.inputs) if callable(expected) else expected
        return None if came == wanted else f"Seen in your code: {key}: {_in_words(came)}."

    return Property(id=id, says=says, broken=broken)


@contextmanager
def traced(*inputs: Tensor) -> Iterator[tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]:
    """Hand inputs to an answer such that gradients can be asked for, and that writing into them is seen.

    An answer must not get a leaf of the graph: torch forbids to write into one, with a message that helps nobody. So it
    gets what was computed from the leaf, and what it writes there is written back into the inputs for the judge.

    Yields:
        The leaves, and what to hand over.
    """
    leaves = tuple(tensor.detach().clone().requires_grad_() for tensor in inputs)
    handed = tuple(leaf * 1 for leaf in leaves)
    yield leaves, handed
    for tensor, came in zip(inputs, handed, strict=True):
        if came.shape == tensor.shape:
            tensor.detach().copy_(came.detach())


def gradients(value: Any, leaves: tuple[Tensor, ...], handed: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What a number sends back to the leaves: zeros where no gradient arrives.

    Zeros too where the value is no number with a graph, or where the answer has written into what it was handed: the
    graph may then be spoilt, and the judge speaks of the writing.
    """
    untouched = all(torch.equal(leaf, came) for leaf, came in zip(leaves, handed, strict=True))
    if not (untouched and isinstance(value, Tensor) and value.ndim == 0 and value.requires_grad):
        return tuple(torch.zeros_like(leaf) for leaf in leaves)
    came = torch.autograd.grad(value, leaves, allow_unused=True)
    return tuple(torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, came, strict=True))


def numbers_in(module: nn.Module) -> int:
    """How many numbers a module's parameters hold, each counted once: what an optimiser is handed."""
    return sum(parameter.numel() for parameter in module.parameters())


def trainable_numbers_in(module: nn.Module) -> int:
    """How many of them a training changes."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def _in_words(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
