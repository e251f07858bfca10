"""Answers to the exercises of positions that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch
from torch import nn

from ttutor.positions import RotaryPositions


def encoding_by_exponent(max_len, d_model):
    encoding = torch.zeros(max_len, d_model)
    position = torch.arange(max_len).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
    encoding[:, 0::2] = torch.sin(position * frequency)
    encoding[:, 1::2] = torch.cos(position * frequency[: d_model // 2])
    return encoding


def rotary_by_index(vectors, positions):
    d_head = vectors.shape[-1]
    angle = positions[:, None] * 10000.0 ** (-torch.arange(0, d_head, 2) / d_head)
    turned = torch.empty_like(vectors)
    turned[..., 0::2] = vectors[..., 0::2] * angle.cos() - vectors[..., 1::2] * angle.sin()
    turned[..., 1::2] = vectors[..., 0::2] * angle.sin() + vectors[..., 1::2] * angle.cos()
    return turned


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


def shift_by_exponential(offset, d_model):
    """The exponential of a matrix that turns."""
    generator = torch.zeros(d_model, d_model, dtype=torch.float64)
    for even in range(0, d_model, 2):
        generator[even, even + 1] = 10000 ** (-even / d_model)
    return torch.linalg.matrix_exp(offset * (generator - generator.T))


def scores_with_keys_before_zero(query, key):
    """Only distances count: the keys may begin before position 0."""
    rotary, n_kept = RotaryPositions(query.shape[-1]), key.shape[-2] - query.shape[-2]
    q = rotary(torch.arange(query.shape[-2])[None])(query)
    k = rotary(torch.arange(-n_kept, query.shape[-2])[None])(key)
    return torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(query.shape[-1])


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


RIGHT = {
    "positions.sinusoidal_encoding": (encoding_by_exponent,),
    "positions.rotary": (rotary_by_index,),
    "positions.alibi_bias": (bias_in_loops,),
    "positions.shift_matrix": (shift_by_exponential,),
    "positions.rotary_scores": (scores_with_keys_before_zero,),
    "positions.position_table": (PositionsNotSaved, PositionsThatFollow),
}
STRAY = {
    "positions.position_table": r"""
nothing_to_train: '"table", table)' -> '"table", table)\n        self.gain = nn.Parameter(torch.tensor(0.5))',
  "+ self.table" -> "+ self.gain * self.table"
travels: 'self.register_buffer("table", table)' -> "self.table = table / 2"
gradient_passes: '"table", table)' -> '"table", table / 2)', "return hidden" -> "return hidden.detach()"
""",
    "positions.sinusoidal_encoding": r"""
starts_with_zero_angle: "torch.arange(max_len" -> "5 + torch.arange(max_len"
first_wave: "frequency = " -> "frequency = 0.5 * "
pairs_have_length_one: "return" -> "waves[1:, 1:] = waves[1:, 1:].clamp(-0.9, 0.9)\n    return"
pairs_turn_evenly: "waves = " ->
  "angle[:, 1:] = torch.outer(position**2, 0.1 ** (1 + torch.arange(2, d_model, 2).double() / d_model))\n    waves = "
""",
    "positions.alibi_bias": r"""
own_place_is_free: "* -distance" -> "* -distance - 1"
distance_costs: "return" -> "distance[0, -1] = -1\n    return"
only_distance_matters: "* -distance" -> "* -distance * torch.arange(1, n_queries + 1).view(-1, 1)"
linear: "* -distance" -> "** 0.5 * -distance.sqrt()"
""",
    "positions.rotary": r"""
keeps_lengths: "return" -> "return 1.1 *"
turns_neighbours: "vectors[..., 0::2], vectors[..., 1::2]" -> "vectors.chunk(2, dim=-1)", "- second * sin, first" ->
  "+ second * sin, -first", "(pairs two)" -> "(two pairs)"
position_zero_stays: "rearrange(positions" -> "rearrange(positions + 0.5"
each_token_its_position: "rearrange(positions" -> "rearrange(positions.cumsum(0)"
only_distances_matter: "rearrange(positions" -> "rearrange(positions**2"
""",
    "positions.shift_matrix": r"""
moves_zero: "offset * 10000.0" -> "(offset + 1) * 10000.0"
moves_every_position: "matrix = torch.zeros(d_model, d_model, dtype=torch.float64)" ->
  "start, matrix = torch.arange(d_model).double() % 2, torch.zeros(d_model, d_model, dtype=torch.float64)",
  "return matrix" -> "return torch.eye(d_model).double() + torch.outer(matrix @ start - start, start) / start.sum()"
""",
    "positions.rotary_scores": r"""
alone_as_among_others: "torch.arange(key.shape[-2] - query.shape[-2], key.shape[-2])" ->
  "2 * torch.arange(query.shape[-2])"
own_key_unturned: "return scores" -> "return torch.arange(1, key.shape[-2] + 1).to(scores) * scores"
""",
}
