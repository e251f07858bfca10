"""PyTorch's own fused kernels, told all the structure that they can use.

`torch.nn.functional.scaled_dot_product_attention` picks among the kernels of the device. It knows two structures: no
mask, and a causal mask of as many queries as keys. Here others are brought to these where that is exact: a causal mask
over one query is no mask; rows of different lengths are cut to their length and run apart, where they are long enough.
"""

from itertools import groupby

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.efficient.explicit import explicit_attention
from ttutor.efficient.situation import Situation
from ttutor.masks import Mask, both
from ttutor.shapes import check_broadcasts

__all__ = ["sdpa_attention", "why_not"]

WORTH_A_CALL = 128 * 128  # scores of one head that are worth a kernel call of their own, on a CPU


def why_not(situation: Situation) -> str | None:
    """Why this backend cannot run such a call: it always can, on some kernel of its own."""
    return None


def sdpa_attention(
    query: Float[Tensor, "batch heads queries d_head"],
    key: Float[Tensor, "batch kv_heads keys d_head"],
    value: Float[Tensor, "batch kv_heads keys d_value"],
    mask: Mask | Bool[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "batch heads queries d_value"]:
    """Attention by the protocol of `ttutor.attention.scaled_dot_product_attention`, in a fused kernel.

    Example:
        >>> sdpa_attention(torch.zeros(1, 4, 1, 2), torch.randn(1, 2, 3, 2), torch.ones(1, 2, 3, 5)).shape
        torch.Size([1, 4, 1, 5])
    """
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    structure = both(mask, Mask(causal=causal, window=window))
    if bias is None and _can_cut(structure, query, key):
        return _row_by_row(query, key, value, structure, scale=scale, dropout=dropout)
    is_causal = (
        structure.causal
        and structure.window is None
        and structure.dense is None
        and structure.key_lengths is None
        and n_queries == n_keys > 1
        and bias is None
    )
    allowed = None if is_causal else _drawn(structure, query, key, bias)
    return torch.nn.functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=allowed,
        is_causal=is_causal,
        scale=scale,
        dropout_p=dropout,
        enable_gqa=query.shape[-3] != key.shape[-3],
    )


def _drawn(structure: Mask, query: Tensor, key: Tensor, bias: Tensor | None) -> Tensor | None:
    """What the kernel shall read as a mask: nothing where that is possible, else bools, or numbers with a bias."""
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    shape = (*query.shape[:-1], n_keys)
    if structure.causal and n_queries == 1:  # the last query sees all keys
        structure = Mask(window=structure.window, key_lengths=structure.key_lengths, dense=structure.dense)
    drawn = structure.materialise(n_queries, n_keys, device=query.device)
    if drawn is not None:
        check_broadcasts("mask", drawn, shape)
        drawn = torch.atleast_2d(drawn)  # the kernel wants both axes, queries and keys
    if bias is None:
        return drawn
    check_broadcasts("bias", bias, shape)
    bias = torch.atleast_2d(bias).to(query.dtype)
    return bias if drawn is None else bias.masked_fill(~drawn, -torch.inf)


def _can_cut(structure: Mask, query: Tensor, key: Tensor) -> bool:
    """Whether rows of different lengths shall be cut to their length: on a CPU, where reading a length is free."""
    return (
        structure.key_lengths is not None
        and structure.dense is None
        and structure.window is None
        and query.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and query.shape[0] > 0
        and query.shape[-2] * key.shape[-2] >= WORTH_A_CALL
        and (not structure.causal or query.shape[-2] == key.shape[-2])
    )


def _row_by_row(
    query: Float[Tensor, "batch heads queries d_head"],
    key: Float[Tensor, "batch kv_heads keys d_head"],
    value: Float[Tensor, "batch kv_heads keys d_value"],
    structure: Mask,
    *,
    scale: float | None,
    dropout: float,
) -> Float[Tensor, "batch heads queries d_value"]:
    """One call for each stretch of rows of equal length, over their real keys alone.

    Under a causal mask the queries after the last real key see all real keys, and those before see the keys up to
    themselves: two calls, neither of which needs a mask.
    """
    rows = []
    stretches = _stretches(structure.key_lengths.clamp(0, key.shape[-2]))
    counts = [count for count, _ in stretches]  # one split, not many slices: each of those would have a whole gradient
    for (_, length), q, k, v in zip(
        stretches, query.split(counts), key.split(counts), value.split(counts), strict=True
    ):
        k, v = k[:, :, :length], v[:, :, :length]
        if length == 0:  # nothing to see: a product over no keys, whose result and gradients are zeros
            rows.append(explicit_attention(q, k, v))
            continue
        n_inside = length if structure.causal else 0
        parts = [
            sdpa_attention(part, k, v, causal=is_inside, scale=scale, dropout=dropout)
            for part, is_inside in ((q[:, :, :n_inside], True), (q[:, :, n_inside:], False))
            if part.shape[-2]
        ]
        rows.append(torch.cat(parts, dim=-2) if len(parts) > 1 else parts[0])
    return torch.cat(rows) if len(rows) > 1 else rows[0]


def _stretches(lengths: Int[Tensor, " batch"]) -> list[tuple[int, int]]:
    """Neighbouring rows of one length, as (how many, length)."""
    return [(len(list(rows)), length) for length, rows in groupby(lengths.tolist())]
