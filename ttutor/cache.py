"""Caches for decoding: what need not be computed again when the next token arrives.

A decoder's causal mask has a consequence worth a factor of the sequence length: an old token's keys and values never
change when a new token is appended. So they are kept. A cache is an argument of the call, never a state of the model,
and one model can serve many caches at once.
"""

from collections.abc import Callable, Sequence

import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from ttutor.names import answer_other_names
from ttutor.shapes import check_shapes

__all__ = [
    "DecoderCache",
    "KeyValueCache",
    "LayerCache",
    "check_is_real",
    "layer_caches",
    "real_positions",
]


def check_is_real(is_real: Bool[Tensor, "batch tokens"]) -> None:
    """Refuse what does not say of each token whether it is real, such as the attention masks of 0 and 1 elsewhere."""
    check_shapes(is_real=(is_real, "batch tokens"))
    if is_real.dtype != torch.bool:
        raise TypeError(
            f"is_real is a bool tensor with True = real token, but came with dtype {is_real.dtype}; "
            "write `is_real.bool()` for one of 1 and 0"
        )


def real_positions(is_real: Bool[Tensor, "batch tokens"]) -> Int[Tensor, "batch tokens"]:
    """Number the real tokens of each row 0, 1, 2, ... wherever the padding stands.

    A padding token gets the number of the real token before it (0 where there is none); nobody looks at it.

    Example:
        >>> real_positions(torch.tensor([[True, True, False], [False, True, True]]))
        tensor([[0, 1, 1],
                [0, 0, 1]])
    """
    check_is_real(is_real)
    return (is_real.cumsum(dim=-1) - 1).clamp(min=0)


