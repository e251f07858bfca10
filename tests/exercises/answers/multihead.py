"""Answers to the exercise on multi-head attention that stand in no list: right ones, and stray mistakes."""

import math

import torch
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


def head_after_head(hidden, w_query, w_key, w_value, w_output, n_heads):
    d_head = hidden.shape[-1] // n_heads
    out = torch.zeros_like(hidden)
    for head in range(n_heads):
        rows = slice(head * d_head, (head + 1) * d_head)
        q, k, v = hidden @ w_query[rows].T, hidden @ w_key[rows].T, hidden @ w_value[rows].T
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d_head)
        scores = scores + torch.full_like(scores, -torch.inf).triu(1)
        out = out + scores.softmax(-1) @ v @ w_output[:, rows].T
    return out


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


RIGHT = {
    "multihead.multi_head_attention": (
        by_view_and_transpose,
        head_after_head,
        by_einsum,
    )
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
    )
}
