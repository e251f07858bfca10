"""Answers to chapter 2's own exercises: right ones in other styles, and mistakes that stand in no list."""

from fractions import Fraction

import torch
from einops import einsum, rearrange
from torch.nn import functional

from ttutor.exercises.attention import causal_attention, query_jacobian

# By hand


def as_fractions():
    return (
        [Fraction(1, 8), Fraction(1, 4), Fraction(5, 8)],
        [Fraction(1, 30), Fraction(2, 15), Fraction(5, 6)],
        [Fraction(1, 3), Fraction(2, 3), 0],
    )


def as_a_tensor_of_three_digits():
    return torch.tensor([[0.125, 0.25, 0.625], [0.03333, 0.1333, 0.8333], [0.3333, 0.6667, 0]])


def misread():
    return [[1 / 8, 2 / 8, 5 / 8], [1 / 30, 4 / 30, 24 / 30], [1 / 3, 2 / 3, 0.0]]


# A lookup with a temperature


def lookup_by_a_loop(query, key, value, temperature):
    scores = [sum(q * k for q, k in zip(query, row, strict=True)) / temperature for row in key]
    powers = [torch.exp(score - max(scores)) for score in scores]
    return sum(power / sum(powers) * row for power, row in zip(powers, value, strict=True))


def lookup_by_logarithms(query, key, value, temperature):
    scores = key.mv(query) / temperature
    return (scores - scores.logsumexp(dim=0)).exp() @ value


def lookup_twice_wrong(query, key, value, temperature):
    scores = key @ query / temperature
    return (scores - scores.max()).exp() @ value / len(key) * 5 + value.sum(dim=0)


# Causal attention


def causal_by_a_loop(query, key, value):
    rows = []
    for i, one in enumerate(query):
        n_seen = i + 1 + len(key) - len(query)
        rows.append((key[:n_seen] @ one / len(one) ** 0.5).softmax(dim=0) @ value[:n_seen])
    return torch.stack(rows)


def causal_by_a_bias(query, key, value):
    future = torch.ones(len(query), len(key), dtype=torch.bool).triu(len(key) - len(query) + 1)
    bias = torch.zeros(len(query), len(key), dtype=query.dtype).masked_fill(future, float("-inf"))
    return functional.softmax(torch.addmm(bias, query, key.T, alpha=len(query[0]) ** -0.5), dim=1) @ value


def late_mask_without_scale(query, key, value):
    allowed = causal_attention._allowed(query, key)
    return torch.where(allowed, (query @ key.T).softmax(dim=1), 0) @ value


# What a query learns from


def only_the_values_centred(query, key, value):
    scale, weights, output, _ = query_jacobian._parts(query, key, value)
    return scale * (rearrange(weights, "keys -> keys 1") * (value - output)).T @ key


def through_the_softmax_matrix(query, key, value):
    weights = (key @ query / len(query) ** 0.5).softmax(dim=0)
    return value.T @ (weights.diag() - weights.outer(weights)) @ key / len(query) ** 0.5


def second_moment_by_width(query, key, value):
    weights = (key @ query / len(query) ** 0.5).softmax(dim=0)
    return einsum(weights, value, key, "keys, keys d_value, keys d_head -> d_value d_head") / len(query)


# What a head cannot see


def invisible_by_least_squares(words, w_query, w_key, w_value):
    stacked = torch.cat([w_query, w_key, w_value])
    seen = torch.linalg.lstsq(stacked, stacked @ words.T, driver="gelsd", rcond=1e-9).solution
    return words - seen.T


def invisible_by_eigenvectors(words, w_query, w_key, w_value):
    sizes, directions = torch.linalg.eigh(w_query.T @ w_query + w_key.T @ w_key + w_value.T @ w_value)
    unseen = directions[:, sizes < 1e-9 * sizes.max()]
    return words @ unseen @ unseen.T


def one_direction_of_two(words, w_query, w_key, w_value):
    direction = torch.linalg.svd(torch.cat([w_query, w_key, w_value]))[2][-1]
    return (words @ direction).outer(direction)


def shortened(words, w_query, w_key, w_value):
    return 0.5 * words


RIGHT = {
    "attention.weights_by_hand": (as_fractions, as_a_tensor_of_three_digits),
    "attention.soft_lookup": (lookup_by_a_loop, lookup_by_logarithms),
    "attention.causal_attention": (causal_by_a_loop, causal_by_a_bias),
    "attention.query_jacobian": (only_the_values_centred, through_the_softmax_matrix),
    "attention.invisible_part": (invisible_by_least_squares, invisible_by_eigenvectors),
}
STRAY = {
    "attention.weights_by_hand": ((misread, "lists_sum_to_one"),),
    "attention.soft_lookup": ((lookup_twice_wrong, "within_the_values"),),
    "attention.causal_attention": ((late_mask_without_scale, "future_leaks"),),
    "attention.query_jacobian": ((second_moment_by_width, "equal_values_teach_nothing"),),
    "attention.invisible_part": ((one_direction_of_two, "some_left_behind"), (shortened, "head_sees_it")),
}
