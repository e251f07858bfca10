"""The steps of multi-head attention as they should be, for mistakes that go wrong in one of the others."""

import math

import torch
from einops import einsum, rearrange

SPLIT = "batch tokens (heads d_head) -> batch heads tokens d_head"
MERGE = "batch heads tokens d_head -> batch tokens (heads d_head)"
SCORES = "batch heads queries d_head, batch heads keys d_head -> batch heads queries keys"
BLEND = "batch heads queries keys, batch heads keys d_head -> batch heads queries d_head"


def linear(hidden, weight):
    """Apply a weight as `nn.Linear` does."""
    return einsum(hidden, weight, "... d_in, d_out d_in -> ... d_out")


def project(hidden, w_query, w_key, w_value):
    """Queries, keys and values of all heads together."""
    return linear(hidden, w_query), linear(hidden, w_key), linear(hidden, w_value)


def split(vectors, n_heads):
    """Give each head its own axis."""
    return rearrange(vectors, SPLIT, heads=n_heads)


def heads_of(hidden, w_query, w_key, w_value, n_heads):
    """Queries, keys and values, split into heads."""
    return tuple(split(vectors, n_heads) for vectors in project(hidden, w_query, w_key, w_value))


def past(n_tokens):
    """True where a token may look."""
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()


def compare(q, k):
    """The scores, scaled."""
    return einsum(q, k, SCORES) / math.sqrt(q.shape[-1])


def hide_future(scores):
    """The scores, without those of later keys."""
    return scores.masked_fill(~past(scores.shape[-1]), -math.inf)


def attend(q, k, v):
    """Causal attention inside each head."""
    return einsum(hide_future(compare(q, k)).softmax(dim=-1), v, BLEND)


def merge(context):
    """Lay the heads side by side."""
    return rearrange(context, MERGE)
