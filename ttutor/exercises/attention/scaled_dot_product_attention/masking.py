"""Mistakes about the mask: too late, upside down, too weak, or not at all. Wrong on purpose, hence unannotated."""

import math

import torch

from ttutor.exercises.attention.scaled_dot_product_attention.steps import blend, compare, distribute
from ttutor.exercises.exercise import Mistake


def mask_after_softmax(query, key, value, mask):
    return blend(compare(query, key).softmax(dim=-1) * mask, value)


def weights_times_float_mask(query, key, value, mask):
    return blend(compare(query, key).softmax(dim=-1) * mask.float(), value)


def masked_and_renormalised(query, key, value, mask):
    weights = compare(query, key).softmax(dim=-1) * mask
    return blend(weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-12), value)


def polarity(query, key, value, mask):
    return blend(distribute(compare(query, key), ~mask), value)


def tiny_fill(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, -1e-9).softmax(dim=-1), value)


def zero_fill(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, 0.0).softmax(dim=-1), value)


def mul_by_mask(query, key, value, mask):
    return blend((compare(query, key) * mask).softmax(dim=-1), value)


def mul_by_float_mask(query, key, value, mask):
    return blend((compare(query, key) * mask.float()).softmax(dim=-1), value)


def small_fill(query, key, value, mask):
    return blend(compare(query, key).masked_fill(~mask, -10.0).softmax(dim=-1), value)


def small_fill_guarded(query, key, value, mask):
    weights = compare(query, key).masked_fill(~mask, -10.0).softmax(dim=-1)
    return blend(weights * mask.any(dim=-1, keepdim=True), value)


def fill_of_ten_thousand(query, key, value, mask):
    weights = compare(query, key).masked_fill(~mask, -1e4).softmax(dim=-1)
    return blend(weights * mask.any(dim=-1, keepdim=True), value)


def add_bool(query, key, value, mask):
    return blend((compare(query, key) + mask).softmax(dim=-1), value)


def subtract_bool(query, key, value, mask):
    return blend((compare(query, key) - (~mask).to(query.dtype)).softmax(dim=-1), value)


def zero_times_inf(query, key, value, mask):
    return blend((compare(query, key) + ~mask * -math.inf).softmax(dim=-1), value)


def zero_times_inf_in_dtype(query, key, value, mask):
    return blend((compare(query, key) + (~mask).to(query.dtype) * -math.inf).softmax(dim=-1), value)


def ignore_mask(query, key, value, mask):
    return blend(compare(query, key).softmax(dim=-1), value)


def causal_uninvited(query, key, value, mask):
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    past = torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)
    return blend(distribute(compare(query, key), mask & past), value)


def mask_of_first_head(query, key, value, mask):
    return blend(distribute(compare(query, key), mask[:, :1]), value)


def mask_by_index(query, key, value, mask):
    scores = compare(query, key)
    scores[~mask] = -math.inf
    return blend(scores.softmax(dim=-1).nan_to_num(0.0), value)


def inplace_mask(query, key, value, mask):
    mask.logical_not_()
    return blend(compare(query, key).masked_fill(mask, -math.inf).softmax(dim=-1).nan_to_num(0.0), value)


MISTAKES = (
    Mistake(
        id="mask_after_softmax",
        says="Hidden keys get no weight, but the rest of their row no longer sums to 1. Take the hidden "
        "scores out before you normalise.",
        answers=(mask_after_softmax, weights_times_float_mask),
    ),
    Mistake(
        id="masked_and_renormalised",
        says="Masking after the softmax and dividing again works until one hidden score is much the largest: "
        "then the visible weights underflow to 0 first. Hide before the softmax.",
        answers=(masked_and_renormalised,),
    ),
    Mistake(
        id="polarity",
        says="You attend exactly to the keys that the mask hides. Here True means 'may attend'.",
        answers=(polarity,),
    ),
    Mistake(
        id="tiny_fill",
        says="Hidden keys still get weight: their score is about 0, and exp(0) = 1. That is what a fill of 0 "
        "or −1e-9 does, and multiplying scores by the mask. What score makes exp exactly 0?",
        answers=(tiny_fill, zero_fill, mul_by_mask, mul_by_float_mask),
    ),
    Mistake(
        id="small_fill",
        says="A little attention leaks to hidden keys, and the more the larger the scores are. −10 is not "
        "small beside your scores: what is smaller than every number?",
        answers=(small_fill, small_fill_guarded),
    ),
    Mistake(
        id="fill_of_ten_thousand",
        says="Hidden keys win where all that a query may see scores below −10,000, which float16 can hold. "
        "What is smaller than every number?",
        answers=(fill_of_ten_thousand,),
    ),
    Mistake(
        id="add_bool",
        says="You added the bool mask, which shifts scores by 1. It should take the hidden ones out of the "
        "softmax altogether: what must be added for that?",
        answers=(add_bool, subtract_bool),
    ),
    Mistake(
        id="zero_times_inf",
        says="Everything is NaN: 0 · ∞ is NaN, and your mask is multiplied by −∞. Choose between numbers "
        "(`masked_fill`, `torch.where`) instead of multiplying.",
        answers=(zero_times_inf, zero_times_inf_in_dtype),
    ),
    Mistake(
        id="ignore_mask",
        says="Your output is the same with and without the mask. Which step should use it?",
        answers=(ignore_mask,),
    ),
    Mistake(
        id="causal_uninvited",
        says="You hide the future although nobody asked for it. Whether attention is causal is for the mask to say.",
        answers=(causal_uninvited,),
    ),
    Mistake(
        id="mask_of_first_head",
        says="Every head gets the mask of the first one. Often the heads share a mask, whose second axis then has size "
        "one; here each may have its own. Which axes of the mask do you touch?",
        answers=(mask_of_first_head,),
    ),
    Mistake(
        id="mask_by_index",
        says="Your mask works only in full size. A padding mask has the axes `batch 1 1 keys` and cannot be "
        "used as an index; choose a way of hiding that broadcasts.",
        answers=(mask_by_index,),
    ),
    Mistake(
        id="inplace_mask",
        says="Your answer is right but the mask you were given now says the opposite. Methods that end in an "
        "underscore edit the caller's tensor.",
        answers=(inplace_mask,),
    ),
)
