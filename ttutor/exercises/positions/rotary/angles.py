"""Mistakes about positions and frequencies. Wrong on purpose, hence without annotations."""

import math

import torch
from einops import rearrange

from ttutor.exercises.exercise import Mistake
from ttutor.exercises.positions.rotary.steps import APART, TOGETHER, angles_of, frequencies, turn, waves


def ignores_positions(vectors, positions):
    return turn(vectors, angles_of(vectors, torch.arange(vectors.shape[-2])))


def from_the_first(vectors, positions):
    return turn(vectors, angles_of(vectors, positions[0] + torch.arange(vectors.shape[-2])))


def relative_to_the_first(vectors, positions):
    return turn(vectors, angles_of(vectors, positions - positions[0]))


def pos_plus_1(vectors, positions):
    return turn(vectors, angles_of(vectors, positions + 1))


def share_of_length(vectors, positions):
    return turn(vectors, angles_of(vectors, positions.float() / vectors.shape[-2]))


def by_heads(vectors, positions):
    """The turn goes with the head instead of the token."""
    n_heads = vectors.shape[1]
    angle = rearrange(waves(torch.arange(n_heads), frequencies(vectors.shape[-1])), "heads pairs -> heads 1 pairs")
    first, second = rearrange(vectors, APART, two=2)
    cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
    return rearrange([first * cos - second * sin, first * sin + second * cos], TOGETHER)


def exponent_i(vectors, positions):
    d_head = vectors.shape[-1]
    return turn(vectors, waves(positions, 10_000.0 ** (-torch.arange(d_head // 2) / d_head)))


def exponent_2x(vectors, positions):
    d_head = vectors.shape[-1]
    return turn(vectors, waves(positions, 10_000.0 ** (-2 * torch.arange(0, d_head, 2) / d_head)))


def base_1000(vectors, positions):
    return turn(vectors, waves(positions, frequencies(vectors.shape[-1], base=1000.0)))


def base_of_llama(vectors, positions):
    return turn(vectors, waves(positions, frequencies(vectors.shape[-1], base=500_000.0)))


def sign(vectors, positions):
    return turn(vectors, waves(positions, 1 / frequencies(vectors.shape[-1])))


def slowest_first(vectors, positions):
    return turn(vectors, waves(positions, frequencies(vectors.shape[-1]).flip(0)))


def same_frequency(vectors, positions):
    return turn(vectors, waves(positions, torch.ones(vectors.shape[-1] // 2)))


def endpoints(vectors, positions):
    n_pairs = vectors.shape[-1] // 2
    return turn(vectors, waves(positions, 10_000.0 ** (-torch.arange(n_pairs) / (n_pairs - 1))))


def in_degrees(vectors, positions):
    return turn(vectors, angles_of(vectors, positions) * math.pi / 180)


def times_two_pi(vectors, positions):
    return turn(vectors, angles_of(vectors, positions) * 2 * math.pi)


def always_eight_wide(vectors, positions):
    return turn(vectors, waves(positions, frequencies(8)[: vectors.shape[-1] // 2]))


MISTAKES = (
    Mistake(
        id="ignores_positions",
        says="You count the tokens from 0 and do not use `positions`. While a text is being written with a "
        "cache, the newest token comes alone and stands far from 0.",
        answers=(ignores_positions,),
    ),
    Mistake(
        id="from_the_first",
        says="You take the first position and count on from there, or subtract it. Every token has its own "
        "entry in `positions`: use them all as they are.",
        answers=(from_the_first, relative_to_the_first),
    ),
    Mistake(
        id="pos_plus_1",
        says="Off by one: at position 0 nothing should turn. (Products of queries and keys would not notice, a "
        "cache made by another program would.)",
        answers=(pos_plus_1,),
    ),
    Mistake(
        id="share_of_length",
        says="You divide positions by the number of tokens: the same two words are then nearer in a longer "
        "text. Use the position itself.",
        answers=(share_of_length,),
    ),
    Mistake(
        id="by_heads",
        says="Your angle goes with the head instead of the token. Which axis of `batch heads tokens d_head` do "
        "positions belong to?",
        answers=(by_heads,),
    ),
    Mistake(
        id="exponent",
        says="The frequencies fall too slowly or too fast: pair i has the exponent 2i/d_head, and "
        "`arange(0, d_head, 2)` is already 2i. Is the index doubled twice, or not at all?",
        answers=(exponent_i, exponent_2x),
    ),
    Mistake(
        id="base",
        says="Pair 0 turns rightly and the last ones do not. Check the base: it is 10000 here.",
        answers=(base_1000, base_of_llama),
    ),
    Mistake(
        id="sign",
        says="Later pairs turn faster and faster; they should turn slower. Look at the sign of the exponent.",
        answers=(sign,),
    ),
    Mistake(
        id="slowest_first",
        says="The right frequencies in reverse order: pair 0 turns fastest, by one radian a position.",
        answers=(slowest_first,),
    ),
    Mistake(
        id="same_frequency",
        says="All pairs turn equally fast, so that positions 6 apart can hardly be told from one another. Each "
        "pair has a frequency of its own.",
        answers=(same_frequency,),
    ),
    Mistake(
        id="endpoints",
        says="Your slowest pair turns by 1/10000 exactly: you divide by the number of pairs less one. The "
        "paper divides 2i by d_head.",
        answers=(endpoints,),
    ),
    Mistake(
        id="unit_of_angle",
        says="Pair 0 should turn by one radian a position. Your angles carry another factor, 2π or π/180.",
        answers=(in_degrees, times_two_pi),
    ),
    Mistake(
        id="always_eight_wide",
        says="Right for vectors of width 8, and for no others. Take d_head from the vectors.",
        answers=(always_eight_wide,),
    ),
)
