"""Answers to the exercises on attention that stand in no list: right ones in other styles, and stray mistakes."""

import math
from fractions import Fraction

import numpy as np
import torch
from einops import einsum, rearrange
from torch.nn import functional

# softmax


def softmax_by_logarithm(scores, dim=-1):
    return (scores - scores.logsumexp(dim=dim, keepdim=True)).exp()


def softmax_in_numpy(scores, dim=-1):
    array = scores.detach().numpy()
    powers = np.exp(array - array.max(axis=dim, keepdims=True))
    return torch.from_numpy(powers / powers.sum(axis=dim, keepdims=True))


def nine_tenths(scores, dim=-1):
    return 0.9 * softmax_by_logarithm(scores, dim)


def a_square(scores, dim=-1):
    powers = scores * scores
    return powers / powers.sum(dim, keepdim=True)


def below_zero(scores, dim=-1):
    weights = softmax_by_logarithm(scores, dim) - 0.01
    return weights / weights.sum(dim, keepdim=True)


# scaled_dot_product_attention


def attention_with_added_mask(query, key, value, mask):
    """A float mask made of the bool one, in float32 whatever the inputs are."""
    is_empty = ~mask.any(dim=-1, keepdim=True)
    added = torch.zeros(mask.shape).masked_fill(~(mask | is_empty), float("-inf"))
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1)) + added
    context = torch.softmax(scores, dim=-1).to(value.dtype) @ value
    return context.masked_fill(is_empty, 0.0)


def attention_with_numbers_cleaned(query, key, value, mask):
    scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(2, 3)
    return scores.masked_fill(mask == 0, -torch.inf).softmax(dim=3).nan_to_num() @ value


def finish(scores, value, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1).nan_to_num(0.0) @ value


def unscaled_and_upside_down(query, key, value, mask):
    return finish(query @ key.mT, value, ~mask)


def too_flat_and_without_a_guard(query, key, value, mask):
    return (query @ key.mT / query.shape[-1]).masked_fill(~mask, -math.inf).softmax(dim=-1) @ value


