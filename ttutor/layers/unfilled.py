"""Models that are built without numbers."""

from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

__all__ = ["Unfilled"]


class Unfilled(TorchFunctionMode):
    """While it is open, a model that is built draws no random weights.

    For models whose weights are all about to be replaced: to draw them takes longer than to load. And for sketches on
    the ``meta`` device, where PyTorch loads its compiler, for seconds, to draw numbers that are not kept.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(function, "__module__", None) == nn.init.__name__:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return function(*args, **kwargs)
