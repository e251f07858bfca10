"""Mistakes about which features make a pair and where they go back. Wrong on purpose, hence without annotations."""

import torch
from einops import rearrange

from ttutor.exercises.exercise import Mistake
from ttutor.exercises.positions.rotary.steps import APART, HALVES, HALVES_TOGETHER, TOGETHER, angles_of, turn


def half_split(vectors, positions):
    return turn(vectors, angles_of(vectors, positions), HALVES, HALVES_TOGETHER)


def cat_not_interleave(vectors, positions):
    return turn(vectors, angles_of(vectors, positions), APART, HALVES_TOGETHER)


def interleaved_too_late(vectors, positions):
    return turn(vectors, angles_of(vectors, positions), HALVES, TOGETHER)


def pairs_left_apart(vectors, positions):
    turned = turn(vectors, angles_of(vectors, positions))
    return rearrange(turned, "... tokens (pairs two) -> ... tokens pairs two", two=2)


def frequencies_of_halves(vectors, positions):
    """Pairs of neighbours, but feature i has the frequency of pair i modulo the number of pairs."""
    angle = angles_of(vectors, positions)
    cos, sin = (torch.cat([wave, wave], dim=-1).to(vectors.dtype) for wave in (angle.cos(), angle.sin()))
    first, second = rearrange(vectors, APART, two=2)
    return vectors * cos + rearrange([-second, first], TOGETHER) * sin


def half_of_the_features(vectors, positions):
    half = vectors.shape[-1] // 2
    return torch.cat(
        [turn(vectors[..., :half], angles_of(vectors[..., :half], positions)), vectors[..., half:]], dim=-1
    )


MISTAKES = (
    Mistake(
        id="half_split",
        says="This is the layout that pairs feature i with i + d_head/2 (GPT-NeoX, Llama in Hugging Face's "
        "form). It is the same up to the order of features, but here neighbours make a pair.",
        answers=(half_split,),
    ),
    Mistake(
        id="cat_not_interleave",
        says="You turn the right pairs and write them back in another order: first all x, then all y. Put the "
        "two halves of each pair side by side again.",
        answers=(cat_not_interleave,),
    ),
    Mistake(
        id="interleaved_too_late",
        says="You pair feature i with i + d_head/2 and write the pairs back as neighbours. Take apart and put "
        "together by the same pattern.",
        answers=(interleaved_too_late,),
    ),
    Mistake(
        id="pairs_left_apart",
        says="The numbers are right but the pairs still have an axis of their own. Join the last two axes.",
        answers=(pairs_left_apart,),
    ),
    Mistake(
        id="frequencies_of_halves",
        says="You pair neighbours but lay out the frequencies for halves (θ₀, θ₁, ..., θ₀, θ₁, ...), so that "
        "the two of a pair turn by different angles. Neighbours need the same one.",
        answers=(frequencies_of_halves,),
    ),
    Mistake(
        id="half_of_the_features",
        says="Only the first half of the features turns. Some models do so; the paper turns every pair.",
        answers=(half_of_the_features,),
    ),
)
