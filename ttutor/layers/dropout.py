"""Dropout: while training, some features are set to zero, so that no other feature can rely on them."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

__all__ = ["Dropout", "drawing_from"]

_IN_FORCE: ContextVar[torch.Generator | None] = ContextVar("dropout_generator", default=None)


@contextmanager
def drawing_from(generator: torch.Generator) -> Iterator[None]:
    """Inside this context every `Dropout` of this thread draws from a generator of the caller's.

    Without it they draw from torch's default generator, which all threads share: two that compute at the same time
    would get their numbers in an order that differs from run to run.

    Example:
        >>> dropout, ones = Dropout(0.5), torch.ones(2, 8)
        >>> with drawing_from(torch.Generator().manual_seed(0)):
        ...     first = dropout(ones)
        >>> with drawing_from(torch.Generator().manual_seed(0)):
        ...     torch.equal(dropout(ones), first)
        True
    """
    token = _IN_FORCE.set(generator)
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


class Dropout(nn.Module):
    r"""Set each feature to zero with probability $p$ while training, and scale the others by $1/(1-p)$.

    Srivastava et al. (2014). The scale keeps the expected value, so that nothing has to change when dropout is switched
    off, by ``eval()``.

    On a CPU one random word of 64 bits decides about four features: $p$ is rounded to a multiple of $2^{-16}$, and
    drawing, which is most of the cost of ``nn.Dropout`` there, is several times cheaper.

    Args:
        p: the probability of setting a feature to zero.

    Raises:
        ValueError: the probability is not at least 0 and below 1.

    Example:
        >>> dropped = Dropout(0.2)(torch.ones(1000))
        >>> sorted({round(value, 4) for value in dropped.tolist()})
        [0.0, 1.25]
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"the probability of dropping a feature must be at least 0 and below 1, but is {p}")
        self.p = p

    def forward(self, features: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Drop features while training; hand them on untouched otherwise."""
        if not self.training or self.p == 0:
            return features
        generator = _IN_FORCE.get()
        if generator is None and (features.device.type != "cpu" or torch.compiler.is_compiling()):
            return nn.functional.dropout(features, self.p)  # fused there
        stays = kept(features.shape, self.p, features.device, generator).to(features.dtype)
        return features * stays * (1 / (1 - self.p))

    def extra_repr(self) -> str:
        """What stands between the brackets when the module is printed."""
        return f"p={self.p}"


def kept(
    shape: torch.Size, p: float, device: torch.device, generator: torch.Generator | None = None
) -> Bool[Tensor, "..."]:
    """Which features stay: each with probability ``1 - p``.

    Example:
        >>> kept(torch.Size([2, 3]), 0.0, torch.device("cpu"))
        tensor([[True, True, True],
                [True, True, True]])
    """
    n_features = math.prod(shape)
    words = torch.empty(math.ceil(n_features / 4), dtype=torch.int64, device=device)
    words.random_(-(2**63), None, generator=generator)
    quarters = words.view(torch.int16)[:n_features]  # each uniform from -2**15 to 2**15 - 1
    return (quarters >= round(p * 2**16) - 2**15).reshape(shape)
