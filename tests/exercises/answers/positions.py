"""Answers to the exercises on positions that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch
from torch import nn

from ttutor.positions import RotaryPositions

# sinusoidal_encoding


def encoding_by_exponent(max_len, d_model):
    encoding = torch.zeros(max_len, d_model)
    position = torch.arange(max_len).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
    encoding[:, 0::2] = torch.sin(position * frequency)
    encoding[:, 1::2] = torch.cos(position * frequency[: d_model // 2])
    return encoding


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


def rotary_by_index(vectors, positions):
    d_head = vectors.shape[-1]
    angle = positions[:, None] * 10000.0 ** (-torch.arange(0, d_head, 2) / d_head)
    turned = torch.empty_like(vectors)
    turned[..., 0::2] = vectors[..., 0::2] * angle.cos() - vectors[..., 1::2] * angle.sin()
    turned[..., 1::2] = vectors[..., 0::2] * angle.sin() + vectors[..., 1::2] * angle.cos()
    return turned


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


# alibi_bias


def bias_in_loops(n_heads, n_queries, n_keys):
    return torch.tensor(
        [
            [
                [-(2 ** (-8 * (head + 1) / n_heads)) * abs(i + n_keys - n_queries - j) for j in range(n_keys)]
                for i in range(n_queries)
            ]
            for head in range(n_heads)
        ]
    )


def bias_cut_from_a_square(n_heads, n_queries, n_keys):
    place = torch.arange(n_keys).float()
    slopes = torch.pow(2 ** (-8 / n_heads), torch.arange(1, n_heads + 1).float())
    whole = -torch.cdist(place[:, None], place[:, None]) * slopes.reshape(-1, 1, 1)
    return whole[:, n_keys - n_queries :]


def bias_with_a_constant(n_heads, n_queries, n_keys):
    return bias_in_loops(n_heads, n_queries, n_keys) - 1


def bias_that_pays_at_last(n_heads, n_queries, n_keys):
    bias = bias_in_loops(n_heads, n_queries, n_keys)
    bias[:, 0, -1] = 0.25
    return bias


def bias_by_place(n_heads, n_queries, n_keys):
    return bias_in_loops(n_heads, n_queries, n_keys) * torch.arange(1, n_queries + 1).view(-1, 1)


def bias_of_the_root(n_heads, n_queries, n_keys):
    return -bias_in_loops(n_heads, n_queries, n_keys).abs().sqrt()


# shift_matrix


def shift_by_exponential(offset, d_model):
    """The exponential of a matrix that turns."""
    generator = torch.zeros(d_model, d_model, dtype=torch.float64)
    for even in range(0, d_model, 2):
        generator[even, even + 1] = 10000 ** (-even / d_model)
    return torch.linalg.matrix_exp(offset * (generator - generator.T))


def shift_step_by_step(offset, d_model):
    step = torch.zeros(d_model, d_model, dtype=torch.float64)
    for even in range(0, d_model, 2):
        cos, sin = math.cos(10000 ** (-even / d_model)), math.sin(10000 ** (-even / d_model))
        step[even : even + 2, even : even + 2] = torch.tensor([[cos, sin], [-sin, cos]])
    return torch.linalg.matrix_power(step, offset)


def _waves(n_positions, d_model):
    angle = torch.outer(
        torch.arange(n_positions).double(), 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
    )
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


def shift_one_more(offset, d_model):
    return shift_step_by_step(offset + 1, d_model)


def shift_of_the_start(offset, d_model):
    """Fitted to position 0 alone, and the identity elsewhere."""
    start, end = _waves(offset + 1, d_model)[[0, -1]]
    return torch.eye(d_model, dtype=torch.float64) + torch.outer(end - start, start) / (start @ start)


# rotary_scores


def scores_with_keys_before_zero(query, key):
    """Only distances count: the keys may begin before position 0."""
    rotary, n_kept = RotaryPositions(query.shape[-1]), key.shape[-2] - query.shape[-2]
    q = rotary(torch.arange(query.shape[-2])[None])(query)
    k = rotary(torch.arange(-n_kept, query.shape[-2])[None])(key)
    return torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(query.shape[-1])


def scores_of_a_filled_text(query, key):
    """Fill the queries up to a whole text, and cut."""
    n_kept = key.shape[-2] - query.shape[-2]
    filled = torch.nn.functional.pad(query, (0, 0, n_kept, 0))
    rotation = RotaryPositions(query.shape[-1])(torch.arange(key.shape[-2])[None])
    return (rotation(filled) @ rotation(key).mT / query.shape[-1] ** 0.5)[:, :, n_kept:]


def scores_for_this_cache(query, key):
    rotary = RotaryPositions(query.shape[-1])
    q = rotary((torch.arange(query.shape[-2]) * 2)[None])(query)
    return q @ rotary(torch.arange(key.shape[-2])[None])(key).mT / math.sqrt(query.shape[-1])


def scores_with_a_leaning(query, key):
    place = torch.arange(1, key.shape[-2] + 1, dtype=query.dtype)
    return scores_with_keys_before_zero(query, key) * place


class PositionsNotSaved(nn.Module):
    """A buffer that stays out of checkpoints."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("rows", table.clone(), persistent=False)

    def forward(self, hidden):
        return self.rows[: hidden.size(1)].unsqueeze(0) + hidden


