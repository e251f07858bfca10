"""Answers to the exercises of recurrence that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch


def read_by_torch_cell(words, w_input, w_hidden, bias):
    pages = []
    hidden = words.new_zeros(words.size(0), bias.numel())
    written = words @ w_input + bias
    for t in range(words.size(1)):
        hidden = (written[:, t] + hidden @ w_hidden).tanh()
        pages.append(hidden[:, None])
    return torch.cat(pages, 1)


def gates_row_by_row(affine, memory_cell):
    """One sentence after another, all gates through one sigmoid: tanh x = 2 sigmoid(2x) - 1."""
    shown, kept = [], []
    for row, old in zip(affine, memory_cell, strict=True):
        i, f, g, o = row.reshape(4, -1)
        new = torch.addcmul(f.sigmoid() * old, i.sigmoid(), 2 * (2 * g).sigmoid() - 1)
        shown.append(o.sigmoid() * (2 * (2 * new).sigmoid() - 1))
        kept.append(new)
    return torch.stack(shown), torch.stack(kept)


def bias_by_logit(half_life):
    return torch.logit(torch.exp(-math.log(2) / half_life))


def weights_by_a_loop(asked, offered, direction, is_real):
    rows = []
    for t in range(asked.shape[1]):
        scores = torch.tanh(asked[:, t : t + 1] + offered) @ direction
        rows.append(torch.where(is_real, scores, -torch.inf).softmax(dim=-1))
    return torch.stack(rows, dim=1)


def scan_by_recursion(factor, added):
    """Pairs are joined, the half as long recurrence is solved, and every second state follows from its neighbour."""
    if len(added) == 1:
        return added, 0
    padded = torch.zeros_like(added[:1])
    even = len(added) // 2 * 2
    joined_factor = factor[1:even:2] * factor[0:even:2]
    joined = factor[1:even:2] * added[0:even:2] + added[1:even:2]
    odd_states, _ = scan_by_recursion(joined_factor, joined)
    before = torch.cat([padded, odd_states])[: len(added[0::2])]
    states = torch.zeros_like(added)
    states[1::2] = odd_states
    states[0::2] = factor[0::2] * before + added[0::2]
    return states, math.ceil(math.log2(len(added)))


RIGHT = {
    "recurrence.read_words": (read_by_torch_cell,),
    "recurrence.lstm_gates": (gates_row_by_row,),
    "recurrence.forget_bias": (bias_by_logit,),
    "recurrence.look_back_weights": (weights_by_a_loop,),
    "recurrence.scan_rounds": (scan_by_recursion,),
}
STRAY = {
    "recurrence.read_words": r"""
reach: "word @ w_input" -> "(word + words.mean(dim=1)) @ w_input"
first_page: "+ bias" -> "+ 2 * bias"
""",
    "recurrence.lstm_gates": r"""
keeps: "memory_cell.tanh(), memory_cell" -> "memory_cell.tanh(), 0.9 * memory_cell"
output_shuts: "return o.sigmoid()" -> "return 0.5"
""",
    "recurrence.forget_bias": r"""
half_is_left: "torch.log(forget / (1 - forget))" -> "torch.log(half_life / 0.6931471805599453)"
""",
    "recurrence.look_back_weights": r"""
rows_are_shares: ".softmax(dim=-1)" -> ".softmax(dim=-1) * 2"
padding_unseen: ".softmax(dim=-1)" -> ".softmax(dim=-1) * 0.9 + 0.1 / is_real.shape[1]"
queries_matter: "pairs.tanh()" -> "2 * pairs"
""",
    "recurrence.scan_rounds": r"""
future_unseen: "return hidden" -> "return hidden + added.mean(dim=0)"
follows: "hidden, reach, n_rounds = added, 1, 0" -> "factor, hidden, reach, n_rounds = factor / 2, added, 1, 0"
""",
}
