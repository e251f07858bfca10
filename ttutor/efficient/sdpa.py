"""PyTorch's own fused kernels, told all the structure that they can use.

`torch.nn.functional.scaled_dot_product_attention` picks among the kernels of the device. It knows two structures: no
mask, and a causal mask of as many queries as keys. Here others are brought to these where that is exact: a causal mask
over one query is no mask; rows of different lengths are cut to their length and run apart, where they are long enough.
"""

from itertools import groupby

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.efficient.attention_call import AttentionCall, call_of
from ttutor.efficient.derivatives import once_differentiable
from ttutor.efficient.eager import eager_attention
from ttutor.masks import Mask, combine_masks
from ttutor.shapes import check_broadcasts

WORTH_A_CALL = 128 * 128  # scores of one head that are worth a kernel call of their own, on a CPU


def mask_form(call: AttentionCall) -> str:
    """How a call's mask is given to PyTorch.

    "none" and "causal" are the two structures that it knows; with "rows", each row is cut to its length and needs no
    more than these; "table" is a tensor of ``queries x keys`` entries, or of as many as broadcast to them.
    """
    is_square = call.n_queries == call.n_keys
    if call.has_dense or call.has_bias or call.window is not None:
        return "table"
    if call.has_key_lengths:  # on a CPU reading a length is free
        can_look = call.device == "cpu" and not (call.is_recorded or call.is_transformed) and call.batch > 0
        return "rows" if can_look and call.area >= WORTH_A_CALL and (is_square or not call.causal) else "table"
    if not call.causal or call.n_queries <= 1:  # the last query sees all keys
        return "none"
    return "causal" if is_square else "table"


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
    """Attention by the protocol of `ttutor.attention.scaled_dot_product_attention`, in a fused kernel."""
    structure = combine_masks(mask, Mask(causal=causal, window=window))
    form = mask_form(call_of(query, key, value, structure, bias=bias))
    if form == "rows" and structure.key_lengths is not None:
        lengths = structure.key_lengths.clamp(0, key.shape[-2])
        return _row_by_row(query, key, value, lengths, structure.causal, scale=scale, dropout=dropout)
    is_causal = form == "causal"
    allowed = _drawn(structure, query, key, bias) if form == "table" else None
    context = torch.nn.functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=allowed,
        is_causal=is_causal,
        scale=scale,
        dropout_p=dropout,
        enable_gqa=bool(query.shape[-3] != key.shape[-3]),  # while traced, a tensor
    )
    return once_differentiable(context, "PyTorch's fused attention")


def _drawn(structure: Mask, query: Tensor, key: Tensor, bias: Tensor | None) -> Tensor | None:
    """The mask as a table: bools, or numbers where there is a bias."""
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    shape = (*query.shape[:-1], n_keys)
    if structure.causal and n_queries == 1:  # the last query sees all keys
        structure = Mask(window=structure.window, key_lengths=structure.key_lengths, dense=structure.dense)
    drawn = structure.materialise(n_queries, n_keys, device=query.device)
    if drawn is not None:
        check_broadcasts("mask", drawn, shape)
        drawn = drawn[(None,) * (4 - drawn.ndim)]  # with three axes it is refused by the fused kernel
    if bias is None:
        return drawn
    check_broadcasts("bias", bias, shape)
    bias = bias[(None,) * (4 - bias.ndim)].to(query.dtype)
    return bias if drawn is None else bias.masked_fill(~drawn, -torch.inf)


def _row_by_row(
    query: Float[Tensor, "batch heads queries d_head"],
    key: Float[Tensor, "batch kv_heads keys d_head"],
    value: Float[Tensor, "batch kv_heads keys d_value"],
    lengths: Int[Tensor, " batch"],
    causal: bool,
    *,
    scale: float | None,
    dropout: float,
) -> Float[Tensor, "batch heads queries d_value"]:
    """One call for each stretch of rows of equal length, over their real keys alone.

    Under a causal mask the queries after the last real key see all real keys, and those before see the keys up to
    themselves: two calls, neither of which needs a mask.
    """
    rows = []
    stretches = _stretches(lengths)
    counts = [count for count, _ in stretches]  # one split, not many slices: each of those would have a whole gradient
    for (_, length), q, k, v in zip(
        stretches, query.split(counts), key.split(counts), value.split(counts), strict=True
    ):
        k, v = k[:, :, :length], v[:, :, :length]
        if length == 0:  # nothing to see: a product over no keys, whose result and gradients are zeros
            rows.append(eager_attention(q, k, v))
            continue
        n_inside = length if causal else 0
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
