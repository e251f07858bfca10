"""Mistakes about the turn itself and what comes back of it. Wrong on purpose, hence without annotations."""

import math

import torch
from einops import rearrange

from ttutor.exercises.exercise import Mistake
from ttutor.exercises.positions.rotary.steps import APART, TOGETHER, angles_of, turn


def negative_angle(vectors, positions):
    return turn(vectors, -angles_of(vectors, positions))


def no_minus(vectors, positions):
    first, second = rearrange(vectors, APART, two=2)
    angle = angles_of(vectors, positions)
    cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
    return rearrange([first * cos + second * sin, first * sin + second * cos], TOGETHER)


def sin_cos_swapped(vectors, positions):
    return turn(vectors, math.pi / 2 - angles_of(vectors, positions))


def cosine_alone(vectors, positions):
    first, second = rearrange(vectors, APART, two=2)
    cos = angles_of(vectors, positions).cos().to(vectors.dtype)
    return rearrange([first * cos, second * cos], TOGETHER)


def first_of_pair_alone(vectors, positions):
    first, second = rearrange(vectors, APART, two=2)
    angle = angles_of(vectors, positions)
    cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
    return rearrange([first * cos - second * sin, second], TOGETHER)


def overwritten(vectors, positions):
    turned = vectors.clone()
    angle = angles_of(vectors, positions)
    cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
    turned[..., 0::2] = turned[..., 0::2] * cos - turned[..., 1::2] * sin
    turned[..., 1::2] = turned[..., 0::2] * sin + turned[..., 1::2] * cos
    return turned


def additive(vectors, positions):
    angle = angles_of(vectors, positions)
    return vectors + rearrange([angle.sin(), angle.cos()], TOGETHER).to(vectors.dtype)


def multiplied(vectors, positions):
    angle = angles_of(vectors, positions)
    return vectors * rearrange([angle.sin(), angle.cos()], TOGETHER).to(vectors.dtype)


def turned_twice(vectors, positions):
    return turn(turn(vectors, angles_of(vectors, positions)), angles_of(vectors, positions))


def casts_to_float32(vectors, positions):
    return turn(vectors.float(), angles_of(vectors, positions))


def detached(vectors, positions):
    return turn(vectors.detach(), angles_of(vectors, positions))


def inplace(vectors, positions):
    turned = turn(vectors, angles_of(vectors, positions))
    with torch.no_grad():
        vectors.copy_(turned)
    return turned


MISTAKES = (
    Mistake(
        id="negative_angle",
        says="You turn the other way. Check the minus: a positive angle carries (1, 0) towards (0, 1).",
        answers=(negative_angle,),
    ),
    Mistake(
        id="no_minus",
        says="Lengths change: a rotation has one minus among its four products, and yours has none.",
        answers=(no_minus,),
    ),
    Mistake(
        id="sin_cos_swapped",
        says="Sine and cosine are exchanged, so that a vector turns even at position 0, where the angle is 0.",
        answers=(sin_cos_swapped,),
    ),
    Mistake(
        id="half_a_rotation",
        says="Part of the rotation is missing: both new features are made of both old ones, by four products.",
        answers=(cosine_alone, first_of_pair_alone),
    ),
    Mistake(
        id="overwritten",
        says="Each second feature is computed from a first one that has been turned already. Both need the old "
        "values: compute before you write.",
        answers=(overwritten,),
    ),
    Mistake(
        id="additive",
        says="You add an encoding, and lengths change; rotary positions turn the vectors.",
        answers=(additive,),
    ),
    Mistake(
        id="multiplied",
        says="You multiply every feature by a wave of its own, and information is lost where it is 0. A turn "
        "mixes the two features of a pair.",
        answers=(multiplied,),
    ),
    Mistake(
        id="turned_twice",
        says="Every vector turns twice as far as it should: the rotation is applied twice, or its angle is doubled.",
        answers=(turned_twice,),
    ),
    Mistake(
        id="casts_to_float32",
        says="Vectors in float64 come back in float32. The angles may be computed in any dtype; the result "
        "should have that of the vectors.",
        answers=(casts_to_float32,),
    ),
    Mistake(
        id="detached",
        says="The values are right but no gradient comes back: `.detach()`, `.data` or `.numpy()` cuts the "
        "vectors off, and the projection before them can never learn.",
        answers=(detached,),
    ),
    Mistake(
        id="inplace",
        says="Your answer is right but the vectors you were given have changed: a second call would turn them "
        "twice. Write into a new tensor.",
        answers=(inplace,),
    ),
)
