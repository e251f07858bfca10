"""Mistakes about queries that may see nothing. Wrong on purpose, hence without annotations."""

import math

import torch

from ttutor.exercises.attention.scaled_dot_product_attention.steps import blend, compare
from ttutor.exercises.exercise import Mistake


def nan_dead(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, -math.inf).softmax(dim=-1), value)


def nan_dead_added(query, key, value, mask):
    added = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -math.inf)
    return blend((compare(query, key) + added).softmax(dim=-1), value)


def big_neg_uniform(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, -1e9).softmax(dim=-1), value)


def lowest_number_uniform(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, torch.finfo(query.dtype).min).softmax(dim=-1), value)


def big_neg_guarded(query, key, value, mask):
    weights = compare(query, key).masked_fill(~mask, -1e9).softmax(dim=-1)
    return blend(weights * mask.any(dim=-1, keepdim=True), value)


def nan_gradient(query, key, value, mask):
    added = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -math.inf)
    weights = (compare(query, key) + added).softmax(dim=-1)
    return blend(torch.where(mask.any(dim=-1, keepdim=True), weights, 0.0), value)


MISTAKES = (
    Mistake(
        id="nan_dead",
        says="Query 1 of the first sentence may attend to nothing: its softmax sees only −∞ and gives 0/0, "
        "NaN. We define its output as 0. Where could you catch such rows?",
        answers=(nan_dead, nan_dead_added),
    ),
    Mistake(
        id="big_neg_uniform",
        says="A query that may see nothing gets the average of all values from you: with one large negative "
        "number everywhere its scores are equal. It should get 0. (−1e9 does not fit a float16 either.)",
        answers=(big_neg_uniform, lowest_number_uniform),
    ),
    Mistake(
        id="big_neg_guarded",
        says="Right in float32, an error in float16: −1e9 does not fit there. −∞ fits every dtype, as does "
        "`torch.finfo(dtype).min`.",
        answers=(big_neg_guarded,),
    ),
    Mistake(
        id="nan_gradient",
        says="Forward is right and backward is NaN: for rows without a key the NaN is hidden after the softmax, "
        "not avoided. Make their scores finite before it.",
        answers=(nan_gradient,),
    ),
)
