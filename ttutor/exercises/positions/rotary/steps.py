"""The steps of the rotation as they should be, for mistakes that go wrong in one of the others."""

import torch
from einops import rearrange

APART = "... tokens (pairs two) -> two ... tokens pairs"
TOGETHER = "two ... tokens pairs -> ... tokens (pairs two)"
HALVES = "... tokens (two pairs) -> two ... tokens pairs"
HALVES_TOGETHER = "two ... tokens pairs -> ... tokens (two pairs)"


def frequencies(d_head, *, base=10_000.0):
    """One for each pair of features."""
    return base ** (-torch.arange(0, d_head, 2) / d_head)


def waves(positions, frequency):
    """The angles: one row for each token, one column for each pair."""
    return rearrange(positions.float(), "tokens -> tokens 1") * frequency


def turn(vectors, angle, apart=APART, together=TOGETHER):
    """As it should be, given the angles."""
    first, second = rearrange(vectors, apart, two=2)
    cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
    return rearrange([first * cos - second * sin, first * sin + second * cos], together)


def angles_of(vectors, positions):
    """As they should be."""
    return waves(positions, frequencies(vectors.shape[-1]))
