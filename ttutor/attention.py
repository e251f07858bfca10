r"""Attention: a soft lookup that compares one query with every key and returns a blend of the values.

$$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_\mathrm{head}}}\right) V$$

Vaswani et al. (2017), equation 1; what they write $d_k$ we call ``d_head``. The functions here are the reference: plain
arithmetic, to be read, and the oracle that every faster kernel is tested against.

Both functions take any leading axes, normally ``batch heads``. Keys and values may have fewer heads than the queries
(grouped-query attention, Ainslie et al. 2023): each then serves a group of consecutive query heads.
"""

import math

import torch
from einops import einsum, repeat
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.errors import ShapeError
from ttutor.masks import Mask, combine_masks
from ttutor.names import answer_other_names, answers_other_names
from ttutor.shapes import check_broadcasts, check_dtypes, check_shapes

__all__ = ["attention_weights", "scaled_dot_product_attention"]

MaskLike = Mask | Bool[Tensor, "..."] | None


@answers_other_names
def attention_weights(
    query: Float[Tensor, "... queries d_head"],
    key: Float[Tensor, "... keys d_head"],
    mask: MaskLike = None,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: Float[Tensor, "..."] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "... queries keys"]:
    r"""How much each query looks at each key: $A = \mathrm{softmax}(s\,QK^\top + B)$ over the keys that it may see.

    Every row is non-negative and sums to one, except that a query which may see no key at all gets a row of zeros.

    Args:
        query: what each position asks for.
        key: what each position offers to be found by.
        mask: bool tensor (True = may attend) or `Mask`, broadcastable to ``... queries keys``.
        causal: look at no key after the query; the last query is aligned with the last key.
        window: look at no key as far away as this, or farther.
        bias: added to the scaled scores, as ALiBi and T5 do.
        scale: the factor $s$; $1/\sqrt{d_\mathrm{head}}$ when left out.

    Example:
        >>> query = torch.tensor([[4.0, 0.0]])
        >>> key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        >>> attention_weights(query, key)
        tensor([[0.4856, 0.0287, 0.4856]])
        >>> attention_weights(query, key, torch.tensor([True, False, False]))
        tensor([[1., 0., 0.]])
    """
    _check_heads(query=(query, "queries d_head"), key=(key, "keys d_head"))
    n_queries, n_keys, d_head = query.shape[-2], key.shape[-2], query.shape[-1]
    scale = 1 / math.sqrt(d_head) if scale is None else scale

    scores = einsum(
        query * scale, _for_each_head(key, query), "... queries d_head, ... keys d_head -> ... queries keys"
    )
    allowed = combine_masks(mask, Mask(causal=causal, window=window)).materialise(
        n_queries, n_keys, device=query.device
    )
    if bias is not None:
        check_broadcasts("bias", bias, scores.shape)
        scores = scores + bias.to(scores.dtype)
    if allowed is not None:
        check_broadcasts("mask", allowed, scores.shape)
        scores = torch.where(~allowed, -math.inf, scores)
    if n_keys == 0 or (bias is None and allowed is None):
        return scores.softmax(dim=-1)
    # By its largest score, which is found faster than it is asked whether all are -inf; a NaN is no -inf, and stays.
    sees_a_key = scores.detach().amax(dim=-1, keepdim=True) != -math.inf
    # A softmax over -inf alone would be 0/0, forward and backward.
    return torch.where(sees_a_key, scores, 0.0).softmax(dim=-1) * sees_a_key


@answers_other_names
def scaled_dot_product_attention(
    query: Float[Tensor, "... queries d_head"],
    key: Float[Tensor, "... keys d_head"],
    value: Float[Tensor, "... keys d_value"],
    mask: MaskLike = None,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "... queries d_value"]:
    r"""The blend of values that each query receives: $AV$ with the weights $A$ of `attention_weights`.

    Vaswani et al. (2017), equation 1 and figure 2 (left).

    Args:
        query, key, mask, causal, window, bias, scale: as for `attention_weights`.
        value: what each position hands over when it is attended to.
        dropout: probability with which each weight is set to zero, the others being scaled up. A layer passes it
            while it trains and zero otherwise.

    Example:
        >>> query = torch.zeros(1, 2)  # asks for nothing in particular, so it gets the mean
        >>> key, value = torch.randn(4, 2), torch.arange(4.0).reshape(4, 1)
        >>> scaled_dot_product_attention(query, key, value)
        tensor([[1.5000]])
    """
    _check_heads(query=(query, "queries d_head"), key=(key, "keys d_head"), value=(value, "keys d_value"))
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, but is {dropout}")
    weights = attention_weights(query, key, mask, causal=causal, window=window, bias=bias, scale=scale)
    if dropout > 0.0:
        weights = torch.nn.functional.dropout(weights, dropout)
    return einsum(weights, _for_each_head(value, query), "... queries keys, ... keys d_value -> ... queries d_value")


def _check_heads(**tensors: tuple[Tensor, str]) -> None:
    """Check the last two axes of each tensor, and batch and heads too where all tensors have both."""
    has_heads = all(isinstance(tensor, Tensor) and tensor.ndim == 4 for tensor, _ in tensors.values())
    named = {}
    for name, (tensor, axes) in tensors.items():
        heads = "heads" if name == "query" else "kv_heads"
        named[name] = (tensor, f"batch {heads} {axes}" if has_heads else f"... {axes}")
    check_shapes(**named)
    check_dtypes(**{name: tensor for name, (tensor, _) in tensors.items()})


def _for_each_head(shared: Float[Tensor, "..."], query: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Repeat the heads of keys or values so that every query head has its own, where they are fewer."""
    if shared.ndim < 3 or query.ndim < 3 or shared.shape[-3] in (1, query.shape[-3]):
        return shared
    n_heads, n_kv_heads = query.shape[-3], shared.shape[-3]
    if n_heads % n_kv_heads:
        raise ShapeError(
            f"{n_heads} query heads cannot share {n_kv_heads} key/value heads evenly: "
            "the first number must be a multiple of the second"
        )
    pattern = "... kv_heads keys features -> ... (kv_heads group) keys features"
    return repeat(shared, pattern, group=n_heads // n_kv_heads)


answer_other_names(__name__)
