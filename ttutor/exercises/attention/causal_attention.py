"""Exercise: find the bug in a causal attention that leaks."""

import math

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.masks import causal_mask


def causal_attention(
    query: Float[Tensor, "queries d_head"], key: Float[Tensor, "keys d_head"], value: Float[Tensor, "keys d_value"]
) -> Float[Tensor, "queries d_value"]:
    """A colleague's causal attention; its weights are zero for every key that lies in the future."""
    scores = einsum(query, key, "queries d_head, keys d_head -> queries keys")
    scores = scores / math.sqrt(query.shape[-1])
    weights = scores.softmax(dim=-1) * causal_mask(query.shape[0], key.shape[0])
    return einsum(weights, value, "queries keys, keys d_value -> queries d_value")


def solution(
    query: Float[Tensor, "queries d_head"], key: Float[Tensor, "keys d_head"], value: Float[Tensor, "keys d_value"]
) -> Float[Tensor, "queries d_value"]:
    """Causal attention: what lies in the future is gone before the softmax forms its denominator."""
    scores = einsum(query, key, "queries d_head, keys d_head -> queries keys")
    scores = scores / math.sqrt(query.shape[-1])
    allowed = causal_mask(query.shape[0], key.shape[0])
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
    return einsum(weights, value, "queries keys, keys d_value -> queries d_value")


def reference(query, key, value):
    return scaled_dot_product_attention(query, key, value, causal=True)


def _inputs(random):
    n_queries, n_keys, d_head = drawn(random, 3, 4), drawn(random, 5, 7), drawn(random, 8, 10)
    shapes = ((n_queries, d_head), (n_keys, d_head), (n_keys, drawn(random, 1, 2)))
    return tuple(torch.randn(*shape, generator=random, dtype=torch.float64) for shape in shapes)


def _steep(random):
    """Scores hundreds apart, all below -800 where they may be seen, and larger ones in the future."""
    query, key, value = _inputs(random)
    n_queries, n_keys = len(query), len(key)
    ranks = torch.stack([torch.randperm(n_keys, generator=random) for _ in range(n_queries)])
    scores = 400.0 * (ranks - n_keys) - 500 + 4000 * ~causal_mask(n_queries, n_keys)
    query = torch.eye(n_queries, n_queries + 1, dtype=torch.float64)
    key = torch.cat([math.sqrt(n_queries + 1) * scores.T, key[:, :1]], dim=1)
    return query, key, value


exercise = Exercise(
    id="attention.causal_attention",
    title="The mask that leaks",
    statement="A colleague's causal attention runs, trains, and has weights of exactly zero for every key in the "
    "future. It is wrong. Find out *by experiment* what is wrong: write a test that it fails and the package "
    "passes, then mend one line. (There may be more keys than queries; the last query stands at the last key.)",
    stub=causal_attention,
    reference=reference,
    solution=solution,
    explanation="The mask comes after the softmax. Forbidden keys get weight zero, but they have been counted "
    "in the denominator: rows no longer sum to one, and *how far* they fall short tells every word about the "
    "future. In training the model can read that signal; in use, when the future is not there, it is gone. Mend "
    "it by masking before the softmax. (Dividing each masked row by its own sum mends it as well, on paper; in "
    "floating point a row whose allowed powers all underflow is lost.)",
    cases=(
        Case(name="fewer queries than keys", inputs=_inputs),
        Case(name="scores in the thousands", inputs=_steep),
    ),
    hints="""
What must be true of the first word's output when only the *last* word is exchanged?

Change `key[-1]` and compare the outputs of all earlier positions, bit by bit. Then change `value[-1]` instead. The two
answers differ; why?

Sum the rows of `weights`. Which step of the softmax has seen the forbidden scores?
""",
    forbids=("scaled_dot_product_attention", "attention_weights"),
    difficulty=2,
    minutes=20,
    section="02-attention",
)

exercise.mutations("""
mask_after_softmax: "masked_fill(~allowed, -torch.inf).softmax(dim=-1)" -> "softmax(dim=-1) * allowed"
    Still the colleague's mistake: the forbidden weights are 0, but the rows sum to less than 1, and how far they fall
    short tells about the future. Which step has seen the forbidden scores?
renormalised: "masked_fill(~allowed, -torch.inf).softmax(dim=-1)" -> "softmax(dim=-1) * allowed",
  "einsum(weights," -> "einsum(weights / weights.sum(dim=-1, keepdim=True),"
    Right on paper, and for scores in the thousands a row is lost: its allowed powers were so small beside the forbidden
    ones that all became 0. Remove the forbidden scores before any power is taken.
no_scale: " / math.sqrt(query.shape[-1])" -> ""
    The leak is mended, and the scale got lost: your scores are too large by √d_head.
small_fill: "-torch.inf" -> "-10"
    A little weight still goes to the future. A score of −10 is low, and other scores can be lower still. Which score
    has the power 0?
masked_score_zero: "-torch.inf" -> "0"
    The forbidden scores are 0 now, and the power of 0 is 1: the future keeps its weight. Which score has the power 0?
mask_added: "scores.masked_fill(~allowed, -torch.inf)" -> "(scores + allowed)"
    You added True and False, which are 1 and 0, so the past gains one point and the future keeps its scores. A mask
    takes scores away.
zero_times_infinity: "scores.masked_fill(~allowed, -torch.inf)" -> "(scores + ~allowed * -torch.inf)"
    All is NaN: 0 times −infinity is not a number, and so stands at every key that is allowed. Fill in the forbidden
    places alone.
top_left: "causal_mask(query.shape[0], key.shape[0])" -> "torch.ones_like(scores).tril().bool()"
    Your last query does not see the last key. With three queries and five keys the queries are the last three
    positions: the diagonal starts further right.
not_itself: "causal_mask(query.shape[0], key.shape[0])" ->
  "torch.ones_like(scores).tril(len(key) - len(query) - 1).bool()"
    No query sees its own key in your mask. The future begins one position later.
one_too_far: "causal_mask(query.shape[0], key.shape[0])" ->
  "torch.ones_like(scores).tril(len(key) - len(query) + 1).bool()"
    Each query sees one key of the future. Your mask's diagonal stands one too far to the right.
no_mask: ".masked_fill(~allowed, -torch.inf)" -> ""
    There is no mask left: every query sees every key.
inverted: "~allowed" -> "allowed"
    You kept the future and removed the past. In `causal_mask`, True means may attend.
""")


@exercise.must_hold("When something in the future changes, no earlier output may move, not by a bit.")
def future_leaks(trial: Trial) -> str | None:
    query, key, value = trial.inputs
    other_key, other_value = key.clone(), value.clone()
    other_key[-1], other_value[-1] = -key[-1] + 1, 2 * value[-1] + 1
    for what, inputs in (("key", (query, other_key, value)), ("value", (query, key, other_value))):
        moved = (trial.run(*inputs) - trial.value)[:-1].abs().amax(dim=1)
        if moved.max() > 1e-9:
            return f"I exchanged the last {what}, and the output of query {moved.argmax().item()} moved."
    return None
