"""Exercise: ALiBi's bias, for a whole text and for the newest tokens of one whose keys are kept."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.positions import AlibiPositions


def alibi_bias(n_heads: int, n_queries: int, n_keys: int) -> Float[Tensor, "heads queries keys"]:
    """What ALiBi adds to each score: minus a slope of the head's own times the distance of query and key."""
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    query_position = torch.arange(n_keys - n_queries, n_keys)
    key_position = torch.arange(n_keys)
    distance = (rearrange(query_position, "queries -> queries 1") - key_position).abs()
    return rearrange(slopes, "heads -> heads 1 1") * -distance


def reference(n_heads, n_queries, n_keys):
    places = torch.arange(n_keys)[None]
    return AlibiPositions(n_heads)(places[:, n_keys - n_queries :], places)[0]


def _whole_text(generator):
    n_tokens = drawn(generator, 5, 11)
    return one_of(generator, (2, 4)), n_tokens, n_tokens


def _newest(generator):
    n_queries = drawn(generator, 33, 36)
    return 8, n_queries, n_queries + drawn(generator, 2, 5)


exercise = Exercise(
    id="positions.alibi_bias",
    title="What distance costs",
    statement="""
Write ALiBi's bias. Head $a$ (counted from 1, of $h$ heads in all) has the slope $m_a = 2^{-8a/h}$, and adds
$-m_a \\cdot |\\text{distance}|$ to the score of a query and a key, in both directions; hiding the future is the mask's
business. `n_heads` is a power of two.

There may be more keys than queries: the queries are then the *last* positions, and the last query stands at the last
key.
""".strip(),
    reference=reference,
    solution=alibi_bias,
    explanation="""
Nothing here is learned, and nothing is added to a vector: the bias goes to the scores of every layer. A head with slope
$\\tfrac12$ takes five points off at a distance of ten, a factor of $e^{-5}$ before the softmax; one with slope
$\\tfrac1{256}$ takes off four hundredths of a point. The heads look at windows of different lengths, without a sharp
edge.
""".strip(),
    cases=(
        Case(name="as many queries as keys", inputs=_whole_text),
        Case(name="more keys than queries", inputs=_newest),
    ),
    hints="""
Write the 5 by 5 table of distances on paper. What stands on its diagonal, what beside it?

Two parts: a table of distances `queries keys` and a slope for each head. With more keys than queries, at which key does
the first query stand?

Query positions are `arange(n_keys - n_queries, n_keys)`. Subtract the key positions by broadcasting, take the absolute
value, and multiply by the negated slopes, shaped `heads 1 1`.
""",
    forbids=("AlibiPositions", "alibi_slopes"),
    difficulty=1,
    minutes=15,
    section="04-positions",
)

exercise.mutations("""
slopes_of_eight: "-8 * torch.arange(1, n_heads + 1) / n_heads" -> "-1.0 * torch.arange(1, n_heads + 1)"
    Right for eight heads. With four, the slopes should still run down to 1/256: the exponent is a share of 8, not the
    head's number.
no_cache_offset: "n_keys - n_queries, n_keys" -> "n_queries"
    Right where there are as many queries as keys. With kept keys the queries are the last positions: at which key does
    your first query stand?
reward: "-distance" -> "distance"
    Your bias grows with distance, so that a far key gains. Distance should cost something.
signed_distance: ".abs()" -> ""
or: ".abs()" -> "", "-distance" -> "distance"
    Keys after the query gain what keys before it lose. A distance has no sign.
first_slope_one: "torch.arange(1, n_heads + 1)" -> "torch.arange(n_heads)"
    Your first head has slope 1. Heads are counted from 1 here, so that the first has $2^{-8/n}$ and the last 1/256.
even_slopes: "2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)" ->
  "torch.linspace(2 ** (-8 / n_heads), 2**-8, n_heads)"
    Your slopes fall by equal steps. They should fall by equal factors.
reversed_slopes: "torch.arange(1, n_heads + 1)" -> "torch.arange(n_heads, 0, -1)"
    The right slopes, from the flattest to the steepest. The first head is the steepest.
one_slope: "rearrange(slopes," -> "rearrange(slopes[:1].expand(n_heads),"
or: "rearrange(slopes," -> "rearrange(torch.ones(n_heads),"
    All heads have the same slope, so that none can look far while another looks near.
natural_base: "2.0 ** (" -> "torch.exp("
    Your slopes are powers of e. The base is 2.
squared_distance: "abs()" -> "square()"
    The cost grows with the square of the distance. The L of ALiBi stands for linear.
as_factor: "return rearrange(" -> "return torch.exp(rearrange(", "-distance" -> "-distance)"
    You return factors between 0 and 1. They are what the bias does to a power, $e^{s-md} = e^s e^{-md}$; the exercise
    asks for what is added to a score.
future_hidden: "-distance" -> "-distance + torch.full(distance.shape, -torch.inf).triu(n_keys - n_queries + 1)"
or: "abs()" -> "clamp(min=0)"
    You hide the future as well. That is the mask's business: an encoder uses this bias in both directions.
heads_last: "heads -> heads 1 1" -> "heads -> 1 1 heads", "-distance" -> "-distance[:, :, None]"
    The numbers are right; the axes should be `heads queries keys`.
one_row: "heads -> heads 1 1" -> "heads -> heads 1", "-distance" -> "-distance[-1]"
    You return one row for each head, without an axis of queries. Each query has distances of its own.
""")


@exercise.must_hold("A key that stands where the query stands is at distance 0, and costs nothing.")
def own_place_is_free(trial: Trial) -> str | None:
    _, n_queries, n_keys = trial.inputs
    own = trial.value.diagonal(offset=n_keys - n_queries, dim1=-2, dim2=-1)
    place = own.abs().flatten().argmax().item() % n_queries
    if own.abs().max() < 1e-6:
        return None
    return f"Query {place} stands at key {place + n_keys - n_queries}, and that key gets {own[0, place].item():.3g}."


@exercise.must_hold("No score should gain: the bias is at most 0.")
def distance_costs(trial: Trial) -> str | None:
    largest = trial.value.max().item()
    return None if largest <= 1e-6 else f"One score gains {largest:.3g}."


@exercise.must_hold("The bias should depend on how far apart the two stand, not on where.")
def only_distance_matters(trial: Trial) -> str | None:
    gap = (trial.value[:, 1:, 1:] - trial.value[:, :-1, :-1]).abs().max().item()
    return None if gap < 1e-6 else f"Two pairs that stand equally far apart get numbers that differ by {gap:.3g}."


@exercise.must_hold("Each step away should cost as much as the one before.")
def linear(trial: Trial) -> str | None:
    last = trial.value[:, -1].flip(-1)  # by distance 0, 1, 2, ...
    bend = (last[:, 2:] - 2 * last[:, 1:-1] + last[:, :-2]).abs().max().item()
    return None if bend < 1e-6 else f"Along the last query's row the step from key to key changes by {bend:.3g}."
