r"""Attention tile by tile: the softmax is taken on the way, and the table of scores never exists as a whole.

The softmax of a row needs the row's largest score and the sum of its exponentials. Both can be kept up to date while
the keys come in blocks: when a block brings a larger score, what was summed so far is multiplied by
$e^{m_\mathrm{old} - m_\mathrm{new}}$ (Milakov and Gimelshein 2018), and the blend of values by the same factor. So a
block of queries needs memory for one tile, whatever the length. This is the algorithm of FlashAttention (Dao et al.
2022, algorithm 1), without its point, the fast memory of a GPU, but with its memory linear in the length.

The backward pass stores no weights either. It keeps one number for each query, the logarithm of its sum of exponentials
$L_i$, and computes each tile of weights again: $P_{ij} = e^{S_{ij} - L_i}$ (Dao et al. 2022, algorithm 4).
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.efficient.attention_call import AttentionCall
from ttutor.efficient.derivatives import once_differentiable
from ttutor.errors import SettingError
from ttutor.masks import Mask, combine_masks
from ttutor.shapes import check_broadcasts, has_values

QUERY_BLOCK, KEY_BLOCK = 256, 512

SCORES = "batch kv_heads group queries d_head, batch kv_heads keys d_head -> batch kv_heads group queries keys"
BLEND = "batch kv_heads group queries keys, batch kv_heads keys d_value -> batch kv_heads group queries d_value"
TO_KEYS = "batch kv_heads group queries keys, batch kv_heads group queries d_head -> batch kv_heads keys d_head"
TO_WEIGHTS = "batch kv_heads group queries d_value, batch kv_heads keys d_value -> batch kv_heads group queries keys"
TO_QUERIES = "batch kv_heads group queries keys, batch kv_heads keys d_head -> batch kv_heads group queries d_head"


def unsupported_reason(call: AttentionCall) -> str | None:
    """Why this backend cannot run such a call; None if it can."""
    if call.dropout > 0:
        return "it computes the weights twice, and would have to drop the same ones both times"
    if call.has_bias and call.needs_gradient:
        return "it gives no gradient to a bias"
    if call.is_recorded:
        return "its loop over tiles would be unrolled into the compiled graph"
    if call.is_transformed:
        return "torch.func and derivatives taken forwards know nothing of its backward pass"
    return None


def tiled_attention(
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
    """Attention by the protocol of `ttutor.attention.scaled_dot_product_attention`, in memory linear in the length.

    Dao et al. (2022), algorithms 1 and 4. Tiles that a causal mask, a window or the rows' lengths hide are left out.
    """
    if dropout > 0:
        raise SettingError("tiled attention has no dropout, but dropout is " + str(dropout))
    if bias is not None and bias.requires_grad and torch.is_grad_enabled():
        raise SettingError("tiled attention gives no gradient to a bias: detach it, or use another backend")
    scores_shape = (*query.shape[:-1], key.shape[-2])
    structure = combine_masks(mask, Mask(causal=causal, window=window))
    for name, tensor in (("mask", structure.dense), ("bias", bias)):
        if tensor is not None:
            check_broadcasts(name, tensor, scores_shape)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    n_kv_heads = key.shape[-3]
    query, key, value = _in_autocast_dtype(query), _in_autocast_dtype(key), _in_autocast_dtype(value)
    q = rearrange(
        query, "batch (kv_heads group) queries d_head -> batch kv_heads group queries d_head", kv_heads=n_kv_heads
    )
    context = once_differentiable(_Tiled.apply(q, key, value, structure, bias, scale), "tiled attention")
    return rearrange(context, "batch kv_heads group queries d_value -> batch (kv_heads group) queries d_value")


def _in_autocast_dtype(tensor: Tensor) -> Tensor:
    """The tensor in the dtype of its products where autocast is on, and as it is elsewhere.

    Both passes must compute the same scores, and autocast is on in the forward pass alone.
    """
    device = tensor.device.type
    if tensor.is_meta or tensor.dtype == torch.float64:  # autocast knows no meta tensors and leaves float64 alone
        return tensor
    if not torch.is_autocast_enabled(device):
        return tensor
    return tensor.to(torch.get_autocast_dtype(device))


class _Tiled(torch.autograd.Function):
    """The two passes over the tiles."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None, scale: float) -> Tensor:
        """Blend the values tile by tile; keep the logarithm of each query's sum of exponentials."""
        tiles = _Tiles(q, k, mask, bias, scale)
        context = q.new_zeros(*q.shape[:-1], v.shape[-1])
        log_sums = torch.full_like(q[..., :1], math.inf, dtype=tiles.precise)  # of a query that sees nothing
        for rows in tiles.query_blocks():
            largest = torch.full_like(log_sums[..., rows, :], -math.inf)
            total = torch.zeros_like(largest)
            blend = torch.zeros_like(context[..., rows, :], dtype=tiles.precise)
            for columns in tiles.key_blocks(rows):
                scores = tiles.scores(rows, columns)
                new_largest = torch.maximum(largest, reduce(scores, "... queries keys -> ... queries 1", "max"))
                pivot = new_largest.masked_fill(new_largest == -math.inf, 0.0)  # no key seen so far
                weights = (scores - pivot).exp()
                correction = (largest - pivot).exp()
                total = total * correction + reduce(weights, "... queries keys -> ... queries 1", "sum")
                blend = blend * correction + einsum(weights.to(v.dtype), v[..., columns, :], BLEND)
                largest = new_largest
            sees_nothing = total == 0
            context[..., rows, :] = (blend / total.masked_fill(sees_nothing, 1.0)).to(v.dtype)
            log_sums[..., rows, :] = (largest + total.log()).masked_fill(sees_nothing, math.inf)
        ctx.save_for_backward(q, k, v, context, log_sums)
        ctx.mask, ctx.bias, ctx.scale = mask, bias, scale
        return context

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_context: Tensor) -> tuple[Tensor | None, ...]:
        """Compute each tile of weights again, and what it contributes to the three gradients."""
        q, k, v, context, log_sums = ctx.saved_tensors
        tiles = _Tiles(q, k, ctx.mask, ctx.bias, ctx.scale)
        d_q, d_k, d_v = (torch.zeros_like(tensor, dtype=tiles.precise) for tensor in (q, k, v))
        # What the softmax subtracts from each gradient: the mean of the row's gradients under its weights.
        mean = reduce(d_context.to(tiles.precise) * context, "... queries d_value -> ... queries 1", "sum")
        for rows in tiles.query_blocks():
            d_rows = d_context[..., rows, :]
            for columns in tiles.key_blocks(rows):
                weights = (tiles.scores(rows, columns) - log_sums[..., rows, :]).exp()
                d_v[..., columns, :] += einsum(weights.to(v.dtype), d_rows, TO_KEYS)
                d_weights = einsum(d_rows, v[..., columns, :], TO_WEIGHTS)
                d_scores = (weights * (d_weights - mean[..., rows, :]) * ctx.scale).to(q.dtype)
                d_q[..., rows, :] += einsum(d_scores, k[..., columns, :], TO_QUERIES)
                d_k[..., columns, :] += einsum(d_scores, q[..., rows, :], TO_KEYS)
        return d_q.to(q.dtype), d_k.to(k.dtype), d_v.to(v.dtype), None, None, None


