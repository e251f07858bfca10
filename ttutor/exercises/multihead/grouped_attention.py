"""Exercise: fewer keys and values than query heads."""

import math

import torch
from einops import einsum, rearrange, repeat
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def grouped_attention(
    query: Float[Tensor, "batch heads queries d_head"],
    key: Float[Tensor, "batch kv_heads keys d_head"],
    value: Float[Tensor, "batch kv_heads keys d_head"],
) -> Float[Tensor, "batch heads queries d_head"]:
    """Attention in which neighbouring query heads share one head of keys and values."""
    grouped = rearrange(
        query, "batch (kv_heads group) queries d_head -> batch kv_heads group queries d_head", kv_heads=key.shape[1]
    )
    pairs = "batch kv_heads group queries d_head, batch kv_heads keys d_head -> batch kv_heads group queries keys"
    weights = (einsum(grouped, key, pairs) / math.sqrt(query.shape[-1])).softmax(dim=-1)
    blend = "batch kv_heads group queries keys, batch kv_heads keys d_head -> batch kv_heads group queries d_head"
    context = einsum(weights, value, blend)
    return rearrange(context, "batch kv_heads group queries d_head -> batch (kv_heads group) queries d_head")


def _shared(of, query):
    """Keys or values, once for each query head."""
    pattern = "batch kv_heads keys d_head -> batch (kv_heads group) keys d_head"
    return repeat(of, pattern, group=query.shape[1] // of.shape[1])


def reference(query, key, value):
    return scaled_dot_product_attention(query, _shared(key, query), _shared(value, query))


def _inputs(random, batch, kv_heads, group):
    queries, keys, d_head = drawn(random, 4, 5), drawn(random, 7, 8), drawn(random, 9, 11)
    shapes = ((batch, kv_heads * group, queries, d_head), *[(batch, kv_heads, keys, d_head)] * 2)
    return tuple(torch.randn(*shape, generator=random, dtype=torch.float64) for shape in shapes)


exercise = Exercise(
    id="multihead.grouped_attention",
    title="Six that ask, two that answer",
    statement="In grouped-query attention there are more query heads than heads of keys and values. With 6 query "
    "heads and 2 others, query heads 0, 1, 2 use keys and values of head 0, and 3, 4, 5 those of head 1: "
    "*neighbours* share. Each query head still has its own scores and its own softmax. No mask.",
    reference=reference,
    solution=grouped_attention,
    explanation="Cut the query heads into groups, let the group be one more axis that only the queries have, and "
    "the two products do the sharing. Nothing is copied, which is the point: the keys and values that have to be "
    "kept, and read again for every new token, are fewer. `repeat_interleave` along the heads, followed by plain "
    "attention, gives the same numbers and spends the memory that was to be saved.",
    cases=(
        Case(
            name="three query heads or more for each of two others",
            inputs=lambda random: _inputs(random, 2, 2, drawn(random, 3, 5)),
        ),
        Case(
            name="two query heads for each of three others or more",
            inputs=lambda random: _inputs(random, 1, drawn(random, 3, 5), 2),
        ),
    ),
    hints="""
How many query heads does one head of keys serve? Give the query heads two axes instead of one.

`(kv_heads group)` cuts the query heads so that neighbours share. The keys have no axis `group`.

Two `einsum`s with the axes `kv_heads group queries keys` for scores and weights, then join the two axes.
""",
    forbids=("scaled_dot_product_attention", "attention_weights", "efficient_attention", "MultiHeadAttention"),
    difficulty=2,
    minutes=25,
    section="03-multihead",
)

exercise.mutations("""
dealt_like_cards: '"batch (kv_heads group) q' -> '"batch (group kv_heads) q',
  "-> batch (kv_heads group)" -> "-> batch (group kv_heads)"
    You deal the heads out like cards: 0, 1, 0, 1. Neighbours share: 0, 0, 0, 1, 1, 1. Weights that were trained one way
    are useless the other way.
first_for_all: "grouped, key," -> "grouped, key[:, :1].expand_as(key),",
  "weights, value," -> "weights, value[:, :1].expand_as(value),"
    All query heads use head 0 of keys and values. That is multi-query attention; here there are more.
mean_of_all: "grouped, key," -> "grouped, key.mean(dim=1, keepdim=True).expand_as(key),",
  "weights, value," -> "weights, value.mean(dim=1, keepdim=True).expand_as(value),"
    You average the heads of keys and values. Each group has one of its own.
queries_averaged: "einsum(grouped," -> "einsum(grouped.mean(dim=2, keepdim=True).expand_as(grouped),"
    The queries of a group are averaged, so all of its heads answer alike. Only keys and values are shared; each query
    head asks for itself.
one_answer_a_group: "einsum(grouped," -> "einsum(grouped.mean(dim=2, keepdim=True),"
    One answer comes back for each group. There should be one for each query head.
no_scale: " / math.sqrt(query.shape[-1])" -> ""
    The sharing is right; the scores are too large by √d_head.
scale_of_the_group: "math.sqrt(query.shape[-1])" -> "math.sqrt(query.shape[-1] * query.shape[1] / key.shape[1])"
    The sharing is right; the scale counts the group's features. A score sums over the features of one head.
softmax_over_queries: "softmax(dim=-1)" -> "softmax(dim=-2)"
    Your softmax runs over the queries. Each query shares out its weight among the keys.
""")


def _attended(query, key, value):
    """Attention that shares nothing out by itself, as one writes it down."""
    return (query @ key.mT / math.sqrt(query.shape[-1])).softmax(dim=-1) @ value


def _dealt(of, query):
    pattern = "batch kv_heads keys d_head -> batch (group kv_heads) keys d_head"
    return repeat(of, pattern, group=query.shape[1] // of.shape[1])


@exercise.mistake(
    "Keys and values are shared out in different orders: a query finds a place by one head's keys and reads another "
    "head's values there.",
    id="keys_and_values_differ",
)
def keys_dealt_values_shared(query, key, value):
    return _attended(query, _dealt(key, query), _shared(value, query))


@exercise.mistake(
    "All keys of all heads compete in one softmax. A query head looks at the keys of one head only.",
    id="one_softmax_for_all",
)
def softmax_over_the_group(query, key, value):
    """All keys of all heads compete in one softmax."""
    keys = rearrange(key, "batch kv_heads keys d_head -> batch 1 (kv_heads keys) d_head")
    values = rearrange(value, "batch kv_heads keys d_head -> batch 1 (kv_heads keys) d_head")
    return _attended(query, keys, values)


@exercise.mistake(
    "Right for groups of one size, or for one number of groups, and for no others. The size of a group follows from "
    "the two numbers of heads.",
    id="fixed_group",
)
def always_pairs(query, key, value):
    key, value = (part.repeat_interleave(2, dim=1) for part in (key, value))
    return _attended(query, key, value)


@exercise.like("fixed_group")
def always_two(query, key, value):
    key, value = (part[:, :2].repeat_interleave(query.shape[1] // 2, dim=1) for part in (key, value))
    return _attended(query, key, value)


@exercise.like("fixed_group")
def always_threes(query, key, value):
    key, value = (part.repeat_interleave(3, dim=1) for part in (key, value))
    return _attended(query, key, value)


@exercise.must_hold("Change the values of one head: exactly the query heads of its group may move.")
def wrong_partner(trial: Trial) -> str | None:
    query, key, value = trial.inputs
    group = query.shape[1] // key.shape[1]
    for kv_head in range(key.shape[1]):
        other = value.clone()
        other[:, kv_head] += 1.0
        moved = (trial.run(query, key, other) - trial.value).abs().amax(dim=(0, 2, 3)) > 1e-9
        got = moved.nonzero().flatten().tolist()
        expected = list(range(kv_head * group, (kv_head + 1) * group))
        if got != expected:
            return f"Changing the values of head {kv_head} moves the query heads {got}; it should move {expected}."
    return None


@exercise.must_hold("Weights of a query sum to one, so that equal values come out as they went in.")
def no_blend(trial: Trial) -> str | None:
    query, key, value = trial.inputs
    out = trial.run(query, key, torch.ones_like(value))
    off = (out - 1).abs().max().item()
    return (
        None if off < 1e-6 else f"With all values 1 the output should be 1 everywhere; yours is off by up to {off:.2g}."
    )
