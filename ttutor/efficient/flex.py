"""PyTorch's FlexAttention: a mask written as a function, compiled into a kernel of its own.

Dong et al. (2024). Whole blocks that the function hides are skipped, so windows and lengths cost what they show. The
first call for new sizes compiles, which takes seconds on a GPU and up to a minute on a CPU; so on a CPU it is there by
name alone, and on a GPU `auto` takes it for long texts with a window.
"""

import shutil
from collections.abc import Callable
from functools import cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.efficient.attention_call import AttentionCall
from ttutor.errors import SettingError
from ttutor.masks import Mask, combine_masks
from ttutor.shapes import check_broadcasts


def unsupported_reason(call: AttentionCall) -> str | None:
    """Why this backend cannot run such a call; None if it can."""
    if call.dropout > 0:
        return "FlexAttention has no dropout"
    if call.device == "mps":
        return "FlexAttention does not compile for mps"
    if call.device == "cuda" and not call.has_triton:
        return "compiling for a GPU needs Triton, and it is not installed"
    if call.device == "cpu" and call.needs_gradient:
        return "FlexAttention has no backward pass on a CPU"
    if call.has_bias and call.needs_gradient:
        return "the gradient of a bias is not supported here"
    if call.device == "cpu" and not (shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")):
        return "compiling for a CPU needs a C++ compiler, and none was found"
    return None


def flex_attention(
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
    """Attention by the protocol of `ttutor.attention.scaled_dot_product_attention`, compiled by FlexAttention."""
    from torch.nn.attention.flex_attention import create_block_mask

    if dropout > 0:
        raise SettingError(f"FlexAttention has no dropout, but dropout is {dropout}")
    structure = combine_masks(mask, Mask(causal=causal, window=window))
    batch, n_heads, n_queries, _ = query.shape
    n_keys = key.shape[-2]
    for name, table in (("mask", structure.dense), ("bias", bias)):
        if table is not None:
            check_broadcasts(name, table, (batch, n_heads, n_queries, n_keys))
    rule, blocks = _rule(structure, (batch, n_heads, n_queries, n_keys)), None
    if rule is not None:  # a rule that is the same for all rows or heads is drawn for one
        rows = None if structure.key_lengths is None and structure.dense is None else batch
        heads = None if structure.dense is None else n_heads
        blocks = create_block_mask(rule, rows, heads, n_queries, n_keys, device=query.device)
    return _compiled()(
        query,
        key,
        value,
        score_mod=None if bias is None else _adding(bias.expand(batch, n_heads, n_queries, n_keys)),
        block_mask=blocks,
        scale=scale,
        enable_gqa=query.shape[-3] != key.shape[-3],
    )


@cache
def _compiled() -> Callable[..., Tensor]:
    """FlexAttention, to be compiled at its first call for each kind of tensors."""
    from torch.nn.attention.flex_attention import flex_attention as of_torch

    return torch.compile(of_torch, dynamic=False)


def _rule(structure: Mask, shape: tuple[int, int, int, int]) -> Callable[..., Tensor] | None:
    """The mask as a function of batch, head, query and key; None where everything may be seen."""
    offset = shape[3] - shape[2]
    conditions: list[Callable[..., Tensor]] = []
    if structure.causal:
        conditions.append(lambda row, head, query, key: key <= query + offset)
    if structure.window is not None:
        conditions.append(lambda row, head, query, key: (query + offset - key).abs() < structure.window)
    lengths = structure.key_lengths
    if lengths is not None:
        conditions.append(lambda row, head, query, key: key < lengths[row])
    if structure.dense is not None:
        dense = structure.dense.expand(shape)
        conditions.append(lambda row, head, query, key: dense[row, head, query, key])
    if not conditions:
        return None

    def rule(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """All conditions at once."""
        allowed = conditions[0](row, head, query, key)
        for condition in conditions[1:]:
            allowed = allowed & condition(row, head, query, key)
        return allowed

    return rule


def _adding(bias: Tensor) -> Callable[..., Tensor]:
    """What adds the bias to a score."""
    return lambda score, row, head, query, key: score + bias[row, head, query, key]
