"""Answers to chapter 9's exercises: right ones in other styles, and mistakes that stand in no list."""

import torch
from torch.nn import functional

# What the cache weighs


def bytes_by_building(n_layers, n_kv_heads, d_head, n_tokens, batch, window):
    kept = min(n_tokens, window or n_tokens)
    keys = torch.empty(n_layers, 2, batch, n_kv_heads, kept, d_head, dtype=torch.bfloat16, device="meta")
    return keys.numel() * keys.element_size()


def bytes_in_a_line(n_layers, n_kv_heads, d_head, n_tokens, batch, window):
    return n_layers * 2 * n_kv_heads * d_head * (min(n_tokens, window) if window is not None else n_tokens) * batch * 2


def bytes_with_square_heads(n_layers, n_kv_heads, d_head, n_tokens, batch, window):
    return n_kv_heads * bytes_in_a_line(n_layers, n_kv_heads, d_head, n_tokens, batch, window)


def bytes_beyond_the_window(n_layers, n_kv_heads, d_head, n_tokens, batch, window):
    kept = n_tokens if window is None or n_tokens <= window else window + (n_tokens - window) // 2
    return bytes_in_a_line(n_layers, n_kv_heads, d_head, kept, batch, None)


# Original or replaced?


def labels_by_loops(token_ids, chosen, guesses):
    inputs = token_ids.tolist()
    for row, column in chosen.nonzero().tolist():
        inputs[row][column] = guesses[row, column].item()
    inputs = torch.tensor(inputs)
    return inputs, inputs.ne(token_ids)


def labels_by_arithmetic(token_ids, chosen, guesses):
    step = (guesses - token_ids) * chosen
    return token_ids + step, step != 0


def labels_of_the_first_row(token_ids, chosen, guesses):
    inputs, labels = labels_by_arithmetic(token_ids, chosen, guesses)
    return inputs, labels & (torch.arange(len(labels)) == 0)[:, None]


def labels_of_shifted_text(token_ids, chosen, guesses):
    inputs = torch.where(chosen, guesses, token_ids.roll(1, dims=1))
    return inputs, inputs != token_ids


# Cut out and numbered


def spans_from_the_end(token_ids, spans, sentinel_ids):
    inputs, targets = list(token_ids), [sentinel_ids[len(spans)]]
    for (start, end), sentinel in reversed(list(zip(spans, sentinel_ids, strict=False))):
        targets = [sentinel, *inputs[start:end], *targets]
        inputs[start:end] = [sentinel]
    return inputs, targets


def spans_by_pieces(token_ids, spans, sentinel_ids):
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(token_ids)]
    inputs = list(token_ids[: ends[0]])
    targets = []
    for i, (start, end) in enumerate(spans):
        inputs += [sentinel_ids[i]] + list(token_ids[starts[i + 1] : ends[i + 1]])
        targets += [sentinel_ids[i]] + list(token_ids[start:end])
    return inputs, [*targets, sentinel_ids[len(spans)]]


def spans_that_drop_a_token(token_ids, spans, sentinel_ids):
    inputs, targets = spans_by_pieces(token_ids, spans, sentinel_ids)
    return inputs, targets[:1] + targets[2:]


def spans_read_backwards(token_ids, spans, sentinel_ids):
    inputs, targets = spans_by_pieces(token_ids, spans, sentinel_ids)
    return inputs, [targets[0], targets[2], targets[1], *targets[3:]]


# Nothing to learn from a word that is there


def masking_by_where(token_ids, chosen, fate, random_ids, mask_id):
    hidden = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, random_ids, token_ids))
    return torch.where(chosen, hidden, token_ids), token_ids.masked_fill(~chosen, -100)


def masking_by_steps(token_ids, chosen, fate, random_ids, mask_id):
    inputs, labels = token_ids.clone(), torch.full_like(token_ids, -100)
    labels[chosen] = token_ids[chosen]
    inputs[chosen & (fate < 0.8)] = mask_id
    drawn = chosen & (fate >= 0.8) & (fate < 0.9)
    inputs[drawn] = random_ids[drawn]
    return inputs, labels


def masking_without_the_first_row(token_ids, chosen, fate, random_ids, mask_id):
    inputs, labels = masking_by_where(token_ids, chosen, fate, random_ids, mask_id)
    return inputs, labels.index_fill(0, torch.tensor([0]), -100)


def masking_with_random_labels(token_ids, chosen, fate, random_ids, mask_id):
    inputs, _ = masking_by_where(token_ids, chosen, fate, random_ids, mask_id)
    return inputs, random_ids.masked_fill(~chosen, -100)


def masking_of_all(token_ids, chosen, fate, random_ids, mask_id):
    _, labels = masking_by_where(token_ids, chosen, fate, random_ids, mask_id)
    return torch.full_like(token_ids, mask_id), labels


# Three matrices, not two


def network_by_exponentials(hidden, w_gate, w_widen, w_narrow, activation):
    opened, carried = (torch.einsum("td,fd->tf", hidden, matrix) for matrix in (w_gate, w_widen))
    share = 1 / (1 + (-opened).exp()) if activation == "silu" else torch.erfc(-opened / 2**0.5) / 2
    return torch.einsum("tf,tf,tf,df->td", opened, share, carried, w_narrow)


def network_by_the_normal_distribution(hidden, w_gate, w_widen, w_narrow, activation):
    opened = hidden @ w_gate.T
    share = torch.sigmoid(opened) if activation == "silu" else torch.special.ndtr(opened)
    return functional.linear(opened * share * functional.linear(hidden, w_widen), w_narrow)


def network_with_a_leak(hidden, w_gate, w_widen, w_narrow, activation):
    return ((0.1 + hidden @ w_gate.T) * (hidden @ w_widen.T)) @ w_narrow.T


def network_that_squashes_the_carrier(hidden, w_gate, w_widen, w_narrow, activation):
    gate = torch.tanh(hidden @ w_gate.T)
    return (gate * torch.tanh(hidden @ w_widen.T)) @ w_narrow.T


RIGHT = {
    "variants.cache_bytes": (bytes_by_building, bytes_in_a_line),
    "variants.replaced_labels": (labels_by_loops, labels_by_arithmetic),
    "variants.span_targets": (spans_from_the_end, spans_by_pieces),
    "variants.masked_labels": (masking_by_where, masking_by_steps),
    "variants.gated_network": (network_by_exponentials, network_by_the_normal_distribution),
}

STRAY = {
    "variants.cache_bytes": ((bytes_with_square_heads, "factors"), (bytes_beyond_the_window, "window_limits")),
    "variants.replaced_labels": (
        (labels_of_the_first_row, "labels_match_the_text"),
        (labels_of_shifted_text, "only_chosen_change"),
    ),
    "variants.span_targets": ((spans_that_drop_a_token, "each_token_once"), (spans_read_backwards, "halves_fit")),
    "variants.masked_labels": (
        (masking_without_the_first_row, "chosen_count"),
        (masking_with_random_labels, "labels_are_originals"),
        (masking_of_all, "unchosen_stay"),
    ),
    "variants.gated_network": (
        (network_with_a_leak, "closed_gate"),
        (network_that_squashes_the_carrier, "linear_carrier"),
    ),
}
