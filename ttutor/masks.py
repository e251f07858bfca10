"""Masks: who may look at whom.

One convention holds everywhere: a mask is a bool tensor in which **True means "may attend"**, broadcastable to
``batch heads queries keys``. When there are more keys than queries, the queries are the *last* ones: query ``i`` stands
at key position ``i + n_keys - n_queries``. That is what a cache needs, where one new query meets all the earlier keys.

A mask can be drawn (a tensor) or described (a `Mask`). The description is small, combines with ``&``, and tells an
attention kernel the structure, so that it need not read a ``queries x keys`` table to find out that it is causal.
"""

from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from ttutor.names import answer_other_names, answers_other_names
from ttutor.shapes import check_shapes

__all__ = ["CAUSAL", "Mask", "as_mask", "causal_mask", "combine_masks", "lengths_mask", "padding_mask", "window_mask"]


@answers_other_names
def causal_mask(
    n_queries: int, n_keys: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "queries keys"]:
    r"""Each position may look at itself and at what came before: $m_{ij} = [\,j \le i + n_k - n_q\,]$.

    Vaswani et al. (2017), section 3.2.3. The last query is aligned with the last key.

    Args:
        n_queries: number of queries.
        n_keys: number of keys; as many as queries when left out.
        device: where the mask is made.

    Example:
        >>> causal_mask(3).int()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 1, 1]], dtype=torch.int32)
        >>> causal_mask(1, 4).int()  # one new token, three in the cache
        tensor([[1, 1, 1, 1]], dtype=torch.int32)
    """
    return _distance(n_queries, n_keys, device) >= 0


def window_mask(
    n_queries: int, n_keys: int | None = None, *, window: int, device: torch.device | str | None = None
) -> Bool[Tensor, "queries keys"]:
    r"""Each position may look at those nearer than ``window``: $m_{ij} = [\,|i + n_k - n_q - j| < w\,]$.

    The band of Beltagy et al. (2020), section 3.1. ``window=1`` leaves each position alone with itself.

    Differs from the paper: there the window counts both sides together; here it bounds the distance on either side.

    Example:
        >>> window_mask(4, window=2).int()
        tensor([[1, 1, 0, 0],
                [1, 1, 1, 0],
                [0, 1, 1, 1],
                [0, 0, 1, 1]], dtype=torch.int32)
    """
    _check_window(window)
    return _distance(n_queries, n_keys, device).abs() < window


def _distance(n_queries: int, n_keys: int | None, device: torch.device | str | None) -> Int[Tensor, "queries keys"]:
    """How far each key lies before each query, negative for keys in the future."""
    n_keys = n_queries if n_keys is None else n_keys
    for name, count in (("n_queries", n_queries), ("n_keys", n_keys)):
        if isinstance(count, int):  # also the symbol that stands for a length while a model is compiled
            continue
        if not hasattr(count, "__index__") or (isinstance(count, Tensor) and count.ndim > 0):
            came = f"a tensor of shape {tuple(count.shape)}" if isinstance(count, Tensor) else repr(count)
            raise TypeError(f"{name} must be a whole number, such as query.shape[-2], but came {came}")
    if n_queries < 0 or n_keys < 0:
        and_keys = "" if n_keys == n_queries else f" and n_keys={n_keys}"
        raise ValueError(f"a mask's counts must not be negative, but n_queries={n_queries}{and_keys}")
    query_position = torch.arange(n_queries, device=device) + n_keys - n_queries
    key_position = torch.arange(n_keys, device=device)
    return rearrange(query_position, "queries -> queries 1") - rearrange(key_position, "keys -> 1 keys")


@answers_other_names
def padding_mask(token_ids: Int[Tensor, "batch tokens"], pad_id: int) -> Bool[Tensor, "batch 1 1 tokens"]:
    """Nobody may look at padding: True where a key is a real token, wherever in the row the padding stands.

    Example:
        >>> padding_mask(torch.tensor([[5, 7, 0], [0, 6, 9]]), pad_id=0).int()
        tensor([[[[1, 1, 0]]],
        <BLANKLINE>
        <BLANKLINE>
                [[[0, 1, 1]]]], dtype=torch.int32)
    """
    check_shapes(token_ids=(token_ids, "batch tokens"))
    return rearrange(token_ids != pad_id, "batch tokens -> batch 1 1 tokens")


def lengths_mask(key_lengths: Int[Tensor, " batch"], n_keys: int) -> Bool[Tensor, "batch 1 1 keys"]:
    """Row ``b`` has its first ``key_lengths[b]`` keys real and the rest padding.

    Example:
        >>> lengths_mask(torch.tensor([1, 3]), 3).int().flatten(1)
        tensor([[1, 0, 0],
                [1, 1, 1]], dtype=torch.int32)
    """
    key_position = torch.arange(n_keys, device=key_lengths.device)
    return key_position < rearrange(key_lengths, "batch -> batch 1 1 1")