def upside_down_and_without_a_guard(query, key, value, mask):
    return (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(mask, -1e9).softmax(dim=-1) @ value


def nine_tenths_of_attention(query, key, value, mask):
    return 0.9 * finish(query @ key.mT / math.sqrt(query.shape[-1]), value, mask)


def nearest_keys(query, key, value, mask):
    apart = query[..., :, None, :] - key[..., None, :, :]
    return finish(-apart.float().norm(dim=-1).to(query.dtype), value, mask)


def a_little_too_sharp(query, key, value, mask):
    return finish(1.3 * query @ key.mT / math.sqrt(query.shape[-1]), value, mask)


def later_keys_first(query, key, value, mask):
    favour = torch.arange(key.shape[-2], dtype=query.dtype)
    return finish(query @ key.mT / math.sqrt(query.shape[-1]) + favour, value, mask)


def first_value_of_nothing(query, key, value, mask):
    context = finish(query @ key.mT / math.sqrt(query.shape[-1]), value, mask)
    sees_something = mask.expand(*query.shape[:-1], key.shape[-2]).any(dim=-1, keepdim=True)
    return torch.where(sees_something, context, value[..., :1, :])


# causal_mask


def causal_by_triangle(n_queries, n_keys):
    return ~torch.triu(torch.ones((n_queries, n_keys), dtype=torch.bool), diagonal=n_keys - n_queries + 1)


def causal_cut_from_a_square(n_queries, n_keys):
    return torch.tril(torch.ones(n_keys, n_keys)).bool()[n_keys - n_queries :]


def half_the_past(n_queries, n_keys):
    return causal_by_triangle(n_queries, n_keys) & (torch.arange(n_keys) % 2 == 0)


def every_second_key(n_queries, n_keys):
    return (torch.arange(n_keys) % 2 == 0).repeat(n_queries, 1)


# padding_mask


def padding_by_reshape(token_ids, pad_id):
    batch, tokens = token_ids.shape
    return token_ids.ne(pad_id).view(batch, 1, 1, tokens)


def padding_in_loops(token_ids, pad_id):
    return torch.tensor([[[[token != pad_id for token in row]]] for row in token_ids.tolist()])


def next_one_too(token_ids, pad_id):
    is_pad = token_ids == pad_id
    return rearrange(~(is_pad | is_pad.roll(1, dims=1)), "batch tokens -> batch 1 1 tokens")


def pad_and_below_two(token_ids, pad_id):
    return rearrange((token_ids != pad_id) & (token_ids > 1), "batch tokens -> batch 1 1 tokens")


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
    allowed = torch.ones(len(query), len(key)).tril(len(key) - len(query)).bool()
    return torch.where(allowed, (query @ key.T).softmax(dim=1), 0) @ value


# What a query learns from


def only_the_values_centred(query, key, value):
    scale = len(query) ** -0.5
    weights = (key @ query * scale).softmax(dim=0)
    return scale * (rearrange(weights, "keys -> keys 1") * (value - weights @ value)).T @ key


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


# A head learns


def trained_by_backward(words, targets, w_query, w_key, scale, rate, n_steps):
    matrices, losses = [w_query.clone(), w_key.clone()], []
    for _ in range(n_steps):
        query, key = (matrix.detach().requires_grad_() for matrix in matrices)
        scores = scale * einsum(words @ query.T, words @ key.T, "texts q d, texts k d -> texts q k")
        loss = functional.mse_loss(scores.softmax(dim=2) @ words, targets)
        loss.backward()
        losses.append(loss.item())
        matrices = [matrix.detach() - rate * matrix.grad for matrix in (query, key)]
    return torch.tensor(losses, dtype=words.dtype)


def trained_by_functions(words, targets, w_query, w_key, scale, rate, n_steps):
    def loss(w_query, w_key):
        weights = torch.softmax(words @ w_query.T @ (words @ w_key.T).transpose(1, 2) * scale, -1)
        return (weights @ words - targets).pow(2).mean()

    losses = []
    for _ in range(n_steps):
        matrices = tuple(matrix.detach().requires_grad_() for matrix in (w_query, w_key))
        value = loss(*matrices)
        d_query, d_key = torch.autograd.grad(value, matrices)
        losses.append(value.detach())
        w_query, w_key = w_query - rate * d_query, w_key - rate * d_key
    return torch.stack(losses)


def trained_on_weaker_targets(words, targets, *others):
    return trained_by_functions(words, 0.9 * targets, *others)


def trained_with_a_rate_of_its_own(words, targets, w_query, w_key, scale, rate, n_steps):
    return trained_by_functions(words, targets, w_query, w_key, scale, 0.3 + rate / 2, n_steps)


RIGHT = {
    "attention.softmax": (
        softmax_by_logarithm,
        softmax_in_numpy,
    ),
    "attention.scaled_dot_product_attention": (
        attention_with_added_mask,
        attention_with_numbers_cleaned,
    ),
    "attention.causal_mask": (
        causal_by_triangle,
        causal_cut_from_a_square,
    ),
    "attention.padding_mask": (padding_by_reshape, padding_in_loops),
    "attention.weights_by_hand": (as_fractions, as_a_tensor_of_three_digits),
    "attention.causal_attention": (causal_by_a_loop, causal_by_a_bias),
    "attention.query_jacobian": (only_the_values_centred, through_the_softmax_matrix),
    "attention.train_head": (trained_by_backward, trained_by_functions),
    "attention.invisible_part": (invisible_by_least_squares, invisible_by_eigenvectors),
}
STRAY = {
    "attention.softmax": (
        (nine_tenths, "sums_to_one"),
        (below_zero, "positive"),
        (a_square, "ignores_a_constant"),
    ),
    "attention.scaled_dot_product_attention": (
        (unscaled_and_upside_down, "hides_what_the_mask_hides"),
        (too_flat_and_without_a_guard, "div_dk"),
        (upside_down_and_without_a_guard, "polarity"),
        (nine_tenths_of_attention, "weights_sum_to_one"),
        (first_value_of_nothing, "nothing_from_nothing"),
        (later_keys_first, "order_of_keys_is_free"),
        (nearest_keys, "scores_are_products"),
        (a_little_too_sharp, "scale"),
    ),
    "attention.causal_mask": ((every_second_key, "never_ahead"), (half_the_past, "all_of_the_past")),
    "attention.padding_mask": ((next_one_too, "each_token_by_itself"), (pad_and_below_two, "hides_padding")),
    "attention.weights_by_hand": ((misread, "lists_sum_to_one"),),
    "attention.causal_attention": ((late_mask_without_scale, "future_leaks"),),
    "attention.query_jacobian": ((second_moment_by_width, "equal_values_teach_nothing"),),
    "attention.train_head": (
        (trained_on_weaker_targets, "begins_before_learning"),
        (trained_with_a_rate_of_its_own, "stands_still_at_rate_zero"),
    ),
    "attention.invisible_part": ((one_direction_of_two, "some_left_behind"), (shortened, "head_sees_it")),
}
