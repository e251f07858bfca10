"""A moving average of a model's weights: what the translator uses, steadier than the weights of any one step."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class AveragedWeights:
    r"""Exponential moving average $\bar\theta \leftarrow \beta\bar\theta + (1-\beta)\theta$ after each step.

    Polyak and Juditsky (1992) averaged evenly; the exponential form forgets the beginning. In the first steps the decay
    is (1 + step) / (10 + step) where that is smaller, so that the random start weighs little.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> average = AveragedWeights(model, decay=0.9)
    >>> before = model.weight.item()
    >>> with torch.no_grad():
    ...     _ = model.weight.add_(11.0)
    >>> average.update(model, step=1)  # the decay is 2 / 11 here
    >>> round(average.tensors["weight"].item() - before, 3)
    9.0
    """

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.tensors: dict[str, Tensor] = {
            name: parameter.detach().clone() for name, parameter in model.named_parameters()
        }

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Move the averages towards the present weights; the first steps count less, so that the start is forgotten."""
        decay = min(self.decay, (1 + step) / (10 + step))
        current = [parameter.detach() for _, parameter in model.named_parameters()]
        torch._foreach_lerp_(list(self.tensors.values()), current, 1 - decay)

    @contextmanager
    def applied_to(self, model: nn.Module) -> Iterator[None]:
        """Inside this context the model has the averaged weights; afterwards its own again."""
        parameters = dict(model.named_parameters())
        own = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(self.tensors[name])
        try:
            yield
        finally:
            with torch.no_grad():
                for name, parameter in parameters.items():
                    parameter.copy_(own[name])
