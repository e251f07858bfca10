"""Masks that say no more than which keys are real: they hold for all queries, and need no table."""

from einops import rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.masks import Mask, lengths_mask
from ttutor.shapes import check_broadcasts


def is_same_for_all_queries(dense: Bool[Tensor, "..."] | None) -> bool:
    """Whether a mask has but one row for all queries and heads, as `ttutor.masks.padding_mask` gives it."""
    return dense is None or all(size == 1 for size in dense.shape[-3:-1])


def real_keys(structure: Mask, key: Float[Tensor, "batch heads keys d_head"]) -> Bool[Tensor, "batch keys"] | None:
    """Which keys are real, by the lengths and by the tensor of a mask together; None if all are.

    Args:
        structure: its tensor must be the same for all queries and heads.
        key: the keys.
    """
    batch, n_keys = key.shape[0], key.shape[-2]
    is_real = None
    if structure.key_lengths is not None:
        is_real = rearrange(lengths_mask(structure.key_lengths, n_keys), "batch 1 1 keys -> batch keys")
    if structure.dense is not None:
        check_broadcasts("mask", structure.dense, (batch, 1, 1, n_keys))
        dense = rearrange(structure.dense[(None,) * (4 - structure.dense.ndim)], "batch 1 1 keys -> batch keys")
        dense = dense if len(dense) == batch else repeat(dense, "1 keys -> batch keys", batch=batch)
        dense = dense if dense.shape[-1] == n_keys else repeat(dense, "batch 1 -> batch keys", keys=n_keys)
        is_real = dense if is_real is None else is_real & dense
    return is_real
