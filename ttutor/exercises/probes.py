"""Ready-made properties: what can be seen of an answer without knowing the right numbers.

Each function returns a `Property` for `Exercise.properties`. They look at an answer from outside: change one input,
see which outputs move. That works for code of any layout, and the map of it is a picture that a learner understands.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ttutor.exercises.exercise import Finding, Property, Trial

__all__ = [
    "batch_independent",
    "causal",
    "dependencies",
    "depends",
    "gradient_reaches",
    "ignores",
    "sums_to_one",
]


def sums_to_one(says: str, *, dim: int = -1, total: float = 1.0, id: str = "sums_to_one") -> Property:
    """The entries along an axis of the value sum to one (or to another total)."""

    def broken(trial: Trial) -> str | None:
        sums = trial.value.detach().double().sum(dim=dim)
        off = (sums - total).abs()
        if bool((off <= 1e-3 * abs(total)).all()):
            return None
        place = _place(off)
        return f"Along axis {dim} they should sum to {total:g}, but those at {place} sum to {sums[place].item():.3g}."

    return Property(id=id, says=says, broken=broken)


def causal(
    says: str, *, argument: int = 0, axis: int = 1, output_axis: int | None = None, id: str = "causal"
) -> Property:
    """No output moves with a later input: the dependency map has nothing above its diagonal, and is drawn.

    With more inputs than outputs the last output is aligned with the last input, as with a cache.
    """

    def broken(trial: Trial) -> Finding | None:
        seen = dependencies(trial, argument, axis, axis if output_axis is None else output_axis)
        allowed = torch.ones_like(seen).tril(seen.shape[1] - seen.shape[0])
        leaks = (seen & ~allowed).nonzero()
        if not len(leaks):
            return None
        output, moved = leaks[0].tolist()
        return Finding(f"Changing position {moved} moves the result at position {output}.", seen, allowed)

    return Property(id=id, says=says, broken=broken)


def depends(
    says: str,
    expected: Any,
    *,
    argument: int = 0,
    axis: int = 1,
    output_axis: int | None = None,
    id: str = "depends",
) -> Property:
    """Outputs move with exactly those inputs with which they should; both maps are drawn.

    Args:
        says: the hint.
        expected: makes the right map, bool ``outputs inputs``, from the case's inputs.
        argument: the input that is changed.
        axis: its axis that is walked along.
        output_axis: the value's axis that is watched; the same when left out.
        id: the hint's id.
    """

    def broken(trial: Trial) -> Finding | None:
        seen = dependencies(trial, argument, axis, axis if output_axis is None else output_axis)
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
            seen = dependencies(trial, argument, 0, 0)
            right = torch.eye(len(seen), dtype=torch.bool)
            leaks = (seen & ~right).nonzero()
            if len(leaks):
                output, moved = leaks[0].tolist()
                return Finding(f"Changing item {moved} of the batch moves the result of item {output}.", seen, right)
        return None

    return Property(id=id, says=says, broken=broken)


def ignores(says: str, change: Any, *, id: str) -> Property:
    """The value stays as it is when what must not matter is changed.

    Args:
        says: the hint.
        change: takes the case's inputs and returns them with that changed, such as other logits at padding.
        id: the hint's id.
    """

    def broken(trial: Trial) -> str | None:
        moved = _moved(trial.value, trial.run(*change(*trial.inputs)))
        if not bool(moved.any()):
            return None
        return f"{int(moved.sum())} of {moved.numel()} numbers of your result changed, which should stay."

    return Property(id=id, says=says, broken=broken)


def gradient_reaches(says: str, *, arguments: tuple[int, ...], id: str = "gradient", always: bool = True) -> Property:
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

    return Property(id=id, says=says, broken=broken, always=always)


def dependencies(trial: Trial, argument: int, axis: int, output_axis: int) -> Tensor:
    """Return which positions of the value move when a position of an input is changed: bool ``outputs inputs``.

    The map that tells most about code that mixes tokens: it needs no right numbers, and works for any layout.
    """
    before = trial.run(*trial.inputs)
    columns = []
    for position in range(trial.inputs[argument].shape[axis]):
        inputs = [value.detach().clone() if isinstance(value, Tensor) else value for value in trial.inputs]
        chosen = inputs[argument].select(axis, position)
        chosen.copy_(_other(chosen))
        moved = _moved(before, trial.run(*inputs)).movedim(output_axis, 0)
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


def _place(off: Tensor) -> tuple[int, ...]:
    """The place of the largest entry."""
    return tuple(int(index) for index in torch.unravel_index(off.argmax(), off.shape))
