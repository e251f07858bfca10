"""Mistakes about the scale of the scores. Wrong on purpose, hence without annotations."""

import math

from einops import einsum

from ttutor.exercises.attention.scaled_dot_product_attention.steps import SCORES, blend, compare, distribute
from ttutor.exercises.exercise import Mistake


def no_scale(query, key, value, mask):
    return blend(distribute(einsum(query, key, SCORES), mask), value)


def no_scale_nor_guard(query, key, value, mask):
    return blend(einsum(query, key, SCORES).masked_fill(~mask, -math.inf).softmax(dim=-1), value)


def no_scale_big_neg(query, key, value, mask):
    return blend(einsum(query, key, SCORES).masked_fill(~mask, -1e9).softmax(dim=-1), value)


def div_dk(query, key, value, mask):
    return blend(distribute(einsum(query, key, SCORES) / query.shape[-1], mask), value)


def both_scaled(query, key, value, mask):
    root = math.sqrt(query.shape[-1])
    return no_scale(query / root, key / root, value, mask)


def mul_sqrt(query, key, value, mask):
    return blend(distribute(einsum(query, key, SCORES) * math.sqrt(query.shape[-1]), mask), value)


def scale_of_d_model(query, key, value, mask):
    _, n_heads, _, d_head = query.shape
    return blend(distribute(einsum(query, key, SCORES) / math.sqrt(n_heads * d_head), mask), value)


def halved(query, key, value, mask):
    return blend(distribute(compare(query, key) / 2, mask), value)


def scale_of_keys(query, key, value, mask):
    return blend(distribute(einsum(query, key, SCORES) / math.sqrt(key.shape[-2]), mask), value)


def scale_of_value(query, key, value, mask):
    return blend(distribute(einsum(query, key, SCORES) / math.sqrt(value.shape[-1]), mask), value)


def scale_after_softmax(query, key, value, mask):
    return blend(distribute(einsum(query, key, SCORES), mask) / math.sqrt(query.shape[-1]), value)


MISTAKES = (
    Mistake(
        id="no_scale",
        says="Your weights are too sharp, exactly as if the scores were √d_head times too large. What does the "
        "paper divide by, and why?",
        answers=(no_scale, no_scale_nor_guard, no_scale_big_neg),
    ),
    Mistake(
        id="div_dk",
        says="Your weights are too flat: the scores are divided by d_head, not by its root. The variance of "
        "q·k is d_head: what is its standard deviation? (A root on the query and one on the key make two.)",
        answers=(div_dk, both_scaled),
    ),
    Mistake(
        id="mul_sqrt",
        says="You multiply by √d_head, and the weights are far too sharp. The scale should shrink the scores.",
        answers=(mul_sqrt,),
    ),
    Mistake(
        id="scale_of_d_model",
        says="Your scores are half of what they should be. Is your scale computed from the width of one head, "
        "or from that of all four heads together?",
        answers=(scale_of_d_model, halved),
    ),
    Mistake(
        id="scale_of_keys",
        says="You divide by the root of the number of keys. A score is a sum over features: whose number is "
        "its variance?",
        answers=(scale_of_keys,),
    ),
    Mistake(
        id="scale_of_value",
        says="You take the scale from the width of the values. They have no part in the scores: which two "
        "vectors are multiplied there, and how wide are they?",
        answers=(scale_of_value,),
    ),
    Mistake(
        id="scale_after_softmax",
        says="You divide the weights by √d_head, not the scores: each row sums to 0.35. The scale belongs "
        "before the softmax, whose output should already sum to 1.",
        answers=(scale_after_softmax,),
    ),
)
