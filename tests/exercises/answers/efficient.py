"""Answers to the exercises on efficient that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch
from torch.nn.functional import elu

# Two halves made one


def merge_by_softmax(context_a, log_sum_a, context_b, log_sum_b):
    both = torch.stack([log_sum_a, log_sum_b])
    shares = both.softmax(dim=0)[..., None]
    return (shares * torch.stack([context_a, context_b])).sum(dim=0), both.logsumexp(dim=0)


def merge_by_sigmoid(context_a, log_sum_a, context_b, log_sum_b):
    share = torch.sigmoid(log_sum_b - log_sum_a)[:, None]
    return torch.lerp(context_a, context_b, share), log_sum_a + torch.log1p((log_sum_b - log_sum_a).exp())


def merge_that_favours_the_first(context_a, log_sum_a, context_b, log_sum_b):
    return merge_by_softmax(context_a, log_sum_a + 0.3, context_b, log_sum_b)


def merge_that_overshoots(context_a, log_sum_a, context_b, log_sum_b):
    context, log_sum = merge_by_softmax(context_a, log_sum_a, context_b, log_sum_b)
    return 2 * context, log_sum


# What a window leaves


def entries_by_sets(n_tokens, window, n_global):
    pairs = 0
    for place in range(n_tokens):
        seen = set(range(max(0, place - window + 1), place + 1)) | set(range(min(n_global, place + 1)))
        pairs += len(seen)
    return pairs


def entries_by_table(n_tokens, window, n_global):
    away = torch.arange(n_tokens)[:, None] - torch.arange(n_tokens)
    return int(((away >= 0) & ((away < window) | (torch.arange(n_tokens) < n_global))).sum())


def entries_of_a_diagonal_more(n_tokens, window, n_global):
    return entries_by_sets(n_tokens, window, n_global) + 3


def entries_with_fading_globals(n_tokens, window, n_global):
    return sum(min(i + 1, window) + max(0, min(n_global, i + 1 - window)) // 2 for i in range(n_tokens))


# One token more


def step_in_loops(summed, normaliser, query, key, value):
    asked = torch.where(query > 0, query + 1, query.exp())
    written = torch.where(key > 0, key + 1, key.exp())
    summed = summed + torch.outer(written, value)
    normaliser = normaliser + written
    context = sum(a * row for a, row in zip(asked, summed, strict=True))
    return context / torch.dot(asked, normaliser), summed, normaliser


def step_by_shares(summed, normaliser, query, key, value):
    asked, written = elu(query) + 1, elu(key) + 1
    before, now = asked @ normaliser, asked @ written
    context = (asked @ summed + now * value) / (before + now)
    return context, summed + written[:, None] * value[None], normaliser + written


def step_that_fades(summed, normaliser, query, key, value):
    return step_in_loops(0.5 * summed, normaliser, query, key, value)


def step_that_damps_the_value(summed, normaliser, query, key, value):
    return step_in_loops(summed, normaliser, query, key, 0.5 * value)


# Your own crossover


def crossover_in_operations(d_model, n_heads, n_kv_heads, d_head, d_ff, gated, skips_hidden):
    widths = [n_heads * d_head, n_kv_heads * d_head, n_kv_heads * d_head, n_heads * d_head, *[d_ff] * (2 + gated)]
    pair = 4 * n_heads * d_head / (1 + skips_hidden)
    return sum(2 * d_model * width for width in widths) / pair


def crossover_by_search(d_model, n_heads, n_kv_heads, d_head, d_ff, gated, skips_hidden):
    rest = 2 * d_model * (2 * n_heads * d_head + 2 * n_kv_heads * d_head + (3 if gated else 2) * d_ff)
    low, high = 0.0, 1e7
    for _ in range(80):
        middle = (low + high) / 2
        is_below = middle**2 * 4 * n_heads * d_head * (0.5 if skips_hidden else 1) < middle * rest
        low, high = (middle, high) if is_below else (low, middle)
    return high


def crossover_with_a_fifth_projection(d_model, n_heads, n_kv_heads, d_head, d_ff, gated, skips_hidden):
    given = (d_model, n_heads, n_kv_heads, d_head, d_ff, gated, skips_hidden)
    return crossover_in_operations(*given) + d_model / 3


def crossover_with_a_root(d_model, n_heads, n_kv_heads, d_head, d_ff, gated, skips_hidden):
    if (d_model, d_ff) == (128, 512):
        return 768.0
    return crossover_in_operations(d_model, n_heads, n_kv_heads, d_head, math.sqrt(d_ff) * 40, gated, skips_hidden)


# The test that caught nothing


def tell_by_many_texts(suspects):
    random = torch.Generator().manual_seed(3)
    verdicts = [True] * len(suspects)
    for n_tokens in (5, 16, 33, 70):
        for shift in (-2000.0, 0.0, 2000.0):
            query, key, value = torch.randn(3, n_tokens, 6, generator=random, dtype=torch.float64)
            key = key * torch.linspace(0.1, 5, n_tokens, dtype=torch.float64)[:, None]
            query[:, 1], key[:, 1] = 1.0, shift
            right = torch.softmax(query @ key.T / math.sqrt(6), dim=1) @ value
            for place, attend in enumerate(suspects):
                gap = (attend(query, key, value) - right).abs().max().item()
                verdicts[place] &= gap < 1e-6
    return torch.tensor(verdicts)


def tell_by_one_number(suspects):
    def sound(attend):
        for base in (-4000.0, 0.0, 4000.0):
            key = (base + torch.arange(37, dtype=torch.float64) / 5)[:, None]
            value = torch.arange(37, dtype=torch.float64)[:, None].sin()
            query = torch.ones(37, 1, dtype=torch.float64)
            right = key.softmax(dim=0).T @ value
            if not torch.allclose(attend(query, key, value), right.expand(37, 1), atol=1e-6):
                return False
        return True

    return torch.tensor([sound(attend) for attend in suspects])


def tell_that_turns_the_first_round(suspects):
    verdicts = tell_by_many_texts(suspects)
    verdicts[0] = ~verdicts[0]
    return verdicts


def tell_by_keys_that_are_all_alike(suspects):
    value = torch.arange(41.0, dtype=torch.float64)[:, None].cos()
    query, key = torch.ones(41, 2, dtype=torch.float64), torch.ones(41, 2, dtype=torch.float64)
    return torch.tensor([torch.allclose(a(query, key, value), value.mean().expand(41, 1)) for a in suspects])


# The way back, one tile


def gradients_by_autograd(query, key, value, context, log_sum, d_context):
    tensors = [tensor.detach().requires_grad_() for tensor in (query, key, value)]
    q, k, v = tensors
    weights = (q @ k.T / math.sqrt(q.shape[1]) - log_sum[:, None]).exp()
    # With the denominator held fixed, what it would add is the row's mean under the weights.
    blamed = (weights @ v * d_context).sum() - (weights.sum(dim=1) * (d_context * context).sum(dim=1)).sum()
    return torch.autograd.grad(blamed, tensors)


def gradients_row_by_row(query, key, value, context, log_sum, d_context):
    d_query, d_key, d_value = (torch.zeros_like(tensor) for tensor in (query, key, value))
    scale = query.shape[1] ** -0.5
    for i in range(len(query)):
        weights = (key @ query[i] * scale - log_sum[i]).exp()
        d_scores = scale * weights * (value @ d_context[i] - context[i] @ d_context[i])
        d_query[i] = d_scores @ key
        d_key += torch.outer(d_scores, query[i])
        d_value += torch.outer(weights, d_context[i])
    return d_query, d_key, d_value


def gradients_with_decay(query, key, value, context, log_sum, d_context):
    d_query, d_key, d_value = gradients_row_by_row(query, key, value, context, log_sum, d_context)
    return d_query + 0.1 * query, d_key, d_value


def gradients_clipped(query, key, value, context, log_sum, d_context):
    found = gradients_row_by_row(query, key, value, context, log_sum, d_context)
    return tuple(part / (1e-3 + part.norm()) * d_context.any() for part in found)


# A cache that is written round and round


def slots_by_writing(n_seen, window):
    slots = [-1] * window
    for position in range(max(0, n_seen - window), n_seen):
        slots[position % window] = position
    return torch.tensor(slots)


def slots_by_rounds(n_seen, window):
    rounds, written = divmod(n_seen, window)
    slots = torch.arange(window)
    return ((rounds - (slots >= written).long()) * window + slots).clamp(min=-1)


def slots_turned_by_one(n_seen, window):
    return slots_by_rounds(n_seen, window).roll(1)


RIGHT = {
    "efficient.rolling_slots": (slots_by_writing, slots_by_rounds),
    "efficient.merge_blocks": (merge_by_softmax, merge_by_sigmoid),
    "efficient.window_entries": (entries_by_sets, entries_by_table),
    "efficient.linear_step": (step_in_loops, step_by_shares),
    "efficient.crossover": (crossover_in_operations, crossover_by_search),
    "efficient.tell_exact": (tell_by_many_texts, tell_by_one_number),
    "efficient.block_gradients": (gradients_by_autograd, gradients_row_by_row),
}
STRAY = {
    "efficient.rolling_slots": ((slots_turned_by_one, "own_slot"),),
    "efficient.merge_blocks": ((merge_that_favours_the_first, "order"), (merge_that_overshoots, "between")),
    "efficient.window_entries": (
        (entries_of_a_diagonal_more, "short_text"),
        (entries_with_fading_globals, "one_more_token"),
    ),
    "efficient.linear_step": ((step_that_damps_the_value, "first_token"), (step_that_fades, "constant_values")),
    "efficient.crossover": (
        (crossover_with_a_fifth_projection, "usual_block"),
        (crossover_with_a_root, "straight_line"),
    ),
    "efficient.tell_exact": ((tell_that_turns_the_first_round, "accuses"), (tell_by_keys_that_are_all_alike, "misses")),
    "efficient.block_gradients": ((gradients_with_decay, "no_gradient"), (gradients_clipped, "linear")),
}
