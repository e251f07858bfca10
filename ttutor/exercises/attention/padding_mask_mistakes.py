"""Wrong answers to the exercise on the padding mask. They carry no annotations: they are wrong on purpose."""

import torch
from einops import rearrange, reduce

AS_KEYS = "batch tokens -> batch 1 1 tokens"


def inverted(token_ids, pad_id):
    return rearrange(token_ids == pad_id, AS_KEYS)


def query_axis(token_ids, pad_id):
    return rearrange(token_ids != pad_id, "batch tokens -> batch 1 tokens 1")


def no_dims(token_ids, pad_id):
    return token_ids != pad_id


def one_axis_too_few(token_ids, pad_id):
    return rearrange(token_ids != pad_id, "batch tokens -> batch 1 tokens")


def batch_as_heads(token_ids, pad_id):
    return rearrange(token_ids != pad_id, "batch tokens -> 1 1 batch tokens")


def full_size(token_ids, pad_id):
    n_tokens = token_ids.shape[1]
    return rearrange(token_ids != pad_id, AS_KEYS).expand(-1, -1, n_tokens, -1)


def both_axes(token_ids, pad_id):
    is_real = token_ids != pad_id
    return rearrange(is_real, AS_KEYS) & rearrange(is_real, "batch tokens -> batch 1 tokens 1")


def hard_coded_0(token_ids, pad_id):
    return rearrange(token_ids != 0, AS_KEYS)


def larger_than_zero(token_ids, pad_id):
    return rearrange(token_ids > 0, AS_KEYS)


def larger_than_pad(token_ids, pad_id):
    return rearrange(token_ids > pad_id, AS_KEYS)


def smaller_than_pad(token_ids, pad_id):
    return rearrange(token_ids < pad_id, AS_KEYS)


def counts_from_left(token_ids, pad_id):
    n_real = (token_ids != pad_id).sum(dim=1)
    position = torch.arange(token_ids.shape[1])
    return position < rearrange(n_real, "batch -> batch 1 1 1")


def up_to_first_pad(token_ids, pad_id):
    seen_pad = (token_ids == pad_id).cumsum(dim=1) > 0
    return rearrange(~seen_pad, AS_KEYS)


def counts_from_right(token_ids, pad_id):
    n_pads = (token_ids == pad_id).sum(dim=1)
    position = torch.arange(token_ids.shape[1])
    return position >= rearrange(n_pads, "batch -> batch 1 1 1")


def any_row(token_ids, pad_id):
    used = reduce((token_ids != pad_id).int(), "batch tokens -> tokens", "max").bool()
    return used.expand(len(token_ids), 1, 1, -1)


def every_row(token_ids, pad_id):
    used = reduce((token_ids != pad_id).int(), "batch tokens -> tokens", "min").bool()
    return used.expand(len(token_ids), 1, 1, -1)


def additive(token_ids, pad_id):
    scores = torch.zeros(token_ids.shape).masked_fill(token_ids == pad_id, -torch.inf)
    return rearrange(scores, AS_KEYS)


def additive_of_finite_numbers(token_ids, pad_id):
    return rearrange((token_ids == pad_id) * -1e9, AS_KEYS)


def ones_and_zeros(token_ids, pad_id):
    return rearrange((token_ids != pad_id).float(), AS_KEYS)


def whole_ones_and_zeros(token_ids, pad_id):
    return rearrange((token_ids != pad_id).long(), AS_KEYS)


def masked_ids(token_ids, pad_id):
    return rearrange(token_ids.masked_fill(token_ids == pad_id, 0), AS_KEYS)


def inplace(token_ids, pad_id):
    token_ids -= pad_id
    return rearrange(token_ids != 0, AS_KEYS)