@dataclass(frozen=True, eq=False, kw_only=True)
class Mask:
    """A mask described by its structure; all its conditions must hold for a query to see a key.

    Args:
        causal: only keys at or before the query.
        window: only keys nearer than this to the query.
        key_lengths: how many keys of each row are real, for batches padded on the right.
        dense: any further condition as a bool tensor, broadcastable to ``batch heads queries keys``.

    Example:
        >>> mask = Mask(causal=True) & Mask(key_lengths=torch.tensor([2, 3]))
        >>> mask.materialise(3, 3).shape
        torch.Size([2, 1, 3, 3])
    """

    causal: bool = False
    window: int | None = None
    key_lengths: Int[Tensor, " batch"] | None = None
    dense: Bool[Tensor, "..."] | None = None

    def __post_init__(self) -> None:
        if self.window is not None:
            _check_window(self.window)
        if self.key_lengths is not None and self.key_lengths.is_floating_point():
            raise TypeError(f"key_lengths must be whole numbers, but came with dtype {self.key_lengths.dtype}")
        if self.dense is not None:
            _check_bool(self.dense)

    @property
    def hides_nothing(self) -> bool:
        """Whether there is no condition at all."""
        return not self.causal and self.window is None and self.key_lengths is None and self.dense is None

    def __and__(self, other: "Mask | Bool[Tensor, '...'] | None") -> "Mask":
        """Both masks at once: a key is seen where both allow it."""
        return combine_masks(self, other)

    __rand__ = __and__

    def materialise(
        self, n_queries: int, n_keys: int, *, device: torch.device | str | None = None
    ) -> Bool[Tensor, "..."] | None:
        """Draw the mask as a bool tensor, or give None when every query sees every key."""
        conditions = [
            causal_mask(n_queries, n_keys, device=device) if self.causal else None,
            window_mask(n_queries, n_keys, window=self.window, device=device) if self.window is not None else None,
            lengths_mask(self.key_lengths, n_keys) if self.key_lengths is not None else None,
            self.dense,
        ]
        drawn: Tensor | None = None
        for condition in conditions:
            if condition is not None:
                drawn = condition if drawn is None else drawn & condition
        return drawn


def combine_masks(first: "Mask | Bool[Tensor, '...'] | None", second: "Mask | Bool[Tensor, '...'] | None") -> Mask:
    """Two masks at once, in whatever form they come: a key is seen where both allow it.

    Example:
        >>> combine_masks(CAUSAL, torch.tensor([True, True, False])).materialise(3, 3).int()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 1, 0]], dtype=torch.int32)
    """
    first, second = as_mask(first), as_mask(second)
    if second.hides_nothing:
        return first
    if first.hides_nothing:
        return second
    windows = [mask.window for mask in (first, second) if mask.window is not None]
    dense = [mask.dense for mask in (first, second) if mask.dense is not None]
    lengths = [mask.key_lengths for mask in (first, second) if mask.key_lengths is not None]
    return Mask(
        causal=first.causal or second.causal,
        window=min(windows) if windows else None,
        key_lengths=torch.minimum(*lengths) if len(lengths) == 2 else (lengths[0] if lengths else None),
        dense=dense[0] & dense[1] if len(dense) == 2 else (dense[0] if dense else None),
    )


CAUSAL = Mask(causal=True)
"""The description of a decoder's mask, which looks back and never ahead."""


def as_mask(mask: "Mask | Bool[Tensor, '...'] | None") -> Mask:
    """Accept a mask in any of its forms (description, bool tensor, nothing) and give its description.

    Example:
        >>> as_mask(torch.tensor([True, False])).dense
        tensor([ True, False])
    """
    if mask is None:
        return Mask()
    if isinstance(mask, Mask):
        return mask
    return Mask(dense=mask)


def _check_window(window: int) -> None:
    """Refuse a window in which a position would not even see itself."""
    if window < 1:
        raise ValueError(f"window must be at least 1 (a position sees itself), but is {window}")


def _check_bool(mask: object) -> None:
    """Refuse what is no bool tensor, most often a float mask of zeros and minus infinities."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"a mask is a bool tensor, a ttutor.masks.Mask or None, but came as {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise TypeError(
            f"a mask is a bool tensor with True = may attend, but came with dtype {mask.dtype}; "
            "write `mask == 0` for a mask of 0 and -inf, `mask.bool()` for one of 1 and 0"
        )


answer_other_names(__name__)
