"""Exercise: rotary positions in the paper's layout, for tokens that may stand anywhere."""

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.positions.rotary import angles, pairs, turning
from ttutor.exercises.positions.rotary.probes import PROPERTIES
from ttutor.positions import RotaryPositions


def rotary(
    vectors: Float[Tensor, "batch heads tokens d_head"], positions: Int[Tensor, " tokens"]
) -> Float[Tensor, "batch heads tokens d_head"]:
    """Turn each pair of neighbouring features by the token's position times the pair's frequency."""
    ...


def solution(
    vectors: Float[Tensor, "batch heads tokens d_head"], positions: Int[Tensor, " tokens"]
) -> Float[Tensor, "batch heads tokens d_head"]:
    """Turn each pair of neighbouring features by the token's position times the pair's frequency."""
    d_head = vectors.shape[-1]
    frequency = 10000.0 ** (-torch.arange(0, d_head, 2, dtype=torch.float32) / d_head)
    angle = rearrange(positions, "tokens -> tokens 1") * frequency
    cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
    first, second = vectors[..., 0::2], vectors[..., 1::2]
    turned = [first * cos - second * sin, first * sin + second * cos]
    return rearrange(turned, "two batch heads tokens pairs -> batch heads tokens (pairs two)")


def reference(vectors, positions):
    rotation = RotaryPositions(vectors.shape[-1], layout="interleaved")
    return rotation(rearrange(positions, "tokens -> 1 tokens"))(vectors)


def _with_gaps(generator):
    return 2 * torch.randn(2, 3, 5, 8, generator=generator), torch.tensor([7, 8, 12, 3, 20])


def _float64(generator):
    return 2 * torch.randn(1, 2, 4, 6, generator=generator, dtype=torch.float64), torch.arange(4)


EXERCISES = (
    Exercise(
        id="positions.rotary",
        title="Turned, not added",
        statement="""
Write rotary positions. Neighbouring features make a pair, (0, 1), (2, 3) and so on, as in the paper; pair $i$ of a
token at position $p$ turns by the angle $p\\,\\omega_i$ with $\\omega_i = 10000^{-2i/d_\\mathrm{head}}$:

$$(x, y) \\mapsto (x \\cos p\\omega_i - y \\sin p\\omega_i,\\; x \\sin p\\omega_i + y \\cos p\\omega_i).$$

`positions` says where each token stands; with a cache they do not begin at 0, and they need not follow one another.
The result has the shape and the dtype of `vectors`.
""".strip(),
        stub=rotary,
        reference=reference,
        solution=solution,
        explanation="""
A turn of the query by $p\\,\\omega_i$ and of the key by $p'\\,\\omega_i$ leaves a product that, for given contents,
depends on $p' - p$ alone: scores know offsets, not places, and lengths stay as they are. Which features make a pair is
a matter of naming, as long as queries and keys agree; weights trained for one layout give other scores in the
other until their rows are renamed.
""".strip(),
        cases=(
            Case(name="positions 7, 8, 12, 3 and 20", inputs=_with_gaps),
            Case(name="positions from 0 on, in float64 and another width", inputs=_float64),
        ),
        hints=(
            (
                "Every pair of features is a point in the plane, and the token's position says how far to turn it. "
                "What stays the same when a point is turned? What happens at position 0?"
            ),
            (
                "Angles have the axes `tokens pairs`: positions down, frequencies across. Take the features apart into "
                "the first and the second of each pair (`vectors[..., 0::2]`, `vectors[..., 1::2]`) and turn all pairs."
            ),
            (
                "Compute both new features from both old ones, and only then lay them together again: one `rearrange` "
                "from `two ... pairs` to `(pairs two)`, so that neighbours stay neighbours."
            ),
        ),
        mistakes=pairs.MISTAKES + turning.MISTAKES + angles.MISTAKES,
        properties=PROPERTIES,
        forbids=("RotaryPositions", "Rotation"),
        difficulty=2,
        minutes=20,
        section="04-positions",
    ),
)
