"""The steps of attention as they should be, for mistakes that go wrong in one of the others."""

import math

from einops import einsum

SCORES = "batch heads queries d_head, batch heads keys d_head -> batch heads queries keys"
BLEND = "batch heads queries keys, batch heads keys d_value -> batch heads queries d_value"


def compare(query, key):
    """The scores as they should be."""
    return einsum(query, key, SCORES) / math.sqrt(query.shape[-1])


def distribute(scores, mask, dim=-1):
    """The weights as they should be, given the scores."""
    return scores.masked_fill(~mask, -math.inf).softmax(dim=dim).nan_to_num(0.0)


def blend(weights, value):
    """The context as it should be, given the weights."""
    return einsum(weights, value, BLEND)
