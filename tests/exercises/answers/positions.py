"""Answers to the exercises on positions that stand in no list: right ones in other styles, and stray mistakes."""

import math

import numpy as np
import torch

# sinusoidal_encoding


def encoding_in_loops(max_len, d_model):
    encoding = torch.zeros(max_len, d_model)
    for position in range(max_len):
        for feature in range(d_model):
            angle = position / 10000 ** ((feature - feature % 2) / d_model)
            encoding[position, feature] = math.cos(angle) if feature % 2 else math.sin(angle)
    return encoding


def encoding_by_exponent(max_len, d_model):
    encoding = torch.zeros(max_len, d_model)
    position = torch.arange(max_len).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
    encoding[:, 0::2] = torch.sin(position * frequency)
    encoding[:, 1::2] = torch.cos(position * frequency[: d_model // 2])
    return encoding


def encoding_in_numpy(max_len, d_model):
    angle = np.arange(max_len)[:, None] / 10000 ** (2 * (np.arange(d_model) // 2) / d_model)[None]
    angle[:, 0::2] = np.sin(angle[:, 0::2])
    angle[:, 1::2] = np.cos(angle[:, 1::2])
    return torch.from_numpy(angle).float()


def encoding_by_shifted_sine(max_len, d_model):
    """A cosine is a sine a quarter turn on."""
    feature = torch.arange(d_model, dtype=torch.float64)
    frequency = 10000.0 ** (-(feature - feature % 2) / d_model)
    return torch.sin(torch.outer(torch.arange(max_len).double(), frequency) + feature % 2 * math.pi / 2).float()


def quarter_turn_on(max_len, d_model):
    return encoding_by_shifted_sine(max_len + 5, d_model)[5:]


def slower_first_wave(max_len, d_model):
    feature = torch.arange(d_model, dtype=torch.float64)
    frequency = 0.5 * 10000.0 ** (-(feature - feature % 2) / d_model)
    angle = torch.outer(torch.arange(max_len).double(), frequency)
    return torch.where(feature % 2 == 0, angle.sin(), angle.cos()).float()


def cut_at_nine_tenths(max_len, d_model):
    encoding = encoding_by_shifted_sine(max_len, d_model)
    encoding[1:, 1:] = encoding[1:, 1:].clamp(-0.9, 0.9)
    return encoding


def squared_positions(max_len, d_model):
    feature = torch.arange(d_model, dtype=torch.float64)
    position = torch.arange(max_len).double()
    angle = torch.outer(position, 10000.0 ** (-(feature - feature % 2) / d_model))
    angle[:, 2:] = torch.outer(position**2, 0.1 ** (1 + (feature[2:] - feature[2:] % 2) / d_model))
    return torch.where(feature % 2 == 0, angle.sin(), angle.cos()).float()


# rotary


def rotary_by_complex_numbers(vectors, positions):
    d_head = vectors.shape[-1]
    frequency = 1.0 / (10000 ** (torch.arange(0, d_head, 2).float() / d_head))
    angle = torch.outer(positions.float(), frequency)
    turns = torch.polar(torch.ones_like(angle), angle)
    numbers = torch.view_as_complex(vectors.float().reshape(*vectors.shape[:-1], -1, 2))
    return torch.view_as_real(numbers * turns).flatten(-2).to(vectors.dtype)


def rotary_by_index(vectors, positions):
    d_head = vectors.shape[-1]
    angle = positions[:, None] * 10000.0 ** (-torch.arange(0, d_head, 2) / d_head)
    turned = torch.empty_like(vectors)
    turned[..., 0::2] = vectors[..., 0::2] * angle.cos() - vectors[..., 1::2] * angle.sin()
    turned[..., 1::2] = vectors[..., 0::2] * angle.sin() + vectors[..., 1::2] * angle.cos()
    return turned


def rotary_by_matrices(vectors, positions):
    """One block of two by two for each pair, laid into a matrix for each token."""
    d_head = vectors.shape[-1]
    matrices = torch.zeros(len(positions), d_head, d_head, dtype=vectors.dtype)
    for token, position in enumerate(positions.tolist()):
        for pair in range(d_head // 2):
            angle = position * 10000 ** (-2 * pair / d_head)
            block = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            matrices[token, 2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = block
    return torch.einsum("tij,bhtj->bhti", matrices, vectors)


def rotary_by_repeated_waves(vectors, positions):
    d_head = vectors.shape[-1]
    angle = (positions[:, None] * 10000.0 ** (-torch.arange(0, d_head, 2) / d_head)).repeat_interleave(2, dim=-1)
    other = torch.stack([-vectors[..., 1::2], vectors[..., ::2]], dim=-1).reshape(vectors.shape)
    return vectors * angle.cos() + other * angle.sin()


def longer_vectors(vectors, positions):
    return 1.1 * rotary_by_index(vectors, positions)


def halves_and_backwards(vectors, positions):
    first, second = vectors.chunk(2, dim=-1)
    pairs = torch.stack([first, second], dim=-1).flatten(-2)
    turned = rotary_by_index(pairs, -positions)
    return torch.cat([turned[..., 0::2], turned[..., 1::2]], dim=-1)


def a_turn_for_all(vectors, positions):
    return rotary_by_index(vectors, positions + 0.5)


def in_order_of_position(vectors, positions):
    return rotary_by_index(vectors, positions + positions.cumsum(0) - positions)


def squares_of_positions(vectors, positions):
    return rotary_by_index(vectors, positions**2)


RIGHT = {
    "positions.sinusoidal_encoding": (
        encoding_in_loops,
        encoding_by_exponent,
        encoding_in_numpy,
        encoding_by_shifted_sine,
    ),
    "positions.rotary": (
        rotary_by_complex_numbers,
        rotary_by_index,
        rotary_by_matrices,
        rotary_by_repeated_waves,
    ),
}

STRAY = {
    "positions.sinusoidal_encoding": (
        (quarter_turn_on, "starts_with_zero_angle"),
        (slower_first_wave, "first_wave"),
        (cut_at_nine_tenths, "pairs_have_length_one"),
        (squared_positions, "pairs_turn_evenly"),
    ),
    "positions.rotary": (
        (longer_vectors, "keeps_lengths"),
        (halves_and_backwards, "turns_neighbours"),
        (a_turn_for_all, "position_zero_stays"),
        (in_order_of_position, "each_token_its_position"),
        (squares_of_positions, "only_distances_matter"),
    ),
}
