r"""Linear attention: weights that are dot products of features, so that the keys can be summed before any query comes.

$$y_i = \frac{\phi(q_i)^\top \sum_j \phi(k_j)\,v_j^\top}{\phi(q_i)^\top \sum_j \phi(k_j)}$$

Katharopoulos et al. (2020), equations 4 to 6. **This is another function than softmax attention**: the exponential of
$q^\top k$ has no finite feature map. With `ttutor.efficient.FavorFeatures` it approximates it; with the default map,
$\mathrm{elu} + 1$, it does not, and a model must have been trained with it.

One function, two programs. `linear_attention_recurrent` keeps both sums and adds one token at a time: a state of fixed
size, for decoding. `linear_attention` goes chunk by chunk, a small table within each and the sums between them: for
training, with work and memory linear in the length. It follows the protocol of attention functions,
`MultiHeadAttention(attend=...)` takes it.
"""

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.efficient.features import FeatureMap, elu_features
from ttutor.efficient.linear_state import SPREAD, LinearState, absorb, divide, empty_state, look_up, prepare, relative
from ttutor.efficient.padding import is_same_for_all_queries, real_keys
from ttutor.errors import SettingError
from ttutor.masks import Mask, causal_mask, combine_masks

CHUNK = 128

SCORES = "batch kv_heads group queries features, batch kv_heads keys features -> batch kv_heads group queries keys"
BLEND = "batch kv_heads group queries keys, batch kv_heads keys d_value -> batch kv_heads group queries d_value"
FOR_EACH_QUERY = "batch kv_heads queries -> batch kv_heads 1 queries"


def linear_attention(
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
    feature_map: FeatureMap = elu_features,
) -> Float[Tensor, "batch heads queries d_value"]:
    """Linear attention for all queries at once, in time and memory linear in the length. Not softmax attention.

    Katharopoulos et al. (2020), section 3.2 to 3.4. The causal sums are taken in chunks, so that a backward pass keeps
    one state for each chunk rather than for each token. Half precision is summed in float32.

    Args:
        query, key, value, causal: as for `ttutor.attention.scaled_dot_product_attention`.
        mask: `Mask` with causal and key lengths, or a bool tensor that is the same for all queries and heads, as
            `ttutor.masks.padding_mask` gives it.
        window, bias, dropout: part of the protocol; must be left out.
        scale: handed to the feature map.
        feature_map: makes features of queries and of keys.

    Example:
        >>> query = torch.zeros(1, 1, 1, 2)  # equally near to all keys that are alike
        >>> linear_attention(query, torch.ones(1, 1, 4, 2), torch.arange(4.0).reshape(1, 1, 4, 1))
        tensor([[[[1.5000]]]])
    """
    structure = combine_masks(mask, Mask(causal=causal, window=window))
    if structure.window is not None or bias is not None or dropout > 0 or not is_same_for_all_queries(structure.dense):
        raise SettingError(
            "linear attention sums over the keys once for all queries: it takes causal masks and padding, but no "
            "window, bias, dropout or mask that differs between queries or heads; eager_attention takes all of "
            f"them, as another function. Came: window={structure.window}, bias: {bias is not None}, {dropout=}, "
            f"mask: {None if structure.dense is None else tuple(structure.dense.shape)}"
        )
    is_real = real_keys(structure, key)
    q, k, log_size, v = prepare(query, key, value, is_real, scale, feature_map)
    if structure.causal:
        context = _chunk_by_chunk(q, k, log_size, v)
    else:
        context = divide(*look_up(absorb(empty_state(k, v), k, log_size, v), q))
    context = rearrange(context, "batch kv_heads group queries d_value -> batch (kv_heads group) queries d_value")
    return context.to(value.dtype)


def _chunk_by_chunk(q: Tensor, k: Tensor, log_size: Tensor, v: Tensor) -> Tensor:
    """What each query receives from the keys up to its own place: a state for what lies before its chunk."""
    offset = k.shape[-2] - q.shape[-2]  # query i stands at key position i + offset
    seen_by_all, blind = max(0, offset), max(0, -offset)
    state = absorb(empty_state(k, v), k[..., :seen_by_all, :], log_size[..., :seen_by_all], v[..., :seen_by_all, :])
    contexts = [v.new_zeros(*q.shape[:-2], blind, v.shape[-1])]  # queries that stand before all keys
    # Cut all chunks at once: the gradient of a slice is as long as what it was cut from, that of a split is not.
    chunks = (
        q[..., blind:, :].split(CHUNK, dim=-2),
        k[..., seen_by_all:, :].split(CHUNK, dim=-2),
        log_size[..., seen_by_all:].split(CHUNK, dim=-1),
        v[..., seen_by_all:, :].split(CHUNK, dim=-2),
    )
    for queries, *tokens in zip(*chunks, strict=True):
        contexts.append(_within_chunk(state, queries, *tokens))
        state = absorb(state, *tokens)
    return torch.cat(contexts, dim=-2)


def _within_chunk(state: LinearState, q: Tensor, k: Tensor, log_size: Tensor, v: Tensor) -> Tensor:
    """What each query of a chunk receives from the keys before the chunk and, causally, from those in it.

    Sizes are taken as shares of the largest *so far*, query by query, so that no later key can change a rounding.
    """
    before = rearrange(state.largest, SPREAD)
    largest = torch.maximum(log_size.cummax(dim=-1).values, before)
    exponents = rearrange(log_size, "... keys -> ... 1 keys").masked_fill(
        ~causal_mask(k.shape[-2], device=k.device), -torch.inf
    )
    shares = relative(exponents, rearrange(largest, SPREAD))
    scores = einsum(q, k, SCORES) * rearrange(shares, "batch kv_heads queries keys -> batch kv_heads 1 queries keys")
    summed, total = look_up(state, q)
    old = rearrange(relative(before, largest), FOR_EACH_QUERY)
    summed = rearrange(old, SPREAD) * summed + einsum(scores, v, BLEND)
    return divide(summed, old * total + reduce(scores, "... queries keys -> ... queries", "sum"))
