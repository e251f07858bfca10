"""What goes wrong when decoder input and targets are made from a translation."""

import torch


def unshifted(token_ids):
    return token_ids[:, :-1], token_ids[:, :-1]


def unshifted_whole(token_ids):
    return token_ids, token_ids


def swapped(token_ids):
    return token_ids[:, 1:], token_ids[:, :-1]


def shift_two(token_ids):
    return token_ids[:, :-2], token_ids[:, 2:]


def drops_bos(token_ids):
    return token_ids[:, 1:-1], token_ids[:, 2:]


def wraps_around(token_ids):
    return token_ids, token_ids.roll(-1, dims=1)


def along_the_batch(token_ids):
    return token_ids[:-1], token_ids[1:]


def whole_target(token_ids):
    return token_ids[:, :-1], token_ids


def whole_input(token_ids):
    return token_ids, token_ids[:, 1:]


def drops_eos(token_ids):
    return token_ids[:, :-2], token_ids[:, 1:-1]


def one_tensor(token_ids):
    return torch.stack([token_ids[:, :-1], token_ids[:, 1:]])


def as_floats(token_ids):
    return token_ids[:, :-1].float(), token_ids[:, 1:].float()


def flattened(token_ids):
    return token_ids[:, :-1].flatten(), token_ids[:, 1:].flatten()


def shortest_sentence(token_ids):
    length = int((token_ids != 0).sum(dim=1).min())
    return token_ids[:, : length - 1], token_ids[:, 1:length]


def pads_in_place(token_ids):
    decoder_input = token_ids[:, :-1].clone()
    targets = token_ids
    targets[:, :-1] = token_ids[:, 1:].clone()
    return decoder_input, targets[:, :-1]
