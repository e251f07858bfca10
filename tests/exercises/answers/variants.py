"""Answers to the exercises on variants that stand in no list: right ones in other styles, and stray mistakes."""

import itertools

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


def labels_by_loops(token_ids, chosen, guesses, pad_id):
    inputs, left = token_ids.tolist(), guesses.tolist()
    for row, column in chosen.nonzero().tolist():
        inputs[row][column] = left.pop(0)
    inputs = torch.tensor(inputs)
    return inputs, inputs.ne(token_ids).long() - 100 * token_ids.eq(pad_id).long()


def labels_by_index(token_ids, chosen, guesses, pad_id):
    inputs = token_ids.index_put((chosen,), guesses)
    return inputs, torch.where(token_ids == pad_id, -100, 1 * (inputs != token_ids))


def labels_of_the_first_row(token_ids, chosen, guesses, pad_id):
    inputs, labels = labels_by_loops(token_ids, chosen, guesses, pad_id)
    labels[1:] = labels[1:].clamp(max=0)
    return inputs, labels


def labels_of_shifted_text(token_ids, chosen, guesses, pad_id):
    inputs = token_ids.roll(1, dims=1).masked_scatter(chosen, guesses)
    return inputs, torch.where(token_ids == pad_id, -100, (inputs != token_ids).long())


def labels_without_the_last_column(token_ids, chosen, guesses, pad_id):
    inputs, labels = labels_by_loops(token_ids, chosen, guesses, pad_id)
    labels[:, -1] = -100
    return inputs, labels


# Cut out and numbered


def spans_from_the_end(token_ids, taken, sentinel_ids):
    n_spans = sum(here and not before for before, here in zip([False, *taken], taken, strict=False))
    inputs, targets, rest = [], [sentinel_ids[n_spans]], list(taken)
    for place in reversed(range(len(token_ids))):
        rest.pop()
        if not taken[place]:
            inputs.insert(0, token_ids[place])
            continue
        targets.insert(0, token_ids[place])
        if not (rest and rest[-1]):
            n_spans -= 1
            inputs.insert(0, sentinel_ids[n_spans])
            targets.insert(0, sentinel_ids[n_spans])
    return inputs, targets


def spans_by_groups(token_ids, taken, sentinel_ids):
    left, halves = list(sentinel_ids), ([], [])
    for gone, group in itertools.groupby(zip(token_ids, taken, strict=True), key=lambda pair: pair[1]):
        if gone:
            for half in halves:
                half.append(left[0])
            left.pop(0)
        halves[gone].extend(token_id for token_id, _ in group)
    return halves[0], [*halves[1], left[0]]


def spans_that_drop_a_token(token_ids, taken, sentinel_ids):
    inputs, targets = spans_by_groups(token_ids, taken, sentinel_ids)
    return inputs, targets[:1] + targets[2:]


def spans_read_backwards(token_ids, taken, sentinel_ids):
    inputs, targets = spans_by_groups(token_ids, taken, sentinel_ids)
    return inputs, [targets[0], targets[2], targets[1], *targets[3:]]


# Nothing to learn from a word that is there


def masking_by_where(token_ids, draw, random_ids, mask_id):
    fate = draw / 0.15
    hidden = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, random_ids, token_ids))
    return hidden, token_ids.masked_fill(draw >= 0.15, -100)


def masking_by_steps(token_ids, draw, random_ids, mask_id):
    inputs, labels, chosen = token_ids.clone(), torch.full_like(token_ids, -100), draw < 0.15
    labels[chosen] = token_ids[chosen]
    inputs[draw < 0.12] = mask_id
    drawn = (draw >= 0.12) & (draw < 0.135)
    inputs[drawn] = random_ids[drawn]
    return inputs, labels


def masking_without_the_first_row(token_ids, draw, random_ids, mask_id):
    inputs, labels = masking_by_where(token_ids, draw, random_ids, mask_id)
    return inputs, labels.index_fill(0, torch.tensor([0]), -100)


def masking_with_random_labels(token_ids, draw, random_ids, mask_id):
    inputs, _ = masking_by_where(token_ids, draw, random_ids, mask_id)
    return inputs, random_ids.masked_fill(draw >= 0.15, -100)


def masking_of_all(token_ids, draw, random_ids, mask_id):
    _, labels = masking_by_where(token_ids, draw, random_ids, mask_id)
    return torch.full_like(token_ids, mask_id), labels


