"""What goes wrong when targets are smoothed."""

import torch


def smoothed(targets, vocab_size, right, other):
    rows = torch.full((len(targets), vocab_size), float(other))
    return rows.scatter(1, targets[:, None], float(right))


def without_padding(rows, targets, pad_id):
    rows = rows.clone()
    rows[:, pad_id] = 0.0
    rows[targets == pad_id] = 0.0
    return rows


def right_answer(targets, vocab_size, pad_id, smoothing):
    return without_padding(smoothed(targets, vocab_size, 1 - smoothing, smoothing / (vocab_size - 2)), targets, pad_id)


def pad_col_gets_mass(targets, vocab_size, pad_id, smoothing):
    rows = smoothed(targets, vocab_size, 1 - smoothing, smoothing / (vocab_size - 2))
    rows[targets == pad_id] = 0.0
    return rows


def pad_col_gets_its_share(targets, vocab_size, pad_id, smoothing):
    rows = smoothed(targets, vocab_size, 1 - smoothing, smoothing / (vocab_size - 1))
    rows[targets == pad_id] = 0.0
    return rows


def pad_rows_kept(targets, vocab_size, pad_id, smoothing):
    rows = smoothed(targets, vocab_size, 1 - smoothing, smoothing / (vocab_size - 2))
    rows[:, pad_id] = 0.0
    return rows


def pad_rows_one_hot(targets, vocab_size, pad_id, smoothing):
    rows = right_answer(targets, vocab_size, pad_id, smoothing)
    rows[targets == pad_id, pad_id] = 1.0
    return rows


def nothing_for_padding(targets, vocab_size, pad_id, smoothing):
    return smoothed(targets, vocab_size, 1 - smoothing, smoothing / (vocab_size - 2))


def pad_rows_removed(targets, vocab_size, pad_id, smoothing):
    return right_answer(targets, vocab_size, pad_id, smoothing)[targets != pad_id]


def div_v(targets, vocab_size, pad_id, smoothing):
    return without_padding(smoothed(targets, vocab_size, 1 - smoothing, smoothing / vocab_size), targets, pad_id)


def div_v_minus_1(targets, vocab_size, pad_id, smoothing):
    return without_padding(smoothed(targets, vocab_size, 1 - smoothing, smoothing / (vocab_size - 1)), targets, pad_id)


def all_to_each(targets, vocab_size, pad_id, smoothing):
    return without_padding(smoothed(targets, vocab_size, 1 - smoothing, smoothing), targets, pad_id)


def eps_swapped(targets, vocab_size, pad_id, smoothing):
    return right_answer(targets, vocab_size, pad_id, 1 - smoothing)


def uniform_torch(targets, vocab_size, pad_id, smoothing):
    share = smoothing / vocab_size
    rows = smoothed(targets, vocab_size, 1 - smoothing + share, share)
    rows[targets == pad_id] = 0.0
    return rows


def uniform_torch_everywhere(targets, vocab_size, pad_id, smoothing):
    share = smoothing / vocab_size
    return smoothed(targets, vocab_size, 1 - smoothing + share, share)


def true_class_shares(targets, vocab_size, pad_id, smoothing):
    share = smoothing / (vocab_size - 2)
    return without_padding(smoothed(targets, vocab_size, 1 - smoothing + share, share), targets, pad_id)


def true_class_counted(targets, vocab_size, pad_id, smoothing):
    share = smoothing / (vocab_size - 1)
    return without_padding(smoothed(targets, vocab_size, 1 - smoothing + share, share), targets, pad_id)


def confidence_one(targets, vocab_size, pad_id, smoothing):
    return without_padding(smoothed(targets, vocab_size, 1.0, smoothing / (vocab_size - 2)), targets, pad_id)


def none(targets, vocab_size, pad_id, smoothing):
    return without_padding(smoothed(targets, vocab_size, 1.0, 0.0), targets, pad_id)


def true_class_forgotten(targets, vocab_size, pad_id, smoothing):
    share = smoothing / (vocab_size - 2)
    return without_padding(torch.full((len(targets), vocab_size), share), targets, pad_id)


def hard_coded_pad(targets, vocab_size, pad_id, smoothing):
    return right_answer(targets, vocab_size, 0, smoothing)


def hard_coded_smoothing(targets, vocab_size, pad_id, smoothing):
    return right_answer(targets, vocab_size, pad_id, 0.1)


def falsy_smoothing(targets, vocab_size, pad_id, smoothing):
    return right_answer(targets, vocab_size, pad_id, smoothing or 0.1)


def whole_numbers(targets, vocab_size, pad_id, smoothing):
    return right_answer(targets, vocab_size, pad_id, smoothing).to(targets.dtype)


def transposed(targets, vocab_size, pad_id, smoothing):
    return right_answer(targets, vocab_size, pad_id, smoothing).mT


def log_targets(targets, vocab_size, pad_id, smoothing):
    return right_answer(targets, vocab_size, pad_id, smoothing).clamp(min=1e-9).log()


def inplace(targets, vocab_size, pad_id, smoothing):
    rows = right_answer(targets, vocab_size, pad_id, smoothing)
    targets[targets == pad_id] = 0
    return rows
