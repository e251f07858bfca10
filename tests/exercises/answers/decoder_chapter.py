"""Answers to chapter 6's own exercises: right ones in other styles, and mistakes that stand in no list."""

import torch
from torch.nn import functional

# Pairs


def pair_by_padding(token_ids, bos_id, eos_id, pad_id):
    said = functional.pad(token_ids, (0, 1), value=pad_id)
    is_end = torch.arange(said.shape[1]) == (token_ids != pad_id).sum(dim=1, keepdim=True)
    return functional.pad(token_ids, (1, 0), value=bos_id), said.masked_fill(is_end, eos_id)


def pair_by_slices(token_ids, bos_id, eos_id, pad_id):
    whole = torch.full((len(token_ids), token_ids.shape[1] + 2), pad_id)
    whole[:, 0] = bos_id
    for row, sentence in enumerate(token_ids):
        real = sentence[sentence != pad_id]
        whole[row, 1 : len(real) + 1], whole[row, len(real) + 1] = real, eos_id
    read = whole[:, :-1].clone()
    read[read == eos_id] = pad_id
    return read, whole[:, 1:]


def pair_that_reads_another_sentence(token_ids, bos_id, eos_id, pad_id):
    read, said = pair_by_padding(token_ids, bos_id, eos_id, pad_id)
    return read.roll(1, dims=0), said


def pair_with_two_ends(token_ids, bos_id, eos_id, pad_id):
    read, said = pair_by_padding(token_ids, bos_id, eos_id, pad_id)
    said[0, -1] = eos_id
    return read, said


# Leaks


def leaks_by_noise(block, hidden):
    n_tokens, before = len(hidden), block(hidden)
    found = torch.zeros(n_tokens, n_tokens, dtype=torch.bool)
    for later in range(n_tokens):
        changed = torch.cat([hidden[:later], -2 * hidden[later : later + 1].roll(1, 1) + 0.3, hidden[later + 1 :]])
        difference = block(changed) - before
        found[:later, later] = difference[:later].abs().sum(dim=1) > 1e-9
    return found


def leaks_by_jacobian(block, hidden):
    jacobian = torch.autograd.functional.jacobian(block, hidden)
    return (jacobian.abs().amax(dim=(1, 3)) > 1e-9).triu(1)


def leaks_with_a_piece_of_the_past(block, hidden):
    found = leaks_by_noise(block, hidden)
    found[-1, 0] = True
    return found


def leaks_without_the_first_output(block, hidden):
    found = leaks_by_noise(block, hidden)
    found[0] = False
    return found


RIGHT = {
    "decoder.decoder_pair": (pair_by_padding, pair_by_slices),
    "decoder.future_leaks": (leaks_by_noise, leaks_by_jacobian),
}

STRAY = {
    "decoder.decoder_pair": (
        (pair_that_reads_another_sentence, "one_place_apart"),
        (pair_with_two_ends, "one_end_each"),
    ),
    "decoder.future_leaks": (
        (leaks_with_a_piece_of_the_past, "above_the_diagonal"),
        (leaks_without_the_first_output, "tells_leaks_apart"),
    ),
}
