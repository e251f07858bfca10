"""Exercise: rotary positions in the paper's layout, for tokens that may stand anywhere."""

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Property, Trial
from ttutor.exercises.probes import gradient_reaches
from ttutor.positions import RotaryPositions


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


PROPERTIES = [
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
]


def rotary(
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
    """Places among the first thirty, and one behind every table that is made once; none follows another."""
    n_heads, n_tokens = drawn(generator, 3, 4), drawn(generator, 5, 7)
    places = 1 + torch.randperm(30, generator=generator)[:n_tokens]
    places[drawn(generator, 1, n_tokens - 2)] = drawn(generator, 2050, 2100)
    return 2 * torch.randn(2, n_heads, n_tokens, 8, generator=generator), places


def _float64(generator):
    n_tokens, d_head = drawn(generator, 34, 37), one_of(generator, (6, 10, 12))
    return 2 * torch.randn(1, 2, n_tokens, d_head, generator=generator, dtype=torch.float64), torch.arange(n_tokens)


exercise = Exercise(
    id="positions.rotary",
    title="Turned, not added",
    statement="""
Write rotary positions. Neighbouring features make a pair, (0, 1), (2, 3) and so on, as in the paper; pair $i$ of a
token at position $p$ turns by the angle $p\\,\\omega_i$ with $\\omega_i = 10000^{-2i/d_\\mathrm{head}}$:

$$(x, y) \\mapsto (x \\cos p\\omega_i - y \\sin p\\omega_i,\\; x \\sin p\\omega_i + y \\cos p\\omega_i).$$

`positions` says where each token stands; with a cache they do not begin at 0, and they need not follow one another.
The result has the shape and the dtype of `vectors`, and gradients flow back through it to them.
""".strip(),
    reference=reference,
    solution=rotary,
    explanation="""
A turn of the query by $p\\,\\omega_i$ and of the key by $p'\\,\\omega_i$ leaves a product that, for given contents,
depends on $p' - p$ alone: scores know offsets, not places, and lengths stay as they are. Which features make a pair is
a matter of naming, as long as queries and keys agree; weights trained for one layout give other scores in the
other until their rows are renamed.
""".strip(),
    cases=(
        Case(name="positions that do not follow one another", inputs=_with_gaps, rtol=2e-3),
        Case(name="positions from 0 on, in float64 and another width", inputs=_float64),
    ),
    hints="""
Every pair of features is a point in the plane, and the token's position says how far to turn it. What stays the same
when a point is turned? What happens at position 0?

Angles have the axes `tokens pairs`: positions down, frequencies across. Take the features apart into the first and the
second of each pair (`vectors[..., 0::2]`, `vectors[..., 1::2]`) and turn all pairs.

Compute both new features from both old ones, and only then lay them together again: one `rearrange` from `two ...
pairs` to `(pairs two)`, so that neighbours stay neighbours.
""",
    properties=PROPERTIES,
    forbids=("RotaryPositions", "Rotation"),
    difficulty=2,
    minutes=20,
    section="04-positions",
)

exercise.mutations(r"""
half_split: "vectors[..., 0::2], vectors[..., 1::2]" -> "vectors.chunk(2, dim=-1)", "(pairs two)" -> "(two pairs)"
    This is the layout that pairs feature i with i + d_head/2 (GPT-NeoX, Llama in Hugging Face's form). It is the same
    up to the order of features, but here neighbours make a pair.
cat_not_interleave: "(pairs two)" -> "(two pairs)"
    You turn the right pairs and write them back in another order: first all x, then all y. Put the two halves of each
    pair side by side again.
interleaved_too_late: "vectors[..., 0::2], vectors[..., 1::2]" -> "vectors.chunk(2, dim=-1)"
    You pair feature i with i + d_head/2 and write the pairs back as neighbours. Take apart and put together by the same
    pattern.
pairs_left_apart: "(pairs two)" -> "pairs two"
    The numbers are right but the pairs still have an axis of their own. Join the last two axes.
frequencies_of_halves: "first * cos - second * sin" ->
  "first * cos.repeat(1, 2)[..., 0::2] - second * sin.repeat(1, 2)[..., 0::2]",
  "first * sin + second * cos" -> "first * sin.repeat(1, 2)[..., 1::2] + second * cos.repeat(1, 2)[..., 1::2]"
    You pair neighbours but lay out the frequencies for halves (θ₀, θ₁, ..., θ₀, θ₁, ...), so that the two of a pair
    turn by different angles. Neighbours need the same one.
negative_angle: "angle.sin()" -> "-angle.sin()"
    You turn the other way. Check the minus: a positive angle carries (1, 0) towards (0, 1).
no_minus: "first * cos - " -> "first * cos + "
    Lengths change: a rotation has one minus among its four products, and yours has none.
sin_cos_swapped: "cos, sin = " -> "sin, cos = "
    Sine and cosine are exchanged, so that a vector turns even at position 0, where the angle is 0.
half_a_rotation: "first * cos - second * sin, first * sin + second * cos" -> "first * cos, second * cos"
or: "first * sin + second * cos" -> "second"
    Part of the rotation is missing: both new features are made of both old ones, by four products.
overwritten: "first * sin + second * cos" -> "(first * cos - second * sin) * sin + second * cos"
    Each second feature is computed from a first one that has been turned already. Both need the old values: compute
    before you write.
additive: "first * cos - second * sin, first * sin + second * cos" -> "first + sin, second + cos"
    You add an encoding, and lengths change; rotary positions turn the vectors.
multiplied: "first * cos - second * sin, first * sin + second * cos" -> "first * sin, second * cos"
    You multiply every feature by a wave of its own, and information is lost where it is 0. A turn mixes the two
    features of a pair.
turned_twice: "* frequency" -> "* frequency * 2"
    Every vector turns twice as far as it should: the rotation is applied twice, or its angle is doubled.
casts_to_float32: "d_head = vectors" -> "vectors = vectors.float()\n    d_head = vectors"
    Vectors in float64 come back in float32. The angles may be computed in any dtype; the result should have that of the
    vectors.
detached: "d_head = vectors" -> "vectors = vectors.detach()\n    d_head = vectors"
    The values are right but no gradient comes back: `.detach()`, `.data` or `.numpy()` cuts the vectors off, and the
    projection before them can never learn.
ignores_positions: "rearrange(positions," -> "rearrange(torch.arange(len(positions)),"
    You count the tokens from 0 and do not use `positions`. While a text is being written with a cache, the newest token
    comes alone and stands far from 0.
from_the_first: "rearrange(positions," -> "rearrange(positions[0] + torch.arange(len(positions)),"
or: "rearrange(positions," -> "rearrange(positions - positions[0],"
    You take the first position and count on from there, or subtract it. Every token has its own entry in `positions`:
    use them all as they are.
pos_plus_1: "rearrange(positions," -> "rearrange(positions + 1,"
    Off by one: at position 0 nothing should turn. (Products of queries and keys would not notice, a cache made by
    another program would.)
share_of_length: "rearrange(positions," -> "rearrange(positions / len(positions),"
    You divide positions by the number of tokens: the same two words are then nearer in a longer text. Use the position
    itself.
by_heads: 'positions, "tokens -> tokens 1"' -> 'torch.arange(vectors.shape[1]), "heads -> heads 1 1"'
    Your angle goes with the head instead of the token. Which axis of `batch heads tokens d_head` do positions belong
    to?
exponent: "torch.arange(0, d_head, 2, dtype=torch.float32)" -> "torch.arange(d_head // 2)"
or: "-torch.arange" -> "-2 * torch.arange"
    The frequencies fall too slowly or too fast: pair i has the exponent 2i/d_head, and `arange(0, d_head, 2)` is
    already 2i. Is the index doubled twice, or not at all?
counted_from_one: "arange(0, d_head, 2," -> "arange(2, d_head + 2, 2,"
    Every pair turns as slowly as the one after it should: pair 0 turns by one radian a position. From which number are
    your pairs counted?
base: "10000.0" -> "1000.0"
or: "10000.0" -> "500000.0"
    Pair 0 turns rightly and the last ones do not. Check the base: it is 10000 here.
sign: "-torch.arange" -> "torch.arange"
    Later pairs turn faster and faster; they should turn slower. Look at the sign of the exponent.
slowest_first: "* frequency" -> "* frequency.flip(0)"
    The right frequencies in reverse order: pair 0 turns fastest, by one radian a position.
same_frequency: "** (-torch" -> "** (-0 * torch"
    All pairs turn equally fast, so that positions 6 apart can hardly be told from one another. Each pair has a
    frequency of its own.
endpoints: "torch.arange(0, d_head, 2, dtype=torch.float32) / d_head" -> "torch.arange(d_head // 2) / (d_head // 2 - 1)"
    Your slowest pair turns by 1/10000 exactly: you divide by the number of pairs less one. The paper divides 2i by
    d_head.
unit_of_angle: "* frequency" -> "* frequency * torch.pi / 180"
or: "* frequency" -> "* frequency * 2 * torch.pi"
    Pair 0 should turn by one radian a position. Your angles carry another factor, 2π or π/180.
always_eight_wide: "/ d_head)" -> "/ 8)"
    Right for vectors of width 8, and for no others. Take d_head from the vectors.
half_of_the_features: "* frequency" -> "* frequency**2 * (torch.arange(d_head // 2) < d_head // 4)"
    Only the first half of the features turns. Some models do so; the paper turns every pair.
""")


@exercise.mistake(
    "Your answer is right but the vectors you were given have changed: a second call would turn them twice. Write into "
    "a new tensor."
)
def inplace(vectors, positions):
    turned = rotary(vectors, positions)
    with torch.no_grad():
        vectors.copy_(turned)
    return turned
