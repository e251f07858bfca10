"""What goes wrong with rotary scores when keys are kept."""

import math

import torch

from ttutor.positions import RotaryPositions


def _scores(query, key, query_position, key_position, *, layout="half", scale=True):
    """Scores with each side at its positions; a side whose positions are None is not turned."""
    rotary = RotaryPositions(query.shape[-1], layout=layout)
    q = query if query_position is None else rotary(query_position[None])(query)
    k = key if key_position is None else rotary(key_position[None])(key)
    scores = q @ k.transpose(-1, -2)
    return scores / math.sqrt(query.shape[-1]) if scale else scores


def _places(query, key):
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    return torch.arange(n_keys - n_queries, n_keys), torch.arange(n_keys)


def from_zero(query, key):
    return _scores(query, key, torch.arange(query.shape[-2]), torch.arange(key.shape[-2]))


def keys_moved_too(query, key):
    query_position, key_position = _places(query, key)
    return _scores(query, key, query_position, key_position + query_position[0])


def all_at_the_end(query, key):
    query_position, key_position = _places(query, key)
    return _scores(query, key, query_position[-1].expand(len(query_position)), key_position)


def after_the_keys(query, key):
    query_position, key_position = _places(query, key)
    return _scores(query, key, query_position + 1, key_position)


def after_all_keys(query, key):
    query_position, key_position = _places(query, key)
    return _scores(query, key, torch.arange(len(query_position)) + len(key_position), key_position)


def offset_backwards(query, key):
    query_position, key_position = _places(query, key)
    return _scores(query, key, torch.arange(len(query_position)) - query_position[0], key_position)


def queries_only(query, key):
    return _scores(query, key, _places(query, key)[0], None)


def keys_only(query, key):
    return _scores(query, key, None, _places(query, key)[1])


def nothing_turned(query, key):
    return _scores(query, key, None, None)


def no_scale(query, key):
    return _scores(query, key, *_places(query, key), scale=False)


def other_layout(query, key):
    return _scores(query, key, *_places(query, key), layout="interleaved")
