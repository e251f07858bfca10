"""Exercise: find the bug in rotary scores that are right until a cache is used."""

import math

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

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
    return tuple(
        torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((2, 3, 4, 8), (2, 3, 7, 8))
    )


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
    cases=(Case(name="four queries and seven keys", inputs=_inputs, points=2),),
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


def _scores(query, key, query_position, key_position, *, layout="half", scale=True):
    """Scores with each side at its positions; a side whose positions are None is not turned."""
    rotary = RotaryPositions(query.shape[-1], layout=layout)
    q = query if query_position is None else rotary(query_position[None])(query)
    k = key if key_position is None else rotary(key_position[None])(key)
    scores = q @ k.transpose(-1, -2)
    return scores / math.sqrt(query.shape[-1]) if scale else scores


@exercise.mistake(
    "Still the colleague's mistake: your first query stands at position 0, although three keys came before it."
)
def from_zero(query, key):
    return _scores(query, key, torch.arange(query.shape[-2]), torch.arange(key.shape[-2]))


def _places(query, key):
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    return torch.arange(n_keys - n_queries, n_keys), torch.arange(n_keys)


@exercise.like("from_zero")
def keys_moved_too(query, key):
    query_position, key_position = _places(query, key)
    return _scores(query, key, query_position, key_position + query_position[0])


@exercise.mistake("All your queries stand at the last position. Right for a single one; the others stand before it.")
def all_at_the_end(query, key):
    query_position, key_position = _places(query, key)
    return _scores(query, key, query_position[-1].expand(len(query_position)), key_position)


@exercise.mistake(
    "Your queries stand one place too far on: the last one should stand at the last key, not after it.",
    id="one_too_far",
)
def after_the_keys(query, key):
    query_position, key_position = _places(query, key)
    return _scores(query, key, query_position + 1, key_position)


@exercise.mistake(
    "Your queries begin after the last key. They are the last tokens of the keys' text, and their own keys are among "
    "the keys."
)
def after_all_keys(query, key):
    query_position, key_position = _places(query, key)
    return _scores(query, key, torch.arange(len(query_position)) + len(key_position), key_position)


@exercise.mistake("Your queries moved the wrong way: the first stands at a negative position.")
def offset_backwards(query, key):
    query_position, key_position = _places(query, key)
    return _scores(query, key, torch.arange(len(query_position)) - query_position[0], key_position)


@exercise.mistake("The keys are no longer turned. Only if both are turned does the place drop out of the product.")
def queries_only(query, key):
    return _scores(query, key, _places(query, key)[0], None)


@exercise.mistake("The queries are no longer turned. With one side unturned, places stay in the product.")
def keys_only(query, key):
    return _scores(query, key, None, _places(query, key)[1])


@exercise.mistake("Nothing turns any more, so that the scores know no order at all.")
def nothing_turned(query, key):
    return _scores(query, key, None, None)


@exercise.mistake(
    "The positions are mended, and the scale got lost: your scores are too large by $\\sqrt{d_\\mathrm{head}}$."
)
def no_scale(query, key):
    return _scores(query, key, *_places(query, key), scale=False)


@exercise.mistake(
    "The positions are mended, and the layout has changed: features i and i + d_head/2 make a pair here, not "
    "neighbours."
)
def other_layout(query, key):
    return _scores(query, key, *_places(query, key), layout="interleaved")


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
