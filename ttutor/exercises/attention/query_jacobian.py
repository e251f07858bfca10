"""Exercise: what a query learns from, as a formula."""

import math

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def query_jacobian(
    query: Float[Tensor, " d_head"], key: Float[Tensor, "keys d_head"], value: Float[Tensor, "keys d_value"]
) -> Float[Tensor, "d_value d_head"]:
    """How the output of attention moves with its one query: entry (i, j) is output i's slope by query entry j."""
    scale = 1 / math.sqrt(len(query))
    weights = (scale * einsum(query, key, "d_head, keys d_head -> keys")).softmax(dim=0)
    output = einsum(weights, value, "keys, keys d_value -> d_value")
    mean_key = einsum(weights, key, "keys, keys d_head -> d_head")
    return scale * einsum(weights, value - output, key - mean_key, "keys, keys d_value, keys d_head -> d_value d_head")


def reference(query, key, value):
    def output(query):
        return scaled_dot_product_attention(rearrange(query, "d_head -> 1 d_head"), key, value)[0]

    return torch.autograd.functional.jacobian(output, query)


def _inputs(random):
    d_head, n_keys, d_value = drawn(random, 4, 7), drawn(random, 8, 10), drawn(random, 1, 3)
    shapes = ((d_head,), (n_keys, d_head), (n_keys, d_value))
    return tuple(torch.randn(*shape, generator=random, dtype=torch.float64) for shape in shapes)


exercise = Exercise(
    id="attention.query_jacobian",
    title="What a query learns from",
    statement=r"""One query $q$ with weights $A_j$, values $v_j$ and output $o = \sum_j A_j v_j$; the
scores are $s_j = c\, q \cdot k_j$. Show that

$$\frac{\partial o}{\partial q} = c \sum_j A_j\,(v_j - o)(k_j - \bar k)^\top, \qquad \bar k = \sum_j A_j k_j,$$

the *covariance of values and keys* under the weights, times the scale $c = 1/\sqrt{d_\mathrm{head}}$. Read three
answers from it to one question: when can a query learn nothing? Then write the formula as code, without autograd
and without quotients of small differences; the check compares it with autograd's.""",
    reference=reference,
    solution=query_jacobian,
    explanation=r"From hints 2 and 3, $\partial o/\partial q = c\sum_l A_l (v_l - o) k_l^\top$. Since $\sum_l "
    r"A_l (v_l - o) = o - o = 0$, subtracting the constant $\bar k$ from every $k_l$ changes nothing, which "
    r"gives the covariance. It vanishes when all weight is on one key (saturation: $v_l = o$ where $A_l = 1$), "
    r"when all values with weight are equal (nothing to choose), and when all keys with weight are equal (no "
    r"way to choose). It is also why the gradient is large when two keys with different values compete.",
    cases=(Case(name="a few keys", inputs=_inputs),),
    hints=r"""
Go by the chain rule, from $q$ to $s$, from $s$ to $A$, from $A$ to $o$. The middle step stands in this chapter.

$\partial o/\partial s_l = \sum_j v_j\, A_j(\delta_{jl} - A_l)$ $= A_l (v_l - o)$.

$\partial s_l/\partial q = c\,k_l^\top$ gives $c\sum_l A_l (v_l - o) k_l^\top$. Why may you subtract $\bar k$ from
$k_l$? What is $\sum_l A_l (v_l - o)$?
""",
    forbids=("jacobian", "jacrev", "jacfwd", "backward", "grad", "requires_grad_"),
    difficulty=2,
    minutes=30,
    section="02-attention",
)

exercise.mutations(r"""
no_scale: "return scale * " -> "return "
    Your Jacobian is too large by √d_head. The scores are $c\,q \cdot k_j$: what does the chain rule make of the $c$?
scale_squared: "return scale" -> "return scale**2"
    Your Jacobian is too small by √d_head: the scale stands in it twice. It enters once through the weights, where it
    belongs, and once as a factor.
weights_without_scale: "(scale * einsum(" -> "(einsum("
    The factor in front is right, the weights are not: the scores in their softmax are scaled, too.
not_centred: "value - output, key - mean_key" -> "value, key"
    You have the mean of the products, not the covariance. A softmax pays for every gain with a loss elsewhere; which
    two means does that subtract?
plain_mean: "value - output, key - mean_key" -> "value - value.mean(dim=0), key - key.mean(dim=0)"
    You subtract the plain means of values and keys. Both means are taken under the attention weights: $o$ and $\bar k$.
weights_missing: "einsum(weights, value - output" -> "einsum(torch.ones_like(weights) / len(weights), value - output"
or: "einsum(weights, value - output" -> "einsum(torch.ones_like(weights), value - output"
    Every key counts the same in your sum. A key that gets no weight teaches the query nothing.
transposed: "-> d_value d_head" -> "-> d_head d_value"
    Your rows belong to the query and your columns to the output. In a Jacobian it is the other way round: one row for
    each output.
sign: "value - output" -> "output - value"
    Every entry has the opposite sign. Is it $v_j - o$, or $o - v_j$?
weights_squared: "einsum(weights, value - output" -> "einsum(weights**2, value - output"
    The weights enter twice. Take the derivative of the softmax again: with $v_l - o$ written out, one $A_l$ is left.
softmax_diagonal: "einsum(weights, value - output, key - mean_key" -> "einsum(weights * (1 - weights), value, key"
    You differentiate each weight by its own score only, as for a sigmoid. In a softmax each score moves every weight:
    $A_j(\delta_{jl} - A_l)$.
query_for_key: "key - mean_key" -> "query.expand_as(key)"
    The derivative of a score by the query is the key, times the scale; you have put the query in its place.
""")


@exercise.must_hold(
    "When all values are the same, the output is that value whatever the query asks, so the Jacobian is zero."
)
def equal_values_teach_nothing(trial: Trial) -> str | None:
    query, key, value = trial.inputs
    largest = trial.run(query, key, value[:1].expand_as(value).clone()).abs().max()
    if largest < 1e-9:
        return None
    return f"I gave all keys the same value, and your Jacobian still has an entry of {largest.item():.2g}."


@exercise.must_hold(
    "Only the distances of the values from their mean count: moving all values by the same amount changes nothing. Is "
    "this the formula, or a quotient of small differences?",
    always=True,
)
def only_distances_of_values_count(trial: Trial) -> str | None:
    query, key, value = trial.inputs
    off = (trial.run(query, key, value + 1e7) - trial.value).abs().max() / trial.value.abs().max()
    if off < 3e-7:
        return None
    return f"I moved all values by ten million, and your Jacobian is off by {off.item():.2g} of its largest entry."
