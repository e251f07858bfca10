"""Wrong answers to the exercise on the key/value cache, as students write them."""

import math

import torch

from ttutor.attention import scaled_dot_product_attention
from ttutor.masks import causal_mask


def _with_positions(hidden, cached_key, position_table, offset=0):
    start = cached_key.shape[1] + offset
    return hidden + position_table[start : start + hidden.shape[1]]


def _attend(q, k, v):
    return scaled_dot_product_attention(q, k, v, causal=True)


def pos0(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = hidden + position_table[: hidden.shape[1]]
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def pos_plus_1(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table, offset=1)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def same_position(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = hidden + position_table[cached_key.shape[1]]
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def no_positions(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def value_without_position(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    placed = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, placed @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(placed @ w_query.T, key, value), key, value


def overwrite(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key, value = hidden @ w_key.T, hidden @ w_value.T
    return _attend(hidden @ w_query.T, key, value), key, value


def returns_new_only(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), hidden @ w_key.T, hidden @ w_value.T


def returns_old(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), cached_key, cached_value


def prepend(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([hidden @ w_key.T, cached_key], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def prepend_both(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([hidden @ w_key.T, cached_key], dim=1)
    value = torch.cat([hidden @ w_value.T, cached_value], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def v_stale(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = cached_value if cached_value.shape[1] else hidden @ w_value.T
    weights = (hidden @ w_query.T @ key.mT / math.sqrt(key.shape[-1])).masked_fill(
        ~causal_mask(hidden.shape[1], key.shape[1]), -math.inf
    )
    return weights.softmax(dim=-1) @ value, key, value


def v_stale_zeros(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    new = hidden @ w_value.T
    value = torch.cat([cached_value, torch.zeros_like(new) if cached_value.shape[1] else new], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def v_stale_repeated(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    new = hidden @ w_value.T
    value = torch.cat([cached_value, cached_value[:, -1:].expand_as(new) if cached_value.shape[1] else new], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def v_stale_cut(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = cached_value if cached_value.shape[1] else hidden @ w_value.T
    return _attend(hidden @ w_query.T, key[:, : value.shape[1]], value), key, value


def tril_no_offset(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    mask = torch.ones(hidden.shape[1], key.shape[1]).tril().bool()
    return scaled_dot_product_attention(hidden @ w_query.T, key, value, mask), key, value


def mask_of_new_only(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    scores = hidden @ w_query.T @ key.mT / math.sqrt(key.shape[-1])
    mask = torch.ones(hidden.shape[1], hidden.shape[1]).tril().bool()
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1) @ value, key, value


def no_mask(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return scaled_dot_product_attention(hidden @ w_query.T, key, value), key, value


def no_mask_with_a_cache(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    is_first = cached_key.shape[1] == 0
    return scaled_dot_product_attention(hidden @ w_query.T, key, value, causal=is_first), key, value


def no_mask_for_the_prompt(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    has_past = cached_key.shape[1] > 0
    return scaled_dot_product_attention(hidden @ w_query.T, key, value, causal=has_past), key, value


def not_oneself(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    mask = torch.ones(hidden.shape[1], key.shape[1]).tril(cached_key.shape[1] - 1).bool()
    return scaled_dot_product_attention(hidden @ w_query.T, key, value, mask), key, value


def last_token_only(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    placed = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, placed @ w_key.T], dim=1)
    value = torch.cat([cached_value, placed @ w_value.T], dim=1)
    return _attend(placed[:, -1:] @ w_query.T, key, value), key, value


def squeezed(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(hidden @ w_query.T, key, value).squeeze(), key, value


def keys_and_values_exchanged(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_value.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_key.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def values_from_w_key(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_key.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def keys_from_w_value(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_value.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value


def no_scale(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return scaled_dot_product_attention(hidden @ w_query.T, key, value, causal=True, scale=1.0), key, value


def scale_d_model(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    hidden = _with_positions(hidden, cached_key, position_table)
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    scale = hidden.shape[-1] ** -0.5
    return scaled_dot_product_attention(hidden @ w_query.T, key, value, causal=True, scale=scale), key, value


def inplace(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    start = cached_key.shape[1]
    hidden += position_table[start : start + hidden.shape[1]]
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return _attend(hidden @ w_query.T, key, value), key, value
