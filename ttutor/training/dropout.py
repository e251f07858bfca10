"""Dropout made cheap on a CPU, with random numbers that each lane of a training draws for itself."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

_IN_FORCE: ContextVar[torch.Generator | None] = ContextVar("dropout_generator", default=None)


@contextmanager
def drawing_from(generator: torch.Generator) -> Iterator[None]:
    """Inside this context every `FastDropout` of this thread draws from the given generator.

    Without it they draw from torch's default generator, which all threads share: two that compute at the same time
    would get their numbers in an order that differs from run to run.

    Example:
        >>> dropout, ones = FastDropout(0.5), torch.ones(2, 8)
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


def with_fast_dropout(model: nn.Module) -> nn.Module:
    """The model itself, each `nn.Dropout` in it replaced by a `FastDropout` of the same probability.

    Example:
        >>> with_fast_dropout(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1)))[1]
        FastDropout(p=0.1, inplace=False)
    """
    for name, module in [*model.named_modules(remove_duplicate=False)]:
        if type(module) is nn.Dropout:
            model.set_submodule(name, FastDropout(module.p).train(module.training))
    return model


class FastDropout(nn.Dropout):
    r"""`nn.Dropout` in which, on a CPU, one random word of 64 bits decides about four features.

    $p$ is rounded to a multiple of $2^{-16}$. Drawing is most of what ``nn.Dropout`` costs there.

    Example:
        >>> dropped = FastDropout(0.2)(torch.ones(1000))
        >>> sorted({round(value, 4) for value in dropped.tolist()})
        [0.0, 1.25]
    """

    def forward(self, features: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Drop features while training; hand them on untouched otherwise."""
        if not self.training or self.p == 0:
            return features
        generator = _IN_FORCE.get()
        if generator is None and (features.device.type != "cpu" or torch.compiler.is_compiling()):
            return nn.functional.dropout(features, self.p)  # fused there
        stays = _kept(features.shape, self.p, features.device, generator).to(features.dtype)
        return features * stays * (1 / (1 - self.p))


def _kept(shape: torch.Size, p: float, device: torch.device, generator: torch.Generator | None) -> Bool[Tensor, "..."]:
    """Which features stay: each with probability ``1 - p``."""
    n_features = math.prod(shape)
    words = torch.empty(math.ceil(n_features / 4), dtype=torch.int64, device=device)
    words.random_(-(2**63), None, generator=generator)
    quarters = words.view(torch.int16)[:n_features]  # each uniform from -2**15 to 2**15 - 1
    return (quarters >= round(p * 2**16) - 2**15).reshape(shape)
