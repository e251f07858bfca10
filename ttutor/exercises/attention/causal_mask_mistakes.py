"""Wrong answers to the exercise on the causal mask. They carry no annotations: what they return is wrong on purpose."""

import torch
from einops import rearrange


def off_by_one_strict(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries - 1)


def off_by_one_loose(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries + 1)


def triu(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).triu(n_keys - n_queries)


def inverted(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).triu(n_keys - n_queries + 1)


def no_cache_offset(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril()


def no_cache_offset_inverted(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).triu(1)


def one_query_only(n_queries, n_keys):
    mask = torch.ones(n_queries, n_keys, dtype=torch.bool)
    return mask if n_queries == 1 else mask.tril()


def offset_by_keys(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys)


def sign_of_offset(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_queries - n_keys)


def only_new_keys(n_queries, n_keys):
    """The triangle stands at the right place, but everything before it is hidden."""
    offset = n_keys - n_queries
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(offset).triu(offset - n_queries + 1)


def new_tokens_see_each_other(n_queries, n_keys):
    mask = torch.ones(n_queries, n_keys, dtype=torch.bool)
    if n_queries == n_keys:
        mask = mask.tril()
    return mask


def mirrored(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries).fliplr()


def additive(n_queries, n_keys):
    return torch.full((n_queries, n_keys), -torch.inf).triu(n_keys - n_queries + 1)


def additive_of_finite_numbers(n_queries, n_keys):
    return torch.full((n_queries, n_keys), -1e9).triu(n_keys - n_queries + 1)


def ones_and_zeros(n_queries, n_keys):
    return torch.ones(n_queries, n_keys).tril(n_keys - n_queries)


def whole_ones_and_zeros(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.int64).tril(n_keys - n_queries)


def swapped_shape(n_queries, n_keys):
    return torch.ones(n_keys, n_queries, dtype=torch.bool).tril(n_keys - n_queries)


def swapped_and_turned(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries).mT


def square_of_keys(n_queries, n_keys):
    return torch.ones(n_keys, n_keys, dtype=torch.bool).tril()


def square_of_queries(n_queries, n_keys):
    return torch.ones(n_queries, n_queries, dtype=torch.bool).tril()


def extra_batch(n_queries, n_keys):
    return rearrange(
        torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries), "queries keys -> 1 queries keys"
    )


def extra_batch_and_heads(n_queries, n_keys):
    return rearrange(
        torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries), "queries keys -> 1 1 queries keys"
    )


def squeezed(n_queries, n_keys):
    mask = torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)
    return mask[0] if n_queries == 1 else mask


def table_of_1024(n_queries, n_keys):
    table = torch.ones(1024, 1024, dtype=torch.bool).tril()
    return table[n_keys - n_queries : n_keys, :n_keys]


def as_a_list(n_queries, n_keys):
    return [[key <= query + n_keys - n_queries for key in range(n_keys)] for query in range(n_queries)]