class KeyValueCache:
    """The keys and values that one attention layer has seen, ``batch heads tokens d_head`` each.

    They are kept token by token, all rows of a token together, so that a new token is written in one stretch, and a
    beam search, which puts the rows in another order at every step, leaves the spare room alone.

    Args:
        is_fixed: filled once and then only read, as in cross-attention, where the memory stays the same for all steps.
        window: how many tokens back a query sees, itself included, so that older ones are dropped (Jiang et al. 2023,
            section 2); all are kept when left out.

    Example:
        >>> cache = KeyValueCache()
        >>> key, value = cache.append(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4))
        >>> key, value = cache.append(torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 4))
        >>> len(cache), key.shape
        (4, torch.Size([1, 2, 4, 4]))
    """

    def __init__(self, *, is_fixed: bool = False, window: int | None = None) -> None:
        if window is not None and window < 1:
            raise ValueError(f"a query sees at least itself, so window must be at least 1, but is {window}")
        self.is_fixed, self.window = is_fixed, window
        self._n_tokens, self._has_dropped = 0, False
        self._key: Tensor | None = None  # tokens batch heads d_head, with room for more tokens than there are
        self._value: Tensor | None = None

    def __len__(self) -> int:
        return self._n_tokens

    def append(
        self, key: Shaped[Tensor, "batch heads tokens d_head"], value: Shaped[Tensor, "batch heads tokens d_value"]
    ) -> tuple[Tensor, Tensor]:
        """Take in the keys and values of new tokens; give those of all tokens so far.

        With a window it gives the tokens kept from before and all of this call's own, the last ones of all: the call's
        mask must be for these. Only then does it drop what no later token sees.

        The room is doubled when it runs out, so that appending ``n`` tokens copies about ``2n`` of them, not ``n^2/2``.
        A cache is for inference: a backward pass through several calls fails where one wrote into room that another
        had read from.
        """
        self._check(key, value)
        start, end = self._n_tokens, self._n_tokens + key.shape[2]
        new_key = rearrange(key, "batch heads tokens d_head -> tokens batch heads d_head")
        new_value = rearrange(value, "batch heads tokens d_value -> tokens batch heads d_value")
        self._key, self._value = (
            _with_room(self._key, new_key, start, end),
            _with_room(self._value, new_value, start, end),
        )
        self._key[start:end], self._value[start:end] = new_key, new_value
        self._n_tokens = end
        keys, values = self.read()
        if self.window is not None and len(self) > self.window:
            kept = [kind[self._n_tokens - self.window : self._n_tokens] for kind in self._buffers()]
            self._key, self._value = (kind.clone() for kind in kept)  # the call still reads what is dropped
            self._n_tokens, self._has_dropped = self.window, True
        return keys, values

    def _check(self, key: Tensor, value: Tensor) -> None:
        tensors = {"key": (key, "batch heads tokens d_head"), "value": (value, "batch heads tokens d_value")}
        if self._key is not None and self._value is not None:
            tensors["cached_key"] = (self._key, "_ batch heads d_head")
            tensors["cached_value"] = (self._value, "_ batch heads d_value")
            if key.dtype != self._key.dtype:
                raise TypeError(f"the cache holds {self._key.dtype}, but the new keys are {key.dtype}")
        check_shapes(**tensors)

    def read(self) -> tuple[Tensor, Tensor]:
        """The keys and values of all tokens so far."""
        key, value = self._buffers()
        return (
            rearrange(key[: self._n_tokens], "tokens batch heads d_head -> batch heads tokens d_head"),
            rearrange(value[: self._n_tokens], "tokens batch heads d_value -> batch heads tokens d_value"),
        )

    def _buffers(self) -> tuple[Tensor, Tensor]:
        """The keys and values with their spare room, as they lie."""
        if self._key is None or self._value is None:
            raise ValueError("the cache is empty: append keys and values before reading it")
        return self._key, self._value

    @property
    def n_bytes(self) -> int:
        """How much memory the tokens take; the spare room is not counted."""
        return sum(tensor.numel() * tensor.itemsize for tensor in self.read()) if len(self) else 0

    def forget(self, n_newest: int) -> None:
        """Drop the newest tokens, as if they had never come; their room is kept.

        Refused once a window has dropped older ones, which the tokens before would have to see.
        """
        if n_newest and self._has_dropped:
            raise ValueError(f"a cache with a window of {self.window} has dropped older tokens and cannot go back")
        if not 0 <= n_newest <= self._n_tokens:
            raise ValueError(f"the cache holds {self._n_tokens} tokens and cannot forget {n_newest}")
        self._n_tokens -= n_newest

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Keep these rows of the batch, in this order; a row may come more than once, as in beam search."""
        if self._key is not None and self._value is not None:
            self._key = _rows_of(self._key, rows, self._n_tokens)
            self._value = _rows_of(self._value, rows, self._n_tokens)


def _with_room(
    buffer: Shaped[Tensor, "room batch heads width"] | None,
    new: Shaped[Tensor, "tokens batch heads width"],
    start: int,
    end: int,
) -> Shaped[Tensor, "more_room batch heads width"]:
    """A buffer like ``new`` with room for ``end`` tokens that holds the first ``start`` of the old one."""
    if buffer is not None and len(buffer) >= end:
        return buffer
    larger = new.new_empty(end if buffer is None else max(end, 2 * start), *new.shape[1:])
    if buffer is not None:
        larger[:start] = buffer[:start]
    return larger


def _rows_of(
    buffer: Shaped[Tensor, "room batch heads width"], rows: Int[Tensor, " rows"], n_tokens: int
) -> Shaped[Tensor, "room rows heads width"]:
    """A buffer with as much room that holds the first tokens of these rows."""
    if buffer.requires_grad:  # to write into a given place is nothing that could be differentiated
        return buffer.index_select(1, rows)
    chosen = buffer.new_empty(len(buffer), len(rows), *buffer.shape[2:])
    torch.index_select(buffer[:n_tokens], 1, rows, out=chosen[:n_tokens])
    return chosen


class LayerCache:
    """The two caches of one decoder layer: its own tokens' keys and values, and those of the memory.

    Args:
        make_cache: makes each of them; takes ``is_fixed``.
        window: of the layer's self-attention, if it has one.
    """

    def __init__(self, make_cache: Callable[..., KeyValueCache] = KeyValueCache, window: int | None = None) -> None:
        self.self_attention = make_cache() if window is None else KeyValueCache(window=window)
        self.cross_attention = make_cache(is_fixed=True)


class DecoderCache:
    """All that a decoder keeps between calls: a `LayerCache` for each layer, and which cached tokens are real.

    Args:
        n_layers: number of the decoder's layers.
        make_cache: makes the caches of each layer, where a decoder keeps its keys and values otherwise.
        windows: for each layer how far it sees, and so how much of the past it keeps; all of it where that is None.

    Example:
        >>> cache = DecoderCache(n_layers=2)
        >>> positions, keys = cache.extend(torch.tensor([[True, True], [False, True]]))  # second row padded on the left
        >>> positions, keys = cache.extend(torch.tensor([[True], [True]]))
        >>> positions.tolist(), keys.tolist()
        ([[2], [1]], [[[[True, True, True]]], [[[False, True, True]]]])
    """

    def __init__(
        self,
        n_layers: int,
        *,
        make_cache: Callable[..., KeyValueCache] = KeyValueCache,
        windows: Sequence[int | None] | None = None,
    ) -> None:
        self.layers = [LayerCache(make_cache, window) for window in windows or [None] * n_layers]
        self._is_real: Tensor | None = None

    @property
    def n_tokens(self) -> int:
        """How many tokens each row holds, padding included."""
        return 0 if self._is_real is None else self._is_real.shape[-1]

    @property
    def is_real(self) -> Bool[Tensor, "batch keys"]:
        """Which of all tokens so far are no padding."""
        if self._is_real is None:
            raise ValueError("the cache is empty: decode something with it first")
        return self._is_real

    def extend(
        self, is_real: Bool[Tensor, "batch tokens"]
    ) -> tuple[Int[Tensor, "batch tokens"], Bool[Tensor, "batch 1 1 keys"]]:
        """Announce new tokens; learn their positions and which of all keys, old and new, are real."""
        check_is_real(is_real)
        if self._is_real is not None:
            check_shapes(cached_tokens=(self._is_real, "batch _"), new_tokens=(is_real, "batch _"))
        n_new = is_real.shape[-1]
        self._is_real = is_real if self._is_real is None else torch.cat([self._is_real, is_real], dim=-1)
        positions = real_positions(self._is_real)[:, self._is_real.shape[-1] - n_new :]
        return positions, rearrange(self._is_real, "batch keys -> batch 1 1 keys")

    def positions(self) -> Int[Tensor, "batch keys"]:
        """The position of every token so far, which biases by distance need."""
        return real_positions(self.is_real)

    @property
    def n_bytes(self) -> int:
        """How much memory keys and values of all layers take, those of the memory included."""
        return sum(layer.self_attention.n_bytes + layer.cross_attention.n_bytes for layer in self.layers)

    def lengths(self) -> Int[Tensor, " batch"]:
        """How many real tokens each row holds."""
        return reduce(self.is_real.int(), "batch keys -> batch", "sum")

    def forget(self, n_newest: int) -> None:
        """Drop the newest tokens of every row in every layer, as if they had never come; the memory stays.

        Example:
            >>> cache = DecoderCache(n_layers=0)
            >>> _ = cache.extend(torch.tensor([[True, True, True]]))
            >>> cache.forget(1)
            >>> cache.n_tokens
            2
        """
        if not 0 <= n_newest <= self.n_tokens:
            raise ValueError(f"the cache holds {self.n_tokens} tokens and cannot forget {n_newest}")
        if self._is_real is not None:
            self._is_real = self._is_real[:, : self.n_tokens - n_newest]
        for layer in self.layers:
            layer.self_attention.forget(n_newest)

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Keep these rows of the batch in every layer, in this order; a row may come more than once."""
        if self._is_real is not None:
            self._is_real = self._is_real.index_select(0, rows)
        for layer in self.layers:
            layer.self_attention.select(rows)
            layer.cross_attention.select(rows)


def layer_caches(cache: DecoderCache | None, n_layers: int) -> list[LayerCache | None]:
    """Each layer's share of a cache; nothing for each where there is no cache.

    Example:
        >>> layer_caches(None, 2)
        [None, None]
    """
    if cache is None:
        return [None] * n_layers
    if len(cache.layers) != n_layers:
        raise ValueError(f"this decoder has {n_layers} layers, but the cache {len(cache.layers)}")
    return list(cache.layers)


answer_other_names(__name__)
