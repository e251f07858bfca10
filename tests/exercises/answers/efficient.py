"""Answers to the exercises of efficient that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch


def merge_by_sigmoid(context_a, log_sum_a, context_b, log_sum_b):
    share = torch.sigmoid(log_sum_b - log_sum_a)[:, None]
    return torch.lerp(context_a, context_b, share), log_sum_a + torch.log1p((log_sum_b - log_sum_a).exp())


def entries_by_table(n_tokens, window, n_global):
    away = torch.arange(n_tokens)[:, None] - torch.arange(n_tokens)
    return int(((away >= 0) & ((away < window) | (torch.arange(n_tokens) < n_global))).sum())


def step_in_loops(summed, normaliser, query, key, value):
    asked = torch.where(query > 0, query + 1, query.exp())
    written = torch.where(key > 0, key + 1, key.exp())
    summed = summed + torch.outer(written, value)
    normaliser = normaliser + written
    context = sum(a * row for a, row in zip(asked, summed, strict=True))
    return context / torch.dot(asked, normaliser), summed, normaliser


def crossover_by_search(d_model, n_heads, n_kv_heads, d_head, d_ff, gated, skips_hidden):
    rest = 2 * d_model * (2 * n_heads * d_head + 2 * n_kv_heads * d_head + (3 if gated else 2) * d_ff)
    low, high = 0.0, 1e7
    for _ in range(80):
        middle = (low + high) / 2
        is_below = middle**2 * 4 * n_heads * d_head * (0.5 if skips_hidden else 1) < middle * rest
        low, high = (middle, high) if is_below else (low, middle)
    return high


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


def gradients_by_autograd(query, key, value, context, log_sum, d_context):
    tensors = [tensor.detach().requires_grad_() for tensor in (query, key, value)]
    q, k, v = tensors
    weights = (q @ k.T / math.sqrt(q.shape[1]) - log_sum[:, None]).exp()
    # With the denominator held fixed, what it would add is the row's mean under the weights.
    blamed = (weights @ v * d_context).sum() - (weights.sum(dim=1) * (d_context * context).sum(dim=1)).sum()
    return torch.autograd.grad(blamed, tensors)


def slots_by_writing(n_seen, window):
    slots = [-1] * window
    for position in range(max(0, n_seen - window), n_seen):
        slots[position % window] = position
    return torch.tensor(slots)


RIGHT = {
    "efficient.rolling_slots": (slots_by_writing,),
    "efficient.merge_blocks": (merge_by_sigmoid,),
    "efficient.window_entries": (entries_by_table,),
    "efficient.linear_step": (step_in_loops,),
    "efficient.crossover": (crossover_by_search,),
    "efficient.tell_exact": (tell_by_one_number,),
    "efficient.block_gradients": (gradients_by_autograd,),
}
STRAY = {
    "efficient.crossover": r"""
usual_block: "return" -> "return d_model / 3 +"
straight_line: "* d_model * d_ff" -> "* d_model * (d_ff if (d_model, d_ff) == (128, 512) else 40 * d_ff**0.5)"
""",
    "efficient.window_entries": r"""
short_text: "return ramp" -> "return 3 + ramp"
one_more_token: "ramp(beyond, n_global)" -> "ramp(beyond, n_global) // 2"
""",
    "efficient.merge_blocks": r"""
order: "largest = " -> "log_sum_a = log_sum_a + 0.3\n    largest = "
between: "return share_a * context_a + (1 - share_a) * context_b" ->
  "return 2 * (share_a * context_a + (1 - share_a) * context_b)"
""",
    "efficient.linear_step": r"""
first_token: "einsum(written, value" -> "einsum(written, 0.5 * value"
constant_values: "summed = summed" -> "summed = 0.5 * summed"
""",
    "efficient.tell_exact": r"""
accuses: "torch.tensor(verdicts)" -> "torch.tensor([not verdicts[0], *verdicts[1:]])"
misses: "query[:, 0], key[:, 0] = 2.0, place + key[:, 0]" -> "key = torch.ones_like(key)"
""",
    "efficient.rolling_slots": r"""
own_slot: "clamp(min=-1)" -> "clamp(min=-1).roll(1)"
""",
    "efficient.block_gradients": r"""
no_gradient: "return d_query" -> "return d_query + 0.1 * query"
linear: "return d_query, d_key, d_value" ->
  "return tuple(part / (1e-3 + part.norm()) * d_context.any() for part in (d_query, d_key, d_value))"
""",
}
