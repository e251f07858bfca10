"""Plain products: the scores are written down in full, with as few passes over them as can be.

At short lengths nothing is faster on a CPU, since a fused kernel has more to set up than to save; at long lengths the
table of scores, ``queries x keys`` numbers for every head, is what the other backends avoid.
"""

import math

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.masks import Mask, combine_masks
from ttutor.shapes import check_broadcasts, has_free_sizes, has_values

VECTOR = 16 if torch.backends.cpu.get_cpu_capability().startswith("AVX512") else 8
"""Numbers of float32 that the processor computes at a time."""


def eager_attention(
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
    """Attention by the protocol of `ttutor.attention.scaled_dot_product_attention`, and by its arithmetic.

    What it saves against the reference: heads that share keys multiply with them together, so that no key is copied;
    mask and bias become one small table, added in one pass that has nothing to do backwards; queries that see nothing
    are looked for in that table instead of the scores, and only where the mask's structure does not rule them out.
    """
    n_queries, n_keys, n_kv_heads = query.shape[-2], key.shape[-2], key.shape[-3]
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    allowed = combine_masks(mask, Mask(causal=causal, window=window))
    grouped = rearrange(
        query * scale,
        "batch (kv_heads group) queries d_head -> batch kv_heads group queries d_head",
        kv_heads=n_kv_heads,
    )
    scores = einsum(
        grouped,
        key,
        "batch kv_heads group queries d_head, batch kv_heads keys d_head -> batch kv_heads group queries keys",
    )
    scores = rearrange(scores, "batch kv_heads group queries keys -> batch (kv_heads group) queries keys")
    table = _table(allowed, bias, scores)
    sees_nothing = None
    if table is not None:
        if bias is not None or not sees_something(allowed, n_queries, n_keys):
            sees_nothing = (table == -math.inf).all(dim=-1, keepdim=True)
            table = table.masked_fill(sees_nothing, 0.0)  # any weights will do: their blend is dropped below
        scores = scores + table
    weights = _softmax(scores)
    if dropout > 0.0:
        weights = torch.nn.functional.dropout(weights, dropout)
    weights = rearrange(
        weights, "batch (kv_heads group) queries keys -> batch kv_heads group queries keys", kv_heads=n_kv_heads
    )
    context = einsum(
        weights,
        value,
        "batch kv_heads group queries keys, batch kv_heads keys d_value -> batch kv_heads group queries d_value",
    )
    context = rearrange(context, "batch kv_heads group queries d_value -> batch (kv_heads group) queries d_value")
    return context if sees_nothing is None else context.masked_fill(sees_nothing, 0.0)


def _softmax(scores: Float[Tensor, "batch heads queries keys"]) -> Float[Tensor, "batch heads queries keys"]:
    """Softmax over the keys, computed in float32 or wider.

    PyTorch's CPU kernel takes whole vectors of numbers, and goes through a row that fills none number by number, which
    is several times slower. Such rows are filled up with keys that get no weight. Its kernels for half precision are
    slower at these lengths than those for float32, both ways included.
    """
    exact = torch.promote_types(scores.dtype, torch.float32)
    if has_free_sizes() or scores.device.type != "cpu" or scores.shape[-1] >= VECTOR:
        return scores.softmax(dim=-1, dtype=exact).to(scores.dtype)
    missing = VECTOR - scores.shape[-1]
    filled = torch.nn.functional.pad(scores, (0, missing), value=-math.inf)
    return filled.softmax(dim=-1, dtype=exact)[..., :-missing].to(scores.dtype)


def _table(allowed: Mask, bias: Tensor | None, scores: Float[Tensor, "batch heads queries keys"]) -> Tensor | None:
    """What is added to the scores: the bias, and minus infinity where a query may not look."""
    drawn = allowed.materialise(*scores.shape[-2:], device=scores.device)
    if bias is not None:
        check_broadcasts("bias", bias, scores.shape)
        bias = bias.to(scores.dtype)
    if drawn is None:
        return bias
    check_broadcasts("mask", drawn, scores.shape)
    if bias is not None:
        return bias.masked_fill(~drawn, -math.inf)
    return torch.zeros_like(drawn, dtype=scores.dtype).masked_fill(~drawn, -math.inf)


def sees_something(mask: Mask, n_queries: int, n_keys: int) -> bool:
    """Whether the structure alone guarantees that every query sees a key.

    A causal mask or a window lets a query see the key at its own place, if it has one: not when there are more queries
    than keys, since the first of them then stand before all keys.
    """
    if n_keys == 0 or mask.dense is not None:
        return False
    if mask.key_lengths is not None:  # the first key is real, and seen by all unless a window ends before it
        can_look = has_values(mask.key_lengths)
        is_empty = mask.key_lengths.shape[0] == 0
        if mask.window is not None or not can_look or is_empty or int(mask.key_lengths.min()) < 1:
            return False
    return n_queries <= n_keys or not (mask.causal or mask.window is not None)