class _Tiles:
    """Which tiles there are, and the scores of each."""

    def __init__(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None, scale: float) -> None:
        self.q, self.k, self.mask, self.scale = q, k, mask, scale
        self.dense = None if mask.dense is None else self._by_group(mask.dense)
        self.bias = None if bias is None else self._by_group(bias)
        self.n_queries, self.n_keys = q.shape[-2], k.shape[-2]
        self.offset = self.n_keys - self.n_queries  # query i stands at key position i + offset
        self.precise = torch.float64 if q.dtype == torch.float64 else torch.float32
        self.last_key = self.n_keys
        if mask.key_lengths is not None and len(mask.key_lengths) and has_values(mask.key_lengths):
            self.last_key = min(self.n_keys, int(mask.key_lengths.max()))

    def _by_group(self, table: Tensor) -> Tensor:
        """A mask or bias with the heads apart into those that keys have and those that share them."""
        table = table[(None,) * (4 - table.ndim)]
        if table.shape[1] == 1:
            return rearrange(table, "batch 1 queries keys -> batch 1 1 queries keys")
        return rearrange(
            table, "batch (kv_heads group) queries keys -> batch kv_heads group queries keys", kv_heads=self.k.shape[1]
        )

    def query_blocks(self) -> Iterator[slice]:
        """The queries, block by block."""
        for start in range(0, self.n_queries, QUERY_BLOCK):
            yield slice(start, min(start + QUERY_BLOCK, self.n_queries))

    def key_blocks(self, rows: slice) -> Iterator[slice]:
        """The blocks of keys of which some query of a block may see some."""
        first, last = 0, self.last_key
        if self.mask.causal:
            last = min(last, rows.stop + self.offset)
        if self.mask.window is not None:
            first = max(first, rows.start + self.offset - self.mask.window + 1)
            last = min(last, rows.stop + self.offset + self.mask.window - 1)
        for start in range(first, last, KEY_BLOCK):
            yield slice(start, min(start + KEY_BLOCK, last))

    def scores(self, rows: slice, columns: slice) -> Tensor:
        """One tile of scores, minus infinity where a query may not look."""
        scores = einsum(self.q[..., rows, :] * self.scale, self.k[..., columns, :], SCORES).to(self.precise)
        if self.bias is not None:
            scores = scores + _cut(self.bias, rows, columns)
        for hidden in self._hidden(rows, columns):
            scores = scores.masked_fill(hidden, -math.inf)
        return scores

    def _hidden(self, rows: slice, columns: slice) -> Iterator[Tensor]:
        """The conditions of the mask that hide something in this tile."""
        key = torch.arange(columns.start, columns.stop, device=self.q.device)
        place = torch.arange(rows.start, rows.stop, device=self.q.device) + self.offset
        distance = rearrange(place, "queries -> queries 1") - key
        if self.mask.causal and columns.stop - 1 > rows.start + self.offset:
            yield distance < 0
        if self.mask.window is not None:
            yield distance.abs() >= self.mask.window
        if self.mask.key_lengths is not None:
            yield key >= rearrange(self.mask.key_lengths, "batch -> batch 1 1 1 1")
        if self.dense is not None:
            yield ~_cut(self.dense, rows, columns)


def _cut(table: Tensor, rows: slice, columns: slice) -> Tensor:
    """The part of a table that belongs to a tile; an axis of one is for all."""
    table = table if table.shape[-2] == 1 else table[..., rows, :]
    return table if table.shape[-1] == 1 else table[..., columns]
