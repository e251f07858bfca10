"""Wrong answers to the exercise on cross-attention, as students write them."""

import math

import torch
from einops import rearrange, reduce

SPLIT = "batch tokens (heads d_head) -> batch heads tokens d_head"
MERGE = "batch heads tokens d_head -> batch tokens (heads d_head)"


def _softmax(scores, mask):
    """The weights of the keys that may be seen; zeros for a query that may see none."""
    if mask is None:
        return scores.softmax(dim=-1)
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp() * mask
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)


def _attend(sources, maps, n_heads, mask, scale=None, normalise=_softmax, output=True):
    """Attention whose queries, keys and values come from three tensors, with one part or another changed."""
    *maps, w_output = maps
    q, k, v = (rearrange(x @ w.T, SPLIT, heads=n_heads) for x, w in zip(sources, maps, strict=True))
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    context = rearrange(normalise(scores, mask) @ v, MERGE)
    return context @ w_output.T if output else context


def kv_from_decoder(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    return _attend((hidden, hidden, hidden), (w_query, w_key, w_value, w_output), n_heads, None)


def kv_from_decoder_causal(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    mask = torch.ones(hidden.shape[1], hidden.shape[1]).tril().bool()
    return _attend((hidden, hidden, hidden), (w_query, w_key, w_value, w_output), n_heads, mask)


def q_from_encoder(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    return _attend((memory, hidden, hidden), (w_query, w_key, w_value, w_output), n_heads, None)


def all_from_encoder(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    return _attend((memory, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask)


def v_from_decoder(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    return _attend((hidden, memory, hidden), (w_query, w_key, w_value, w_output), n_heads, memory_mask)


def k_from_decoder(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    return _attend((hidden, hidden, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask)


def memory_beside_own_tokens(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    both = torch.cat([memory, hidden], dim=1)
    if memory_mask is not None:
        own = torch.ones(hidden.shape[0], 1, 1, hidden.shape[1], dtype=torch.bool)
        memory_mask = torch.cat([memory_mask, own], dim=-1)
    return _attend((hidden, both, both), (w_query, w_key, w_value, w_output), n_heads, memory_mask)


def causal_on_cross(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    causal = torch.ones(hidden.shape[1], memory.shape[1]).tril().bool()
    mask = causal if memory_mask is None else causal & memory_mask
    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, mask)


def causal_from_the_end(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    n_queries, n_keys = hidden.shape[1], memory.shape[1]
    causal = torch.ones(n_queries, n_keys).tril(n_keys - n_queries).bool()
    mask = causal if memory_mask is None else causal & memory_mask
    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, mask)


def no_memory_mask(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, None)


def polarity(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    mask = None if memory_mask is None else ~memory_mask
    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, mask)


def zeroed_memory(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    if memory_mask is not None:
        memory = memory * rearrange(memory_mask, "batch 1 1 source -> batch source 1")
    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, None)


def mask_after_softmax(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    def normalise(scores, mask):
        return scores.softmax(dim=-1) if mask is None else scores.softmax(dim=-1) * mask

    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask, None, normalise)


def tiny_fill(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    def normalise(scores, mask):
        return _softmax(scores if mask is None else scores.masked_fill(~mask, -1e-9), None)

    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask, None, normalise)


def multiplied_scores(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    def normalise(scores, mask):
        return (scores if mask is None else scores * mask).softmax(dim=-1)

    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask, None, normalise)


def nan_dead(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    def normalise(scores, mask):
        return (scores if mask is None else scores.masked_fill(~mask, -math.inf)).softmax(dim=-1)

    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask, None, normalise)


def mean_of_dead(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    def normalise(scores, mask):
        return (scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(dim=-1)

    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask, None, normalise)


def needs_a_mask(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    mask = memory_mask.bool()
    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, mask)


def inverts_no_mask(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    hides = ~memory_mask
    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, ~hides)


def softmax_twice(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    def normalise(scores, mask):
        return _softmax(scores, mask).softmax(dim=-1)

    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask, None, normalise)


def softmax_over_queries(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    def normalise(scores, mask):
        weights = scores.softmax(dim=-2)
        return weights if mask is None else weights * mask

    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask, None, normalise)


def no_softmax(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    def normalise(scores, mask):
        return scores if mask is None else scores * mask

    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask, None, normalise)


def no_scale(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask, 1.0)


def scale_d_model(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    scale = hidden.shape[-1] ** -0.5
    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), n_heads, memory_mask, scale)


def one_head(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    return _attend((hidden, memory, memory), (w_query, w_key, w_value, w_output), 1, memory_mask)


def no_output_map(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    maps = (w_query, w_key, w_value, w_output)
    return _attend((hidden, memory, memory), maps, n_heads, memory_mask, None, _softmax, False)


def weights_transposed(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    maps = (w_query.T, w_key.T, w_value.T, w_output.T)
    return _attend((hidden, memory, memory), maps, n_heads, memory_mask)


def keys_and_values_exchanged(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    return _attend((hidden, memory, memory), (w_query, w_value, w_key, w_output), n_heads, memory_mask)


def residual_inside(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    maps = (w_query, w_key, w_value, w_output)
    return hidden + _attend((hidden, memory, memory), maps, n_heads, memory_mask)


def mean_of_memory(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask):
    if memory_mask is None:
        summary = reduce(memory, "batch source d_model -> batch 1 d_model", "mean")
    else:
        is_real = rearrange(memory_mask, "batch 1 1 source -> batch source 1")
        summary = (memory * is_real).sum(dim=1, keepdim=True) / is_real.sum(dim=1, keepdim=True).clamp(min=1)
    return (summary @ w_value.T @ w_output.T).expand_as(hidden).clone()
