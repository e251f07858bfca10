"""Mistakes about what is compared, what is blended and what comes back. Wrong on purpose, hence without annotations."""

import math

import torch
from einops import rearrange

from ttutor.exercises.attention.scaled_dot_product_attention.scale import no_scale
from ttutor.exercises.attention.scaled_dot_product_attention.steps import blend, compare, distribute
from ttutor.exercises.exercise import Mistake


def returns_weights(query, key, value, mask):
    return distribute(compare(query, key), mask)


def blends_keys(query, key, value, mask):
    return blend(distribute(compare(query, key), mask), key)


def qk_swapped(query, key, value, mask):
    return blend(distribute(compare(key, query), mask), value)


def qk_swapped_by_where(query, key, value, mask):
    return blend(torch.where(mask, compare(key, query), -math.inf).softmax(dim=-1), value)


def merged_heads(query, key, value, mask):
    context = blend(distribute(compare(query, key), mask), value)
    return rearrange(context, "batch heads queries d_value -> batch queries (heads d_value)")


def casts_to_float32(query, key, value, mask):
    return blend(distribute(compare(query.float(), key.float()), mask), value.float())


def detached(query, key, value, mask):
    return blend(distribute(compare(query.detach(), key.detach()), mask), value)


def through_numpy(query, key, value, mask):
    weights = distribute(compare(query, key), mask)
    return torch.from_numpy(blend(weights, value).detach().numpy())


def inplace_q(query, key, value, mask):
    query /= math.sqrt(query.shape[-1])
    return no_scale(query, key, value, mask)


MISTAKES = (
    Mistake(
        id="returns_weights",
        says="This has the shape of the weights: its last axis is the keys. One step is missing: apply them to "
        "the values.",
        answers=(returns_weights,),
    ),
    Mistake(
        id="blends_keys",
        says="The result is as wide as a key: you blend the keys. They are there to be found; what is handed "
        "over are the values.",
        answers=(blends_keys,),
    ),
    Mistake(
        id="qk_swapped",
        says="Rows of the score matrix should be queries and columns keys; yours are the other way round, "
        "which looks right only where there are as many of both.",
        answers=(qk_swapped, qk_swapped_by_where),
    ),
    Mistake(
        id="merged_heads",
        says="The numbers are right but the heads are already merged. Here each head keeps its own axis, the "
        "second one.",
        answers=(merged_heads,),
    ),
    Mistake(
        id="casts_to_float32",
        says="Inputs in float64 come back in float32. Keep the dtype that you are given: where do you name "
        "one, or make a tensor without asking for the input's?",
        answers=(casts_to_float32,),
    ),
    Mistake(
        id="detached",
        says="The output is right, but no gradient reaches the query: with `.detach()`, `.numpy()`, `.item()` "
        "or `.data` something leaves autograd, and the projections before it can never learn.",
        answers=(detached, through_numpy),
    ),
    Mistake(
        id="inplace_q",
        says="Your answer is right but the query you were given has changed: the next call with it would be "
        "wrong. An operator such as `/=` edits the caller's tensor.",
        answers=(inplace_q,),
    ),
)
