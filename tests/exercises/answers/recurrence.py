"""Answers to the exercises on recurrence that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch

from ttutor.exercises.recurrence import lstm_step

# The loop


def read_by_torch_cell(words, w_input, w_hidden, bias):
    pages = []
    hidden = words.new_zeros(words.size(0), bias.numel())
    written = words @ w_input + bias
    for t in range(words.size(1)):
        hidden = (written[:, t] + hidden @ w_hidden).tanh()
        pages.append(hidden[:, None])
    return torch.cat(pages, 1)


def read_into_a_tensor(words, w_input, w_hidden, bias):
    pages = torch.zeros(words.shape[0], words.shape[1] + 1, len(bias), dtype=words.dtype)
    for t in range(words.shape[1]):
        affine = torch.cat([words[:, t], pages[:, t].clone()], 1) @ torch.cat([w_input, w_hidden])
        pages[:, t + 1] = torch.tanh(affine + bias)
    return pages[:, 1:]


def mean_of_all_words(words, w_input, w_hidden, bias):
    return torch.tanh(words @ w_input + words.mean(1, keepdim=True) @ w_input + bias)


def bias_twice(words, w_input, w_hidden, bias):
    return read_by_torch_cell(words, w_input, w_hidden, 2 * bias)


# The gates


def gates_by_slices(affine, memory_cell):
    n = memory_cell.shape[1]
    keep, let_in = affine[:, n : 2 * n].sigmoid(), affine[:, :n].sigmoid()
    new = keep * memory_cell + let_in * torch.tanh(affine[:, 2 * n : 3 * n])
    return torch.sigmoid(affine[:, 3 * n :]) * torch.tanh(new), new


def gates_row_by_row(affine, memory_cell):
    """One sentence after another, all gates through one sigmoid: tanh x = 2 sigmoid(2x) - 1."""
    shown, kept = [], []
    for row, old in zip(affine, memory_cell, strict=True):
        i, f, g, o = row.reshape(4, -1)
        new = torch.addcmul(f.sigmoid() * old, i.sigmoid(), 2 * (2 * g).sigmoid() - 1)
        shown.append(o.sigmoid() * (2 * (2 * new).sigmoid() - 1))
        kept.append(new)
    return torch.stack(shown), torch.stack(kept)


def keeps_ninety_per_cent(affine, memory_cell):
    hidden, new = lstm_step.lstm_gates(affine, memory_cell)
    return hidden, 0.9 * new


def output_gate_half_open(affine, memory_cell):
    _, new = lstm_step.lstm_gates(affine, memory_cell)
    return 0.5 * new.tanh(), new


# The half-life


def bias_by_logit(half_life):
    return torch.logit(torch.exp(-math.log(2) / half_life))


def bias_by_powers(half_life):
    return -torch.log(2 ** (1 / half_life) - 1)


def only_for_long_times(half_life):
    return half_life.log() - math.log(math.log(2))


# The look back


def weights_by_powers(asked, offered, direction, is_real):
    powers = ((asked[:, :, None] + offered[:, None]).tanh() @ direction).exp() * is_real[:, None]
    return powers / powers.sum(dim=-1, keepdim=True)


def weights_by_a_loop(asked, offered, direction, is_real):
    rows = []
    for t in range(asked.shape[1]):
        scores = torch.tanh(asked[:, t : t + 1] + offered) @ direction
        rows.append(torch.where(is_real, scores, -torch.inf).softmax(dim=-1))
    return torch.stack(rows, dim=1)


def twice_the_shares(asked, offered, direction, is_real):
    return 2 * weights_by_a_loop(asked, offered, direction, is_real)


def a_little_padding(asked, offered, direction, is_real):
    return 0.9 * weights_by_a_loop(asked, offered, direction, is_real) + 0.1 / is_real.shape[1]


def the_first_query_for_all(asked, offered, direction, is_real):
    return (
        torch.where(is_real, 2 * offered @ direction, -torch.inf).softmax(dim=-1)[:, None].repeat(1, asked.shape[1], 1)
    )


# The scan


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


def scan_by_shifts(factor, added):
    n_rounds = math.ceil(math.log2(len(added)))
    for power in range(n_rounds):
        distance = 2**power
        earlier, before = (torch.cat([torch.zeros_like(x[:distance]), x[:-distance]]) for x in (added, factor))
        added, factor = added + factor * earlier, factor * before
    return added, n_rounds


def mean_of_all(factor, added):
    return added + factor * added.mean(dim=0), 4


def halves(factor, added):
    hidden, n_rounds = scan_by_recursion(factor / 2, added)
    return hidden, n_rounds


RIGHT = {
    "recurrence.read_words": (read_by_torch_cell, read_into_a_tensor),
    "recurrence.lstm_gates": (gates_by_slices, gates_row_by_row),
    "recurrence.forget_bias": (bias_by_logit, bias_by_powers),
    "recurrence.look_back_weights": (weights_by_powers, weights_by_a_loop),
    "recurrence.scan_rounds": (scan_by_recursion, scan_by_shifts),
}
STRAY = {
    "recurrence.read_words": ((mean_of_all_words, "reach"), (bias_twice, "first_page")),
    "recurrence.lstm_gates": ((keeps_ninety_per_cent, "keeps"), (output_gate_half_open, "output_shuts")),
    "recurrence.forget_bias": ((only_for_long_times, "half_is_left"),),
    "recurrence.look_back_weights": (
        (twice_the_shares, "rows_are_shares"),
        (a_little_padding, "padding_unseen"),
        (the_first_query_for_all, "queries_matter"),
    ),
    "recurrence.scan_rounds": ((mean_of_all, "future_unseen"), (halves, "follows")),
}
