"""Answers to the exercises on multihead that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch
from einops import rearrange
from torch.nn import functional


def by_view_and_transpose(hidden, w_query, w_key, w_value, w_output, n_heads):
    batch, tokens, d_model = hidden.shape
    d_head = d_model // n_heads
    parts = [functional.linear(hidden, weight) for weight in (w_query, w_key, w_value)]
    q, k, v = (part.view(batch, tokens, n_heads, d_head).transpose(1, 2) for part in parts)
    scores = q @ k.transpose(-2, -1) / d_head**0.5
    future = torch.triu(torch.ones(tokens, tokens), diagonal=1).bool()
    context = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ v
    return functional.linear(context.transpose(1, 2).contiguous().view(batch, tokens, d_model), w_output)


def by_einsum(hidden, w_query, w_key, w_value, w_output, n_heads):
    d_model = hidden.shape[-1]
    queries, keys, values = (weight.reshape(n_heads, -1, d_model) for weight in (w_query, w_key, w_value))
    q = torch.einsum("btm,hdm->bhtd", hidden, queries) * (d_model // n_heads) ** -0.5
    k, v = (torch.einsum("btm,hdm->bhtd", hidden, weight) for weight in (keys, values))
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
    tokens = torch.arange(hidden.shape[1])
    weights = torch.where(tokens[:, None] >= tokens, scores, -1e9).softmax(-1)
    return torch.einsum("bhqk,bhkd,mhd->bqm", weights, v, w_output.reshape(d_model, n_heads, -1))


def reshaped_and_unscaled(hidden, w_query, w_key, w_value, w_output, n_heads):
    batch, tokens, d_model = hidden.shape
    parts = [hidden @ weight.T for weight in (w_query, w_key, w_value)]
    q, k, v = (part.reshape(batch, n_heads, tokens, -1) for part in parts)
    weights = (q @ k.mT).masked_fill(~torch.ones(tokens, tokens).bool().tril(), -math.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).reshape(batch, tokens, d_model) @ w_output.T


def only_two_tokens_back(hidden, w_query, w_key, w_value, w_output, n_heads):
    batch, tokens, d_model = hidden.shape
    parts = [hidden @ weight.T for weight in (w_query, w_key, w_value)]
    q, k, v = (part.reshape(batch, tokens, n_heads, -1).transpose(1, 2) for part in parts)
    allowed = torch.ones(tokens, tokens).bool().tril().triu(-1)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~allowed, -math.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).reshape(batch, tokens, d_model) @ w_output.T


def less_the_mean_sentence(hidden, w_query, w_key, w_value, w_output, n_heads):
    return by_einsum(hidden - 0.1 * hidden.mean(dim=0, keepdim=True), w_query, w_key, w_value, w_output, n_heads)


def output_weights_normalised(hidden, w_query, w_key, w_value, w_output, n_heads):
    return by_einsum(hidden, w_query, w_key, w_value, w_output / w_output.norm(), n_heads)


def values_squared(hidden, w_query, w_key, w_value, w_output, n_heads):
    return by_einsum(hidden, w_query, w_key, w_value * w_value.abs(), w_output, n_heads)


def nine_tenths(hidden, w_query, w_key, w_value, w_output, n_heads):
    return 0.9 * by_einsum(hidden, w_query, w_key, w_value, w_output, n_heads)


def keys_normalised(hidden, w_query, w_key, w_value, w_output, n_heads):
    return by_einsum(hidden, w_query, w_key / w_key.norm(), w_value, w_output, n_heads)


def heads_in_ranks(hidden, w_query, w_key, w_value, w_output, n_heads):
    """Later heads look more sharply than earlier ones."""
    d_head = len(w_query) // n_heads
    rank = torch.arange(n_heads, dtype=hidden.dtype).repeat_interleave(d_head)
    return by_einsum(hidden, w_query * (1 + rank)[:, None], w_key, w_value, w_output, n_heads)


# Split


def split_by_view(vectors, n_heads):
    batch, tokens, d_model = vectors.shape
    return vectors.view(batch, tokens, n_heads, d_model // n_heads).transpose(1, 2)


def split_by_slices(vectors, n_heads):
    width = vectors.shape[-1] // n_heads
    return torch.stack([vectors[..., head * width : (head + 1) * width] for head in range(n_heads)], dim=1)


def split_and_shifted(vectors, n_heads):
    return split_by_view(vectors.roll(1, dims=-1), n_heads)


# Writes


def writes_by_masking(context, w_output):
    batch, heads, queries, d_head = context.shape
    parts = []
    for head in range(heads):
        alone = torch.zeros_like(context)
        alone[:, head] = context[:, head]
        parts.append(functional.linear(alone.transpose(1, 2).reshape(batch, queries, heads * d_head), w_output))
    return torch.stack(parts, dim=1)


def writes_by_einsum(context, w_output):
    heads, d_head = context.shape[1], context.shape[3]
    return torch.einsum("bhqd,mhd->bhqm", context, w_output.reshape(-1, heads, d_head))


def writes_and_a_bit_more(context, w_output):
    return writes_by_einsum(context, w_output) + 0.01


def writes_dealt_out(context, w_output):
    """The sum is right, the shares are not."""
    parts = writes_by_einsum(context, w_output)
    return 0.5 * parts + 0.5 * parts.roll(1, dims=1)


# Groups


def grouped_by_interleaving(query, key, value):
    group = query.shape[1] // key.shape[1]
    key, value = (part.repeat_interleave(group, dim=1) for part in (key, value))
    return (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1) @ value


def grouped_head_by_head(query, key, value):
    group = query.shape[1] // key.shape[1]
    out = []
    for head in range(query.shape[1]):
        scores = query[:, head] @ key[:, head // group].transpose(-1, -2) * query.shape[-1] ** -0.5
        out.append(torch.softmax(scores, dim=-1) @ value[:, head // group])
    return torch.stack(out, 1)


def grouped_backwards(query, key, value):
    return grouped_by_interleaving(query, key.flip(1), value.flip(1))


def grouped_too_faint(query, key, value):
    return 0.9 * grouped_by_interleaving(query, key, value)


# Loading


def loaded_by_torch(hidden, w_in, w_output, n_heads):
    batch, tokens, d_model = hidden.shape
    q, k, v = functional.linear(hidden, w_in).view(batch, tokens, 3, n_heads, -1).permute(2, 0, 3, 1, 4)
    weights = torch.softmax(q @ k.mT / (d_model // n_heads) ** 0.5, dim=-1)
    return functional.linear((weights @ v).transpose(1, 2).flatten(2), w_output)


def loaded_head_by_head(hidden, w_in, w_output, n_heads):
    width = hidden.shape[-1] // n_heads
    total = 0
    for rows in torch.arange(hidden.shape[-1]).split(width):
        q, k, v = (hidden @ part[rows].T for part in w_in.chunk(3))
        total = total + (q @ k.mT / width**0.5).softmax(-1) @ v @ w_output[:, rows].T
    return total


def loaded_in_another_order(hidden, w_in, w_output, n_heads):
    parts = rearrange(w_in, "(three d_out) d_in -> three d_out d_in", three=3).flip(0)
    return loaded_by_torch(hidden, rearrange(parts, "three d_out d_in -> (three d_out) d_in"), w_output, n_heads)


# Overlap


def overlap_by_projections(w_one, w_other):
    one, other = (w.T @ torch.linalg.inv(w @ w.T) @ w for w in (w_one, w_other))
    return torch.linalg.svdvals(one @ other)[: min(len(w_one), len(w_other))]


def overlap_by_orthonormal_rows(w_one, w_other):
    one, other = (torch.linalg.svd(w)[2][: len(w)] for w in (w_one, w_other))
    return torch.linalg.svd(one @ other.T)[1]


def overlap_with_a_floor(w_one, w_other):
    return overlap_by_orthonormal_rows(w_one, w_other) * 0.9


def overlap_by_gram(w_one, w_other):
    return torch.linalg.svdvals(w_one @ w_other.T).sqrt()


RIGHT = {
    "multihead.multi_head_attention": (
        by_view_and_transpose,
        by_einsum,
    ),
    "multihead.split_heads": (split_by_view, split_by_slices),
    "multihead.head_contributions": (writes_by_masking, writes_by_einsum),
    "multihead.grouped_attention": (grouped_by_interleaving, grouped_head_by_head),
    "multihead.loaded_heads": (loaded_by_torch, loaded_head_by_head),
    "multihead.subspace_overlap": (overlap_by_projections, overlap_by_orthonormal_rows),
}
STRAY = {
    "multihead.multi_head_attention": (
        (reshaped_and_unscaled, "causal"),
        (only_two_tokens_back, "sees_the_past"),
        (less_the_mean_sentence, "batch_independent"),
        (output_weights_normalised, "linear_in_output_weights"),
        (values_squared, "linear_in_value_weights"),
        (nine_tenths, "weights_sum_to_one"),
        (keys_normalised, "scores_are_products"),
        (heads_in_ranks, "heads_are_alike"),
    ),
    "multihead.split_heads": ((split_and_shifted, "each_number_in_its_place"),),
    "multihead.head_contributions": (
        (writes_and_a_bit_more, "sum_is_the_output"),
        (writes_dealt_out, "silent_head_writes_nothing"),
    ),
    "multihead.grouped_attention": ((grouped_backwards, "wrong_partner"), (grouped_too_faint, "no_blend")),
    "multihead.loaded_heads": ((loaded_in_another_order, "heads_one_by_one"),),
    "multihead.subspace_overlap": (
        (overlap_with_a_floor, "equal_spaces"),
        (overlap_by_gram, "between_0_and_1"),
    ),
}
