"""What goes wrong with ALiBi's bias."""

import torch


def _slopes(n_heads):
    return 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)


def _offset(n_queries, n_keys):
    """Query position minus key position."""
    return torch.arange(n_keys - n_queries, n_keys)[:, None] - torch.arange(n_keys)


def _bias(slopes, distance):
    return -slopes[:, None, None] * distance


def slopes_of_eight(n_heads, n_queries, n_keys):
    return _bias(0.5 ** torch.arange(1, n_heads + 1), _offset(n_queries, n_keys).abs())


def no_cache_offset(n_heads, n_queries, n_keys):
    return _bias(_slopes(n_heads), (torch.arange(n_queries)[:, None] - torch.arange(n_keys)).abs())


def reward(n_heads, n_queries, n_keys):
    return -_bias(_slopes(n_heads), _offset(n_queries, n_keys).abs())


def signed_distance(n_heads, n_queries, n_keys):
    return _bias(_slopes(n_heads), _offset(n_queries, n_keys))


def signed_the_other_way(n_heads, n_queries, n_keys):
    return -_bias(_slopes(n_heads), _offset(n_queries, n_keys))


def first_slope_one(n_heads, n_queries, n_keys):
    return _bias(2.0 ** (-8 * torch.arange(n_heads) / n_heads), _offset(n_queries, n_keys).abs())


def even_slopes(n_heads, n_queries, n_keys):
    return _bias(torch.linspace(2 ** (-8 / n_heads), 2**-8, n_heads), _offset(n_queries, n_keys).abs())


def reversed_slopes(n_heads, n_queries, n_keys):
    return _bias(_slopes(n_heads).flip(0), _offset(n_queries, n_keys).abs())


def one_slope(n_heads, n_queries, n_keys):
    return _bias(_slopes(n_heads)[:1].expand(n_heads), _offset(n_queries, n_keys).abs())


def no_slope(n_heads, n_queries, n_keys):
    return _bias(torch.ones(n_heads), _offset(n_queries, n_keys).abs())


def natural_base(n_heads, n_queries, n_keys):
    return _bias((-8 * torch.arange(1, n_heads + 1) / n_heads).exp(), _offset(n_queries, n_keys).abs())


def squared_distance(n_heads, n_queries, n_keys):
    return _bias(_slopes(n_heads), _offset(n_queries, n_keys) ** 2)


def as_factor(n_heads, n_queries, n_keys):
    return _bias(_slopes(n_heads), _offset(n_queries, n_keys).abs()).exp()


def future_hidden(n_heads, n_queries, n_keys):
    offset = _offset(n_queries, n_keys)
    return _bias(_slopes(n_heads), offset.abs()).masked_fill(offset < 0, -torch.inf)


def future_free(n_heads, n_queries, n_keys):
    return _bias(_slopes(n_heads), _offset(n_queries, n_keys).clamp(min=0))


def heads_last(n_heads, n_queries, n_keys):
    return _bias(_slopes(n_heads), _offset(n_queries, n_keys).abs()).permute(1, 2, 0)


def one_row(n_heads, n_queries, n_keys):
    return _bias(_slopes(n_heads), _offset(n_queries, n_keys).abs())[:, -1]
