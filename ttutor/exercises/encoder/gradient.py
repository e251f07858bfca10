"""What values cannot show: whether the gradient that an answer passes back is the formula's."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ttutor.exercises.exercise import Property, Trial
from ttutor.exercises.running import gradients_of

__all__ = ["gradient_like"]


def gradient_like(reference: Callable[..., torch.Tensor], names: tuple[str, ...], says: str) -> Property:
    """The property that every floating input receives the gradient that the reference passes back to it.

    Args:
        reference: the right function, differentiable, with the answer's arguments.
        names: what the arguments are called, in their order, for the message.
        says: what to look at where the gradient is another.
    """

    def broken(trial: Trial) -> str | None:
        """Compare the gradients of one weighted sum of all outputs."""
        expected = gradients_of(reference, trial.inputs)
        try:
            found = trial.gradients(*trial.inputs)
        except RuntimeError as error:  # what autograd says of a result that it cannot follow back
            return f"The backward pass fails: {str(error).split('. ')[0]}."
        if found is None:
            return "Your result remembers nothing of how it was made: no gradient reaches any input."
        for name, right, yours in zip(names, expected, found, strict=True):
            if text := _difference(name, right, yours):
                return text
        return None

    return Property(id="gradient", says=says, broken=broken, always=True)


def _difference(name, right, yours):
    """One sentence on a gradient that is missing, not finite or another than the reference's; else None."""
    if right is None:
        return None
    if yours is None:
        return f"No gradient reaches `{name}`."
    if not yours.isfinite().all():
        return f"The gradient of `{name}` is not finite everywhere."
    share = ((yours - right).abs().max() / right.abs().max()).item()
    return None if share < 1e-3 else f"The gradient of `{name}` is off by {share:.2g} of its largest entry."
