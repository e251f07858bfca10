"""Answers to the exercises of variants that stand in no list: right ones in other styles, and stray mistakes."""

import itertools

import torch
from torch.nn import functional


def bytes_by_building(n_layers, n_kv_heads, d_head, n_tokens, batch, window):
    kept = min(n_tokens, window or n_tokens)
    keys = torch.empty(n_layers, 2, batch, n_kv_heads, kept, d_head, dtype=torch.bfloat16, device="meta")
    return keys.numel() * keys.element_size()


def labels_by_loops(token_ids, chosen, guesses, pad_id):
    inputs, left = token_ids.tolist(), guesses.tolist()
    for row, column in chosen.nonzero().tolist():
        inputs[row][column] = left.pop(0)
    inputs = torch.tensor(inputs)
    return inputs, inputs.ne(token_ids).long() - 100 * token_ids.eq(pad_id).long()


def spans_by_groups(token_ids, taken, sentinel_ids):
    left, halves = list(sentinel_ids), ([], [])
    for gone, group in itertools.groupby(zip(token_ids, taken, strict=True), key=lambda pair: pair[1]):
        if gone:
            for half in halves:
                half.append(left[0])
            left.pop(0)
        halves[gone].extend(token_id for token_id, _ in group)
    return halves[0], [*halves[1], left[0]]


def masking_by_where(token_ids, draw, random_ids, mask_id):
    fate = draw / 0.15
    hidden = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, random_ids, token_ids))
    return hidden, token_ids.masked_fill(draw >= 0.15, -100)


def network_by_the_normal_distribution(hidden, w_in, w_out, activation):
    opened, carried = functional.linear(hidden, w_in).split(w_out.shape[1], dim=-1)
    share = torch.sigmoid(opened) if activation == "silu" else torch.special.ndtr(opened)
    return functional.linear(opened * share * carried, w_out)


def shares_by_dividing(scores, n_chosen):
    powers = scores.softmax(dim=-1)
    kept = powers * torch.zeros_like(powers).scatter(-1, powers.topk(n_chosen).indices, 1.0)
    return kept / kept.sum(dim=-1, keepdim=True)


def merged_by_parts(weight, down, up, alpha):
    return weight + sum(torch.outer(column, row) for column, row in zip(up.T, down, strict=True)) * alpha / up.shape[1]


RIGHT = {
    "variants.expert_shares": (shares_by_dividing,),
    "variants.merged_low_rank": (merged_by_parts,),
    "variants.cache_bytes": (bytes_by_building,),
    "variants.replaced_labels": (labels_by_loops,),
    "variants.span_targets": (spans_by_groups,),
    "variants.masked_labels": (masking_by_where,),
    "variants.gated_network": (network_by_the_normal_distribution,),
}
STRAY = {
    "variants.cache_bytes": r"""
factors: "return 2" -> "return 2 * n_kv_heads"
window_limits: "min(n_tokens, window)" -> "min(n_tokens, max(window, (n_tokens + window) // 2))"
""",
    "variants.replaced_labels": r"""
labels_match_the_text: "return" -> "labels[1:] = 0\n    return"
only_chosen_change: "token_ids.clone()" -> "token_ids.roll(1, dims=1)"
padding_is_not_asked: "return" -> "labels[:, -1] = -100\n    return"
""",
    "variants.gated_network": r"""
closed_gate: "gate = opened * share" -> "gate = 0.1 + opened"
linear_carrier: "gate * carried" -> "opened.tanh() * carried.tanh()"
""",
    "variants.expert_shares": r"""
n_visited: "topk(n_chosen" -> "topk(n_chosen + 1"
""",
    "variants.merged_low_rank": r"""
linear_in_alpha: "+ alpha" -> "+ min(alpha, 10.0)"
""",
    "variants.masked_labels": r"""
chosen_count: "token_ids, -100)" -> "token_ids, -100).index_fill(0, torch.tensor([0]), -100)"
labels_are_originals: "token_ids, -100" -> "random_ids, -100"
unchosen_stay: "return inputs" -> "return torch.full_like(token_ids, mask_id)"
three_fates: "inputs[draw < 0.9 * 0.15] = random_ids[draw < 0.9 * 0.15]" ->
  "inputs[draw < 0.125] = random_ids[draw < 0.125]", "0.8 * 0.15" -> "0.1"
""",
    "variants.span_targets": r"""
each_token_once: "[*targets" -> "[*targets[:1], *targets[2:]"
halves_fit: "[*targets" -> "[targets[0], targets[2], targets[1], *targets[3:]"
""",
}
