"""Ready-made properties: what can be seen of an answer without knowing the right numbers.

Each function returns a `Property` for `Exercise.properties`. They look at an answer from outside: change one input,
see which outputs move. That works for code of any layout, and the map of it is a picture that a learner understands.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ttutor.exercises.exercise import Finding, Property, Trial

__all__ = ["batch_independent", "causal", "dependencies", "depends", "gradient_reaches"]


def causal(says: str) -> Property:
    """No token's output moves with a later token: the dependency map has nothing above its diagonal, and is drawn.

    With more inputs than outputs the last output is aligned with the last input, as with a cache.
    """

    def broken(trial: Trial) -> Finding | None:
        seen = dependencies(trial)
        allowed = torch.ones_like(seen).tril(seen.shape[1] - seen.shape[0])
        leaks = (seen & ~allowed).nonzero()
        if not len(leaks):
            return None
        output, moved = leaks[0].tolist()
        return Finding(f"Changing position {moved} moves the result at position {output}.", seen, allowed)

    return Property(id="causal", says=says, broken=broken)


def depends(says: str, expected: Any, *, id: str) -> Property:
    """Tokens' outputs move with exactly those tokens with which they should; both maps are drawn.

    Args:
        says: the hint.
        expected: makes the right map, bool ``outputs inputs``, from the case's inputs.
        id: the hint's id.
    """

    def broken(trial: Trial) -> Finding | None:
        seen = dependencies(trial)
        right = expected(*trial.inputs)
        wrong = (seen != right).nonzero()
        if not len(wrong):
            return None
        output, moved = wrong[0].tolist()
        verb = "moves" if seen[output, moved] else "does not move"
        text = f"When position {moved} is changed, the result at position {output} {verb}."
        return Finding(text, seen, right)

    return Property(id=id, says=says, broken=broken)


def batch_independent(says: str, *, arguments: tuple[int, ...] = (0,), id: str = "batch_independent") -> Property:
    """The items of a batch do not influence one another: axis 0 of the arguments and of the value is the batch."""

    def broken(trial: Trial) -> Finding | None:
        for argument in arguments:
            seen = dependencies(trial, argument, axis=0)
            right = torch.eye(len(seen), dtype=torch.bool)
            leaks = (seen & ~right).nonzero()
            if len(leaks):
                output, moved = leaks[0].tolist()
                return Finding(f"Changing item {moved} of the batch moves the result of item {output}.", seen, right)
        return None

    return Property(id=id, says=says, broken=broken)


def gradient_reaches(says: str, *, arguments: tuple[int, ...]) -> Property:
    """A finite gradient comes back to each of these inputs, and not all of it is zero."""

    def broken(trial: Trial) -> str | None:
        gradients = trial.gradients(*trial.inputs)
        if gradients is None:
            return "Your result carries no gradient at all."
        for argument in arguments:
            gradient = gradients[argument]
            if gradient is None or not bool(gradient.any()):
                return f"No gradient reaches input {argument + 1}."
            if not bool(gradient.isfinite().all()):
                return f"The gradient of input {argument + 1} is not finite."
        return None

    return Property(id="gradient", says=says, broken=broken, always=True)


def dependencies(trial: Trial, argument: int = 0, axis: int = 1) -> Tensor:
    """Return which positions of the value move when a position of an input is changed: bool ``outputs inputs``.

    Both are positions along the same axis. The map tells most about code that mixes tokens: it needs no right numbers,
    and works for any layout.
    """
    before = trial.run(*trial.inputs)
    columns = []
    for position in range(trial.inputs[argument].shape[axis]):
        inputs = [value.detach().clone() if isinstance(value, Tensor) else value for value in trial.inputs]
        chosen = inputs[argument].select(axis, position)
        chosen.copy_(_other(chosen))
        moved = _moved(before, trial.run(*inputs)).movedim(axis, 0)
        columns.append(torch.stack([row.any() for row in moved]))
    return torch.stack(columns, dim=1)


def _other(chosen: Tensor) -> Tensor:
    """Return other entries in place of these: turned round too, since a norm would undo a change of scale alone."""
    if not chosen.is_floating_point():
        return (chosen == 0).to(chosen.dtype)  # 0 or 1, whatever the vocabulary
    return (chosen.flip(-1) if chosen.ndim else chosen) * 2 + 1


def _moved(before: Tensor, after: Any) -> Tensor:
    """Return where a value has moved by more than rounding."""
    if not isinstance(after, Tensor) or after.shape != before.shape:
        return torch.ones_like(before, dtype=torch.bool)
    if not before.is_floating_point():
        return before != after
    before, after = before.detach().double(), after.detach().double()
    return (before - after).abs() > 1e-6 * before.abs().amax()
