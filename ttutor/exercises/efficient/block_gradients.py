"""Exercise: the backward pass of tiled attention, for one block of keys."""

import math

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def block_gradients(
    query: Float[Tensor, "queries d_head"],
    key: Float[Tensor, "keys d_head"],
    value: Float[Tensor, "keys d_value"],
    context: Float[Tensor, "queries d_value"],
    log_sum: Float[Tensor, " queries"],
    d_context: Float[Tensor, "queries d_value"],
) -> tuple[Float[Tensor, "queries d_head"], Float[Tensor, "keys d_head"], Float[Tensor, "keys d_value"]]:
    """What one block of keys and values adds to the query's gradient, and the gradients of the block itself."""
    scale = 1 / math.sqrt(query.shape[-1])
    scores = scale * einsum(query, key, "queries d_head, keys d_head -> queries keys")
    weights = (scores - rearrange(log_sum, "queries -> queries 1")).exp()
    d_value = einsum(weights, d_context, "queries keys, queries d_value -> keys d_value")
    d_weights = einsum(d_context, value, "queries d_value, keys d_value -> queries keys")
    mean = reduce(d_context * context, "queries d_value -> queries 1", "sum")
    d_scores = scale * weights * (d_weights - mean)
    d_query = einsum(d_scores, key, "queries keys, keys d_head -> queries d_head")
    d_key = einsum(d_scores, query, "queries keys, queries d_head -> keys d_head")
    return d_query, d_key, d_value


def reference(query, key, value, context, log_sum, d_context):
    weights = (query @ key.T / math.sqrt(query.shape[-1]) - log_sum[:, None]).exp()
    mean = (d_context * context).sum(dim=-1, keepdim=True)
    d_scores = weights * (d_context @ value.T - mean) / math.sqrt(query.shape[-1])
    return d_scores @ key, d_scores.T @ query, weights.T @ d_context


def _inputs(random):
    """A block in the middle: softmax and context are of all keys, the gradients of the block's."""
    n_before, n_block, n_after = drawn(random, 4, 7), drawn(random, 6, 7), 4
    n_keys, n_queries, d_head = n_before + n_block + n_after, drawn(random, 4, 5), drawn(random, 8, 10)
    query, d_context = torch.randn(2, n_queries, d_head, generator=random, dtype=torch.float64)
    key, value = torch.randn(2, n_keys, d_head, generator=random, dtype=torch.float64)
    d_value = drawn(random, 2, 3)
    value, d_context = value[:, :d_value], d_context[:, :d_value]
    scores = query @ key.T / math.sqrt(d_head)
    block = slice(n_before, n_before + n_block)
    return query, key[block], value[block], scores.softmax(dim=-1) @ value, scores.logsumexp(dim=-1), d_context


exercise = Exercise(
    id="efficient.block_gradients",
    title="The way back, one tile",
    statement="""
Write the backward pass of tiled attention for one block of keys. Given are all queries, the block's keys and values,
and what the forward pass kept: the finished context $y$ and $L_i = \\log \\sum_j e^{S_{ij}}$, both over *all* keys,
of which the block is a part. `d_context` is the gradient that arrives at $y$. Return three things: what this block
adds to the gradient of the queries, and the gradients of the block's keys and values. Scores are scaled by
$1/\\sqrt{d_\\text{head}}$; there is no mask.
""".strip(),
    reference=reference,
    solution=block_gradients,
    explanation="""
Five products, of which the first computes the scores again. Nothing in it needs another block: the denominators come
with $L$, and the row's mean gradient with $y$. So blocks can be worked on in any order and at the same time; only the
gradient of the queries has to be summed over them.
""".strip(),
    cases=(Case(name="a block in the middle of others", inputs=_inputs, points=3),),
    hints="""
Compute the block's weights first. You know the denominator of every row, so no softmax has to be taken.

The gradient of the weights is a product of `d_context` and the values. From each row of it the softmax takes away one
number, the same in every block. How does one get it without the others?

The number is the dot product of a row of `d_context` with that row of `context`. Multiply the rest by the weights and
the scale; products with the keys and with the queries give the rest.
""",
    difficulty=3,
    minutes=40,
    section="11-efficient",
)

exercise.mutations(r"""
scores_not_scaled: "scores = scale * einsum" -> "scores = einsum"
    Your weights are too sharp: the scores were scaled when the logarithms were taken.
not_scaled_back: "d_scores = scale * " -> "d_scores = "
    The gradient of the values is right, the other two are too large by one factor. What lies between score and product?
softmax_of_the_block: '(scores - rearrange(log_sum, "queries -> queries 1")).exp()' -> "scores.softmax(dim=-1)"
    Right where the block is everything. You normalise over the block, and the softmax was over all.
mean_of_the_block: 'reduce(d_context * context, "queries d_value -> queries 1", "sum")' ->
  "(weights * d_weights).sum(dim=-1, keepdim=True)"
    Right where the block is everything. The mean that the softmax subtracts is the whole row's, and this block knows a
    part of it only.
no_mean: "(d_weights - mean)" -> "d_weights"
    The gradient of the values is right. In the others the softmax's own derivative is incomplete.
plain_mean: 'reduce(d_context * context, "queries d_value -> queries 1", "sum")' ->
  "d_weights.mean(dim=-1, keepdim=True)"
    You subtract a plain mean. The softmax subtracts the mean under its weights.
weights_left_out: "scale * weights * (" -> "scale * ("
    Keys with hardly any weight get as much gradient as the others. A factor is missing.
not_shifted: ' - rearrange(log_sum, "queries -> queries 1")' -> ""
    Your exponentials are not divided by anything. What is the logarithm for?
value_gets_scores: "return d_query" -> "d_value = (d_scores / scale).T @ d_context\n    return d_query"
    Queries and keys are right. The values were blended by the weights, not by their gradients.
value_gets_context: "einsum(weights, d_context, " -> "einsum(weights, context, "
    Queries and keys are right. The values receive what arrives at the output, not the output.
wrong_sign: "(d_weights - mean)" -> "(mean - d_weights)"
    The gradients of queries and keys point the other way: which of the two is subtracted?
""")


@exercise.must_hold("No gradient in, no gradient out.")
def no_gradient(trial: Trial) -> str | None:
    *others, d_context = trial.inputs
    found = trial.run(*others, torch.zeros_like(d_context))
    return None if all(bool((part == 0).all()) for part in found) else "I put in a gradient of zero, and got another."


@exercise.must_hold("A backward pass is linear in what arrives.")
def linear(trial: Trial) -> str | None:
    *others, d_context = trial.inputs
    doubled = trial.run(*others, 2 * d_context)
    if all(torch.allclose(2 * one, two) for one, two in zip(trial.value, doubled, strict=True)):
        return None
    return "I doubled the gradient that arrives, and what you return is not twice as large."
