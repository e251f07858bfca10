"""Answers to the exercises of inside that stand in no list: right ones in other styles, and stray mistakes."""

import torch
from torch.nn import functional


def lens_by_statistics(streams, gain, bias, unembedding):
    mean, variance = streams.mean(-1, keepdim=True), streams.var(-1, keepdim=True, unbiased=False)
    logits = ((streams - mean) * torch.rsqrt(variance + 1e-5) * gain + bias) @ unembedding.T
    return logits.softmax(-1)


def score_by_table(weights, token_ids):
    n = len(token_ids)
    same = (token_ids[:, None] == token_ids[None]) & torch.ones(n, n, dtype=torch.bool).tril(-1)
    latest = torch.where(same, torch.arange(n), -1).amax(dim=1)
    queries = (latest >= 0).nonzero()[:, 0]
    return weights[:, queries, latest[queries] + 1].mean(dim=1)


def fact_by_inverse(weight, bias, key, output, other_keys):
    inverse = torch.linalg.inv(other_keys.T @ other_keys)
    row = key @ inverse / (key @ inverse @ key)
    return weight + (output - bias - weight @ key)[:, None] * row[None]


def layer_by_difference(context, typical, head, w_output):
    d_head = context.shape[-1]
    joined = context.transpose(1, 2).flatten(2)
    gone = context[:, head] - typical[:, head].sum(dim=(0, 1)) / (typical.shape[0] * typical.shape[2])
    return joined @ w_output.T - gone @ w_output[:, head * d_head : (head + 1) * d_head].T


def probe_by_normal_equations(hidden, labels, is_train, n_labels):
    inputs = functional.pad(hidden, (0, 1), value=1.0)
    fitted = inputs[is_train]
    targets = torch.eye(n_labels, dtype=hidden.dtype)[labels[is_train]]
    solved = torch.linalg.pinv(fitted) @ targets
    right = (inputs[~is_train] @ solved).max(dim=1).indices.eq(labels[~is_train])
    return right.sum().item() / right.numel()


RIGHT = {
    "inside.lens_readings": (lens_by_statistics,),
    "inside.twin_score": (score_by_table,),
    "inside.written_fact": (fact_by_inverse,),
    "inside.without_head": (layer_by_difference,),
    "inside.honest_probe": (probe_by_normal_equations,),
}
STRAY = {
    "inside.without_head": r"""
head_is_gone: "typical[:, head].mean(dim=(0, 1))" -> "(typical[:, head].mean(dim=(0, 1)) + context[:, head].abs()) / 2"
average_stays: "mean(dim=(0, 1))" -> "flatten(0, 1).median(dim=0).values"
""",
    "inside.lens_readings": r"""
sums_to_one: "softmax(dim=-1)" -> "softmax(dim=-1).square()"
forgets_the_size: "centred = " -> "streams = streams.clamp(-1, 1)\n    centred = "
""",
    "inside.twin_score": r"""
at_most_one: "mean(dim=0)" -> "mean(dim=0) - 0.5"
perfect_head: "landed = []" -> "landed, token_ids = [], token_ids.clamp(max=int(token_ids.median()))"
""",
    "inside.honest_probe": r"""
is_a_share: "item()" -> "item() * 100"
held_out_is_unknown: "held_out = inputs[~is_train]" ->
  "held_out, centres = hidden[~is_train], [hidden[labels == one].mean(dim=0) for one in range(n_labels)]",
  "(held_out @ solved).argmax(dim=-1)" -> "torch.cdist(held_out, torch.stack(centres)).argmin(dim=1)"
""",
    "inside.written_fact": r"""
answers_the_key: "/ (direction @ key)" -> "/ (direction @ key) * 50"
moves_others_less: "torch.linalg.solve(second_moment, key)" -> "other_keys.mean(dim=0)"
""",
}
