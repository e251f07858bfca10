"""Look inside: record any intermediate of a model by its name while the model runs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from ttutor.errors import ShapeError
from ttutor.inside.taps import find_sites, open_taps


class Captured(Mapping[str, Any]):
    """What was recorded, by name: ``captured[name]`` is the latest, ``captured.calls(name)`` lists every call."""

    def __init__(self, names: list[str]) -> None:
        self._calls: dict[str, list[Any]] = {name: [] for name in names}

    def calls(self, name: str) -> list[Any]:
        """What the intermediate was in each call so far, the oldest first; empty if it did not occur."""
        if name not in self._calls:
            raise KeyError(f"{name!r} is not among what is captured here: {', '.join(self._calls)}")
        return self._calls[name]

    def __getitem__(self, name: str) -> Any:
        calls = self.calls(name)
        if not calls:
            raise KeyError(f"{name!r} did not occur: the model has it, but did not run it while the context was open")
        return calls[-1]

    def __iter__(self) -> Iterator[str]:
        return (name for name, calls in self._calls.items() if calls)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def stack(self) -> Shaped[Tensor, "names ..."]:
        """The latest of everything captured, as one tensor with a first axis for the names in their order."""
        if not len(self):
            raise ValueError(f"nothing to stack: none of {', '.join(self._calls)} occurred")
        others = [name for name, value in self.items() if not isinstance(value, Tensor)]
        if others:
            raise TypeError(f"only tensors can be stacked, but {', '.join(others)} gave something else")
        shapes = {name: tuple(tensor.shape) for name, tensor in self.items()}
        if len(set(shapes.values())) > 1:
            raise ShapeError(f"only intermediates of one shape can be stacked, but these came: {shapes}")
        return torch.stack(list(self.values()))


@contextmanager
def capture(model: nn.Module, *names: str) -> Iterator[Captured]:
    """Record intermediates of a model while the context is open; `ttutor.inside.taps` explains the names.

    They are the tensors that the model itself goes on with (after any `patch`), gradient graph included; under
    ``torch.no_grad()`` nothing more is kept than the tensors. ``weights`` are those before dropout. They are computed
    beside the model's own attention, which need not write them down: the output depends on these very tensors, and has
    a gradient with respect to them, only where they are patched (``patch(model, {name: torch.clone})`` will do).

    A model may run several times in one context, as in decoding token by token with a cache: ``seen[name]`` is the
    latest call's, ``seen.calls(name)`` has all of them. In a cached call the queries are the new tokens, and the keys,
    values and the columns of the weights all tokens so far. A module that stands in several places, such as an
    embedding shared by encoder and decoder, records each use under each of its names.

    Args:
        model: any model of ours; for attention weights, one that is built of `MultiHeadAttention`.
        names: names or patterns such as ``"decoder.layers.*.self_attention.weights"``.

    Raises:
        ValueError: a name matches nothing in the model, or weights are asked of a layer that has none (linear
            attention).

    Example:
        >>> from ttutor.encoder import Encoder
        >>> encoder = Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=3)
        >>> with capture(encoder, "layers.*.self_attention.weights") as seen:
        ...     _ = encoder(torch.randn(1, 5, 8))
        >>> seen["layers.0.self_attention.weights"].shape  # batch heads queries keys
        torch.Size([1, 2, 5, 5])
        >>> seen.stack().shape
        torch.Size([3, 1, 2, 5, 5])
    """
    sites = find_sites(model, *names)
    captured = Captured(list(sites))
    with open_taps([(site, captured.calls(name).append) for name, site in sites.items()], edit=False):
        yield captured