def masking_of_two_thirds(token_ids, draw, random_ids, mask_id):
    _, labels = masking_by_where(token_ids, draw, random_ids, mask_id)
    hidden = torch.where(draw < 0.1, mask_id, torch.where(draw < 0.125, random_ids, token_ids))
    return hidden, labels


# Three matrices in two tensors


def network_by_exponentials(hidden, w_in, w_out, activation):
    opened, carried = (torch.einsum("td,fd->tf", hidden, matrix) for matrix in w_in.chunk(2))
    share = 1 / (1 + (-opened).exp()) if activation == "silu" else torch.erfc(-opened / 2**0.5) / 2
    return torch.einsum("tf,tf,tf,df->td", opened, share, carried, w_out)


def network_by_the_normal_distribution(hidden, w_in, w_out, activation):
    opened, carried = functional.linear(hidden, w_in).split(w_out.shape[1], dim=-1)
    share = torch.sigmoid(opened) if activation == "silu" else torch.special.ndtr(opened)
    return functional.linear(opened * share * carried, w_out)


def network_with_a_leak(hidden, w_in, w_out, activation):
    opened, carried = (hidden @ w_in.T).chunk(2, dim=-1)
    return ((0.1 + opened) * carried) @ w_out.T


def network_that_squashes_the_carrier(hidden, w_in, w_out, activation):
    opened, carried = (hidden @ w_in.T).chunk(2, dim=-1)
    return (torch.tanh(opened) * torch.tanh(carried)) @ w_out.T


# Two experts of eight


def shares_by_dividing(scores, n_chosen):
    powers = scores.softmax(dim=-1)
    kept = powers * torch.zeros_like(powers).scatter(-1, powers.topk(n_chosen).indices, 1.0)
    return kept / kept.sum(dim=-1, keepdim=True)


def shares_by_rank(scores, n_chosen):
    rank = scores.argsort(dim=-1, descending=True).argsort(dim=-1)
    return scores.where(rank < n_chosen, float("-inf")).softmax(dim=-1)


def shares_of_one_more(scores, n_chosen):
    return shares_by_rank(scores, n_chosen + 1)


# LoRA, merged


def merged_by_parts(weight, down, up, alpha):
    return weight + sum(torch.outer(column, row) for column, row in zip(up.T, down, strict=True)) * alpha / up.shape[1]


def merged_by_einsum(weight, down, up, alpha):
    return weight + torch.einsum("or,ri->oi", up * (alpha / up.shape[1]), down)


def merged_with_clipped_alpha(weight, down, up, alpha):
    return merged_by_parts(weight, down, up, min(alpha, 10.0))


RIGHT = {
    "variants.expert_shares": (shares_by_dividing, shares_by_rank),
    "variants.merged_low_rank": (merged_by_parts, merged_by_einsum),
    "variants.cache_bytes": (bytes_by_building, bytes_in_a_line),
    "variants.replaced_labels": (labels_by_loops, labels_by_index),
    "variants.span_targets": (spans_from_the_end, spans_by_groups),
    "variants.masked_labels": (masking_by_where, masking_by_steps),
    "variants.gated_network": (network_by_exponentials, network_by_the_normal_distribution),
}
STRAY = {
    "variants.expert_shares": ((shares_of_one_more, "n_visited"),),
    "variants.merged_low_rank": ((merged_with_clipped_alpha, "linear_in_alpha"),),
    "variants.cache_bytes": ((bytes_with_square_heads, "factors"), (bytes_beyond_the_window, "window_limits")),
    "variants.replaced_labels": (
        (labels_of_the_first_row, "labels_match_the_text"),
        (labels_of_shifted_text, "only_chosen_change"),
        (labels_without_the_last_column, "padding_is_not_asked"),
    ),
    "variants.span_targets": ((spans_that_drop_a_token, "each_token_once"), (spans_read_backwards, "halves_fit")),
    "variants.masked_labels": (
        (masking_without_the_first_row, "chosen_count"),
        (masking_with_random_labels, "labels_are_originals"),
        (masking_of_all, "unchosen_stay"),
        (masking_of_two_thirds, "three_fates"),
    ),
    "variants.gated_network": (
        (network_with_a_leak, "closed_gate"),
        (network_that_squashes_the_carrier, "linear_carrier"),
    ),
}
