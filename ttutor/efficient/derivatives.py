"""Fused backward passes have no derivative of their own; where one is wanted, this says which backend has it."""

from typing import Any

import torch
from torch import Tensor

from ttutor.errors import SettingError
from ttutor.shapes import is_recorded


def once_differentiable(context: Tensor, kernel: str) -> Tensor:
    """Let a second derivative through a kernel fail with a message that names the way out.

    Args:
        context: what the kernel gave; nothing happens where plain operations of PyTorch made it.
        kernel: what the message calls the kernel.
    """
    if is_recorded():
        return context
    node = context.grad_fn
    if node is None or not type(node).__name__.startswith(("ScaledDotProduct", "_Tiled")):
        return context

    def explain(gradients: tuple[Any, ...], _: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if not torch.is_grad_enabled():  # nobody asked for a graph of the backward pass
            return None
        return tuple(one if one is None else _Explained.apply(one, kernel) for one in gradients)

    node.register_hook(explain)
    return context


class _Explained(torch.autograd.Function):
    """A gradient as it is, whose own gradient is a sentence."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, kernel: str) -> Tensor:
        """Hand the gradient on."""
        ctx.kernel = kernel
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, ...]:
        """Say what has a second derivative."""
        raise SettingError(
            f"{ctx.kernel} can be differentiated once, and here its gradient is differentiated again; the backends "
            'eager and reference can: attend=functools.partial(efficient_attention, backend="eager")'
        )
