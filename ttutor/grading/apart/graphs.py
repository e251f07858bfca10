"""Results that were computed in another process, and hang on what was computed here as far as autograd can see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["Back", "connected", "products"]

Back = Callable[[list[Tensor | None]], list[Tensor | None]]


def connected(value: Any, leaves: list[Tensor], inputs: list[Tensor], back: Back) -> Any:
    """Return a value whose tensors hang on the inputs.

    Args:
        value: as it was unpacked.
        leaves: those tensors in it that ask for gradients.
        inputs: the tensors that were handed over with a wish for gradients.
        back: asks the other process, given what comes back to each of the leaves, for what comes back to each of the
            inputs.
    """
    if not leaves or not inputs or not torch.is_grad_enabled():
        return value
    hung = _Call.apply(back, leaves, *inputs)
    return _replaced(value, {id(leaf): one for leaf, one in zip(leaves, hung, strict=True)})


def products(outputs: list[Tensor], inputs: list[Tensor], weights: list[Tensor | None]) -> list[Tensor | None]:
    """Return what comes back to the inputs when these weights come back to the outputs; the graph is kept."""
    pairs = [(output, weight) for output, weight in zip(outputs, weights, strict=True) if weight is not None]
    ends, starts = [output for output, _ in pairs], [weight for _, weight in pairs]
    return list(torch.autograd.grad(ends, inputs, starts, retain_graph=True, allow_unused=True))


class _Call(torch.autograd.Function):
    """A call that was made elsewhere: forward its results are known, backward the other process is asked."""

    @staticmethod
    def forward(ctx: Any, back: Back, results: list[Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.back = back
        ctx.set_materialize_grads(False)
        return tuple(result.detach().clone() for result in results)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *weights: Tensor | None) -> tuple[Any, ...]:
        return None, None, *ctx.back(list(weights))


def _replaced(value: Any, others: dict[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return others.get(id(value), value)
    if isinstance(value, (tuple, list)):
        return type(value)(_replaced(part, others) for part in value)
    if isinstance(value, dict):
        return {key: _replaced(part, others) for key, part in value.items()}
    return value
