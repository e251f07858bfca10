"""What is true of every right rotation."""

import torch
from einops import einsum, reduce

from ttutor.exercises.exercise import Property, Trial
from ttutor.exercises.probes import gradient_reaches


def _position_zero(trial: Trial) -> str | None:
    """At position 0 nothing turns."""
    vectors, positions = trial.inputs
    moved = (trial.run(vectors, torch.zeros_like(positions)) - vectors).abs().max().item()
    return None if moved < 1e-4 else f"With all positions 0 a feature moves by {moved:.2g}."


def _length(trial: Trial) -> str | None:
    """A rotation keeps lengths."""
    vectors, _ = trial.inputs
    ratio = trial.value.norm(dim=-1) / vectors.norm(dim=-1)
    worst = ratio.flatten()[(ratio - 1).abs().argmax()].item()
    return None if abs(worst - 1) < 1e-4 else f"One vector comes back {worst:.3g} times as long as it went in."


def _length_of_pair(trial: Trial) -> str | None:
    """Neighbours turn into one another, so that each pair keeps its length."""
    vectors, _ = trial.inputs

    def lengths(numbers):
        return (numbers[..., 0::2] ** 2 + numbers[..., 1::2] ** 2).sqrt()

    moved = (lengths(trial.value) - lengths(vectors)).abs()
    pair = moved.flatten(0, -2).amax(dim=0).argmax().item()
    return (
        None if moved.max() < 1e-3 else f"The features {2 * pair} and {2 * pair + 1} do not keep their length together."
    )


def _distance_alone(trial: Trial) -> str | None:
    """Move all positions alike: no product of two turned vectors may change."""
    vectors, positions = trial.inputs

    def products(turned):
        return einsum(turned, turned, "... tokens d_head, ... others d_head -> ... tokens others")

    before, after = products(trial.value), products(trial.run(vectors, positions + 3))
    moved = ((after - before).abs().max() / before.abs().max()).item()
    return None if moved < 1e-3 else f"With all tokens three positions later, a product moves by {moved:.0%}."


def _positions_that_do_not_matter(trial: Trial) -> str | None:
    """Move one token: its vector must turn, and no other."""
    vectors, positions = trial.inputs
    later = positions.clone()
    later[1] += 2
    steps = (trial.run(vectors, later) - trial.value).abs()
    moved = reduce(steps, "batch heads tokens d_head -> tokens", "max") > 1e-3
    if moved.tolist() == [token == 1 for token in range(len(positions))]:
        return None
    return (
        f"When token 1 alone stands two positions later, the tokens that turn are {moved.nonzero().flatten().tolist()}."
    )


PROPERTIES = (
    Property(
        id="keeps_lengths",
        says="A rotation changes no length. Does every pair go through a sine and a cosine of the same angle, with one "
        "minus among the four products?",
        broken=_length,
    ),
    Property(
        id="turns_neighbours",
        says="The pairs are neighbours: features 0 and 1, 2 and 3. Each pair turns by itself and stays where it is.",
        broken=_length_of_pair,
    ),
    Property(
        id="position_zero_stays",
        says="The angle is the position times a frequency, so that at position 0 nothing turns.",
        broken=_position_zero,
    ),
    Property(
        id="each_token_its_position",
        says="Each token turns by its own position, the one it is given, and by no other token's.",
        broken=_positions_that_do_not_matter,
    ),
    Property(
        id="only_distances_matter",
        says="The product of two turned vectors may depend on how far apart they stand, and on nothing else: every "
        "position further must add the same angle.",
        broken=_distance_alone,
    ),
    gradient_reaches("A gradient should flow back through the rotation into the vectors.", arguments=(0,)),
)
