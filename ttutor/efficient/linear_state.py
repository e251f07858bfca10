r"""The state of linear attention: two sums over all tokens so far, of a size that does not grow.

`linear_attention_recurrent` reads and writes it one token at a time; `ttutor.efficient.linear` says what is computed,
and does it for a whole sequence at once.
"""

from typing import NamedTuple

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Float
from torch import Tensor

from ttutor.efficient.features import FeatureMap, elu_features
from ttutor.shapes import check_shapes

LOOK_UP = (
    "batch kv_heads group queries features, batch kv_heads features d_value -> batch kv_heads group queries d_value"
)
TOTAL = "batch kv_heads group queries features, batch kv_heads features -> batch kv_heads group queries"
WRITE = "batch kv_heads keys features, batch kv_heads keys d_value -> batch kv_heads features d_value"
SPREAD = "... queries -> ... queries 1"


class LinearState(NamedTuple):
    r"""What is remembered of all tokens so far, whatever their number: both sums, divided by $e^m$, and $m$.

    ``largest`` is $m$, the largest logarithm of a key's size met so far: minus infinity before the first key.
    """

    summed: Float[Tensor, "batch kv_heads features d_value"]
    normaliser: Float[Tensor, "batch kv_heads features"]
    largest: Float[Tensor, "batch kv_heads"]


def linear_attention_recurrent(
    query: Float[Tensor, "batch heads tokens d_head"],
    key: Float[Tensor, "batch kv_heads tokens d_head"],
    value: Float[Tensor, "batch kv_heads tokens d_value"],
    state: LinearState | None = None,
    *,
    feature_map: FeatureMap = elu_features,
) -> tuple[Float[Tensor, "batch heads tokens d_value"], LinearState]:
    r"""Causal linear attention as a recurrent network: add a token to both sums, then look it all up.

    $$S_t = S_{t-1} + \phi(k_t)\,v_t^\top, \qquad z_t = z_{t-1} + \phi(k_t), \qquad
      y_t = \frac{\phi(q_t)^\top S_t}{\phi(q_t)^\top z_t}$$

    Katharopoulos et al. (2020), equations 18 to 20. To decode, give one token at a time and the state that came back
    with the one before. Its size does not grow; a cache of keys and values would.

    Args:
        query, key, value: of the new tokens, one or many.
        state: after the tokens before them; nothing came before when left out.
        feature_map: as for `ttutor.efficient.linear.linear_attention`.

    Returns:
        What each new token receives, and the state after the last.

    Example:
        >>> from ttutor.efficient.linear import linear_attention
        >>> q, k, v = torch.randn(3, 1, 2, 5, 4)
        >>> first, state = linear_attention_recurrent(q[..., :4, :], k[..., :4, :], v[..., :4, :])
        >>> last, state = linear_attention_recurrent(q[..., 4:, :], k[..., 4:, :], v[..., 4:, :], state)
        >>> torch.allclose(torch.cat([first, last], dim=-2), linear_attention(q, k, v, causal=True), atol=1e-5)
        True
    """
    check_shapes(query=(query, "_ heads tokens d_head"), key=(key, "_ kv_heads tokens d_head"))
    q, k, log_size, v = prepare(query, key, value, None, None, feature_map)
    state = empty_state(k, v) if state is None else state
    contexts = []
    tokens = zip(q.split(1, dim=-2), k.unbind(dim=-2), log_size.unbind(dim=-1), v.unbind(dim=-2), strict=True)
    for q_t, k_t, size, v_t in tokens if key.shape[-2] else ():
        largest = torch.maximum(state.largest, size)
        old, new = relative(state.largest, largest), relative(size, largest)
        features = rearrange(new, SPREAD) * k_t
        written = einsum(
            features, v_t, "batch kv_heads features, batch kv_heads d_value -> batch kv_heads features d_value"
        )
        summed = rearrange(old, "batch kv_heads -> batch kv_heads 1 1") * state.summed + written
        normaliser = rearrange(old, SPREAD) * state.normaliser + features
        state = LinearState(summed, normaliser, largest)
        contexts.append(divide(*look_up(state, q_t)))
    context = torch.cat(contexts, dim=-2) if contexts else v.new_zeros(*q.shape[:-1], v.shape[-1])
    context = rearrange(context, "batch kv_heads group queries d_value -> batch (kv_heads group) queries d_value")
    return context.to(value.dtype), state


def prepare(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_real: Tensor | None,
    scale: float | None,
    feature_map: FeatureMap,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features of queries, by group of heads; features of keys and the logarithms of their sizes; values."""
    named = {
        "query": (query, "batch heads queries d_head"),
        "key": (key, "batch kv_heads keys d_head"),
        "value": (value, "batch kv_heads keys d_value"),
    }
    if is_real is not None:
        named["is_real"] = (is_real, "batch keys")
    check_shapes(**named)
    precise = torch.float64 if query.dtype == torch.float64 else torch.float32
    q, _ = feature_map(query.to(precise), scale)  # the size of a query's features cancels
    k, log_size = feature_map(key.to(precise), scale)
    log_size = torch.zeros_like(k[..., 0]) if log_size is None else log_size
    if is_real is not None:
        is_padding = rearrange(~is_real, "batch keys -> batch 1 keys 1")
        # A share of zero would not be enough: zero times infinity is no number.
        k, value = k.masked_fill(is_padding, 0.0), value.masked_fill(is_padding, 0.0)
        log_size = log_size.masked_fill(rearrange(is_padding, "batch 1 keys 1 -> batch 1 keys"), -torch.inf)
    q = rearrange(
        q, "batch (kv_heads group) queries features -> batch kv_heads group queries features", kv_heads=key.shape[1]
    )
    return q, k, log_size, value.to(precise)


def empty_state(k: Tensor, v: Tensor) -> LinearState:
    """Before the first key."""
    batch, kv_heads, _, features = k.shape
    nothing = k.new_zeros(batch, kv_heads, features)
    summed = k.new_zeros(batch, kv_heads, features, v.shape[-1])
    return LinearState(summed, nothing, torch.full_like(nothing[..., 0], -torch.inf))


def relative(size: Tensor, largest: Tensor) -> Tensor:
    """Sizes as shares of the largest one; zeros where there is none."""
    return (size - largest.masked_fill(largest == -torch.inf, 0.0)).exp()


def absorb(state: LinearState, k: Tensor, log_size: Tensor, v: Tensor) -> LinearState:
    """The state after all these keys."""
    if k.shape[-2] == 0:
        return state
    largest = torch.maximum(state.largest, reduce(log_size, "... keys -> ...", "max"))
    old = rearrange(relative(state.largest, largest), SPREAD)
    features = k * rearrange(relative(log_size, rearrange(largest, SPREAD)), SPREAD)
    return LinearState(
        summed=rearrange(old, SPREAD) * state.summed + einsum(features, v, WRITE),
        normaliser=old * state.normaliser + reduce(features, "... keys features -> ... features", "sum"),
        largest=largest,
    )


def look_up(state: LinearState, q: Tensor) -> tuple[Tensor, Tensor]:
    """What the queries find in a state: the weighted sum of values, and the sum of weights."""
    return einsum(q, state.summed, LOOK_UP), einsum(q, state.normaliser, TOTAL)


def divide(summed: Tensor, total: Tensor) -> Tensor:
    """The weighted mean; zeros for a query that found no key."""
    total = rearrange(total, SPREAD)
    return summed / total.masked_fill(total == 0, 1.0)