class PositionsThatFollow(nn.Module):
    """A plain tensor that is brought to where the input is."""

    def __init__(self, table):
        super().__init__()
        self.rows = table

    def forward(self, hidden):
        length = hidden.shape[1]
        return hidden + self.rows.to(hidden)[torch.arange(length)]


class PositionsWithAGain(nn.Module):
    """Scales the table by a number that is learnt."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("rows", table.clone())
        self.gain = nn.Parameter(torch.tensor(0.5))

    def forward(self, hidden):
        return hidden + self.gain * self.rows[: hidden.shape[1]]


class PositionsLeftBehind(nn.Module):
    """A plain tensor, and half of it."""

    def __init__(self, table):
        super().__init__()
        self.rows = table / 2

    def forward(self, hidden):
        return hidden + self.rows[: hidden.shape[1]]


class PositionsWithoutGradient(nn.Module):
    """Half of the table, and nothing comes back."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("rows", table / 2)

    def forward(self, hidden):
        return hidden.detach() + self.rows[: hidden.shape[1]]


RIGHT = {
    "positions.sinusoidal_encoding": (
        encoding_by_exponent,
        encoding_by_shifted_sine,
    ),
    "positions.rotary": (
        rotary_by_index,
        rotary_by_repeated_waves,
    ),
    "positions.alibi_bias": (bias_in_loops, bias_cut_from_a_square),
    "positions.shift_matrix": (shift_by_exponential, shift_step_by_step),
    "positions.rotary_scores": (scores_with_keys_before_zero, scores_of_a_filled_text),
    "positions.position_table": (PositionsNotSaved, PositionsThatFollow),
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
    "positions.alibi_bias": (
        (bias_with_a_constant, "own_place_is_free"),
        (bias_that_pays_at_last, "distance_costs"),
        (bias_by_place, "only_distance_matters"),
        (bias_of_the_root, "linear"),
    ),
    "positions.shift_matrix": (
        (shift_one_more, "moves_zero"),
        (shift_of_the_start, "moves_every_position"),
    ),
    "positions.rotary_scores": (
        (scores_for_this_cache, "alone_as_among_others"),
        (scores_with_a_leaning, "own_key_unturned"),
    ),
    "positions.position_table": (
        (PositionsWithAGain, "nothing_to_train"),
        (PositionsLeftBehind, "travels"),
        (PositionsWithoutGradient, "gradient_passes"),
    ),
}
