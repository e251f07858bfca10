"""Mistakes about the softmax. Wrong on purpose, hence without annotations."""

import math

from ttutor.exercises.attention.scaled_dot_product_attention.steps import blend, compare, distribute
from ttutor.exercises.exercise import Mistake


def softmax_q(query, key, value, mask):
    return blend(distribute(compare(query, key), mask, dim=-2), value)


def softmax_heads(query, key, value, mask):
    return blend(distribute(compare(query, key), mask, dim=1), value)


def softmax_q_of_large(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, -1e9).softmax(dim=-2), value)


def softmax_heads_of_large(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, -1e9).softmax(dim=1), value)


def softmax_q_of_infinite(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, -math.inf).softmax(dim=-2), value)


def softmax_heads_of_infinite(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, -math.inf).softmax(dim=1), value)


def softmax_twice(query, key, value, mask):
    return blend(distribute(compare(query, key), mask).softmax(dim=-1), value)


def masked_between_two(query, key, value, mask):
    return blend(distribute(compare(query, key).softmax(dim=-1), mask), value)


def no_softmax(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, 0.0), value)


def sigmoid(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, -math.inf).sigmoid(), value)


def hardmax(query, key, value, mask):
    scores = compare(query, key).masked_fill(~mask, -math.inf)
    return blend((scores == scores.amax(dim=-1, keepdim=True)) * mask.to(query.dtype), value)


def unstable_softmax(query, key, value, mask):
    powers = compare(query, key).exp() * mask
    return blend(powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-12), value)


MISTAKES = (
    Mistake(
        id="softmax_q",
        says="You normalise over the queries. Each *query* distributes its weight over keys: which axis are they?",
        answers=(softmax_q, softmax_q_of_large, softmax_q_of_infinite),
    ),
    Mistake(
        id="softmax_heads",
        says="You normalise over the heads, so that they compete for a key. Inside each head, each query "
        "distributes its weight over the keys.",
        answers=(softmax_heads, softmax_heads_of_large, softmax_heads_of_infinite),
    ),
    Mistake(
        id="softmax_twice",
        says="You take the softmax of weights that have been through one already: it makes them almost equal, since "
        "none is far from another any more. Once is enough.",
        answers=(softmax_twice, masked_between_two),
    ),
    Mistake(
        id="no_softmax",
        says="Your weights are the raw scores: they are negative here and there, and their sum is anything. "
        "What makes shares of them?",
        answers=(no_softmax,),
    ),
    Mistake(
        id="sigmoid",
        says="You judge every key by itself with a sigmoid. Keys should compete for a query's attention, which "
        "sums to 1.",
        answers=(sigmoid,),
    ),
    Mistake(
        id="hardmax",
        says="Each query gets the value of its best key alone. Attention blends: the others keep a share, and "
        "with it a gradient.",
        answers=(hardmax,),
    ),
    Mistake(
        id="unstable_softmax",
        says="Right for small scores, NaN for large ones: you exponentiate them as they are. Take the row's "
        "maximum off first, or use a softmax that does.",
        answers=(unstable_softmax,),
    ),
)
