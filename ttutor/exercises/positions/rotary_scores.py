"""Exercise: find the bug in rotary scores that are right until a cache is used."""

import math

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.positions import RotaryPositions


def rotary_scores(
    query: Float[Tensor, "batch heads queries d_head"], key: Float[Tensor, "batch heads keys d_head"]
) -> Float[Tensor, "batch heads queries keys"]:
    """A colleague's rotary scores; the queries are the last positions of the keys' text."""
    rotary = RotaryPositions(query.shape[-1])
    query_position = torch.arange(query.shape[-2])
    key_position = torch.arange(key.shape[-2])
    q = rotary(rearrange(query_position, "queries -> 1 queries"))(query)
    k = rotary(rearrange(key_position, "keys -> 1 keys"))(key)
    scores = einsum(q, k, "batch heads queries d_head, batch heads keys d_head -> batch heads queries keys")
    return scores / math.sqrt(query.shape[-1])


def solution(
    query: Float[Tensor, "batch heads queries d_head"], key: Float[Tensor, "batch heads keys d_head"]
) -> Float[Tensor, "batch heads queries keys"]:
    """Rotary scores; the queries are the last positions of the keys' text."""
    rotary = RotaryPositions(query.shape[-1])
    query_position = torch.arange(key.shape[-2] - query.shape[-2], key.shape[-2])
    key_position = torch.arange(key.shape[-2])
    q = rotary(rearrange(query_position, "queries -> 1 queries"))(query)
    k = rotary(rearrange(key_position, "keys -> 1 keys"))(key)
    scores = einsum(q, k, "batch heads queries d_head, batch heads keys d_head -> batch heads queries keys")
    return scores / math.sqrt(query.shape[-1])


def reference(query, key):
    n_queries, n_keys, d_head = query.shape[-2], key.shape[-2], query.shape[-1]
    frequency = 10000.0 ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    offset = torch.arange(n_keys) - torch.arange(n_keys - n_queries, n_keys)[:, None]  # key minus query
    angle = offset[..., None] * frequency
    query_pairs, key_pairs = (
        torch.complex(*vectors.chunk(2, dim=-1)) for vectors in (query[:, :, :, None], key[:, :, None])
    )
    return (query_pairs.conj() * key_pairs * torch.polar(torch.ones_like(angle), angle)).real.sum(-1) / math.sqrt(
        d_head
    )


def _inputs(generator):
    batch, n_heads, d_head = drawn(generator, 1, 2), drawn(generator, 2, 3), one_of(generator, (10, 12, 14))
    shapes = (batch, n_heads, drawn(generator, 4, 5), d_head), (batch, n_heads, drawn(generator, 7, 9), d_head)
    return tuple(torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes)


exercise = Exercise(
    id="positions.rotary_scores",
    title="Right until the cache",
    statement="A colleague's rotary scores agree with the package, to the last digit, on every whole text. The "
    "model trains well. When it writes, token by token with kept keys, it writes nonsense. Find out *by "
    "experiment* what is wrong: write a test that it fails, then mend one line. (With fewer queries than keys the "
    "queries are the last positions. Keys that were kept have not been turned yet.)",
    stub=rotary_scores,
    reference=reference,
    solution=solution,
    explanation="The queries are numbered from 0 whatever the number of keys. On a whole text that is right. With "
    "kept keys the newest token is turned as if it stood at the beginning, so that its distances to all keys are "
    "wrong by the number of kept ones. The test: the last query of a whole text must get the same scores when it "
    "comes alone. To number the keys from a negative position on mends it as well: only offsets count.",
    cases=(Case(name="fewer queries than keys", inputs=_inputs, points=2),),
    hints=r"""
What must be true of the last query's scores, whether it comes with all other queries or alone?

Compare `rotary_scores(query, key)[:, :, -1:]` with `rotary_scores(query[:, :, -1:], key)`. In the second call, at which
position does the function take the query to stand?

Query $i$ stands at key $i + n_\text{keys} - n_\text{queries}$. Which line says otherwise?
""",
    difficulty=2,
    minutes=20,
    section="04-positions",
)

exercise.mutations(r"""
from_zero: "key.shape[-2] - query.shape[-2], key.shape[-2])" -> "0, query.shape[-2])"
    Still the colleague's mistake: your first query stands at position 0, although three keys came before it.
all_at_the_end: "rearrange(query_position," -> "rearrange(query_position[-1:].expand(query.shape[-2]),"
    All your queries stand at the last position. Right for a single one; the others stand before it.
one_too_far: "rearrange(query_position," -> "rearrange(query_position + 1,"
    Your queries stand one place too far on: the last one should stand at the last key, not after it.
after_all_keys: "torch.arange(key.shape[-2] - query.shape[-2], key.shape[-2])" ->
  "torch.arange(query.shape[-2]) + key.shape[-2]"
    Your queries begin after the last key. They are the last tokens of the keys' text, and their own keys are among the
    keys.
offset_backwards: "rearrange(query_position," -> "rearrange(query_position - 2 * query_position[0],"
    Your queries moved the wrong way: the first stands at a negative position.
queries_only: 'rotary(rearrange(key_position, "keys -> 1 keys"))(key)' -> "key"
    The keys are no longer turned. Only if both are turned does the place drop out of the product.
keys_only: 'rotary(rearrange(query_position, "queries -> 1 queries"))(query)' -> "query"
    The queries are no longer turned. With one side unturned, places stay in the product.
nothing_turned: 'rotary(rearrange(query_position, "queries -> 1 queries"))(query)' -> "query",
  'rotary(rearrange(key_position, "keys -> 1 keys"))(key)' -> "key"
    Nothing turns any more, so that the scores know no order at all.
no_scale: " / math.sqrt(query.shape[-1])" -> ""
    The positions are mended, and the scale got lost: your scores are too large by $\sqrt{d_\mathrm{head}}$.
other_layout: "RotaryPositions(query.shape[-1])" -> 'RotaryPositions(query.shape[-1], layout="interleaved")'
    The positions are mended, and the layout has changed: features i and i + d_head/2 make a pair here, not neighbours.
""")


@exercise.must_hold("A query should get the same scores whether it comes alone or with the others.")
def alone_as_among_others(trial: Trial) -> str | None:
    query, key = trial.inputs
    alone = trial.run(query[:, :, -1:], key)
    gap = (alone - trial.value[:, :, -1:]).abs().max().item() if alone.shape[-2:] == (1, key.shape[-2]) else math.inf
    return None if gap < 1e-6 else f"The last query alone, with the same keys, gets scores that differ by {gap:.2g}."


@exercise.must_hold(
    "Where query and key stand at the same place, both are turned alike and the score is the plain product."
)
def own_key_unturned(trial: Trial) -> str | None:
    query, key = trial.inputs
    plain = (query[:, :, -1] * key[:, :, -1]).sum(dim=-1) / math.sqrt(query.shape[-1])
    gap = (trial.value[:, :, -1, -1] - plain).abs().max().item()
    return None if gap < 1e-6 else f"The last query stands at the last key, and their score is off by {gap:.2g}."
