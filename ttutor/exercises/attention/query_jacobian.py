"""Exercise: what a query learns from, as a formula."""

import math

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
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


exercise = Exercise(
    id="attention.query_jacobian",
    title="What a query learns from",
    statement=r"""One query $q$ with weights $A_j$, values $v_j$ and output $o = \sum_j A_j v_j$; the
scores are $s_j = c\, q \cdot k_j$. Show that

$$\frac{\partial o}{\partial q} = c \sum_j A_j\,(v_j - o)(k_j - \bar k)^\top, \qquad \bar k = \sum_j A_j k_j,$$

the *covariance of values and keys* under the weights, times the scale $c = 1/\sqrt{d_\mathrm{head}}$. Read three
answers from it to one question: when can a query learn nothing? Then write the formula as code, without autograd;
the check compares it with autograd's.""",
    reference=reference,
    solution=query_jacobian,
    explanation=r"From hints 2 and 3, $\partial o/\partial q = c\sum_l A_l (v_l - o) k_l^\top$. Since $\sum_l "
    r"A_l (v_l - o) = o - o = 0$, subtracting the constant $\bar k$ from every $k_l$ changes nothing, which "
    r"gives the covariance. It vanishes when all weight is on one key (saturation: $v_l = o$ where $A_l = 1$), "
    r"when all values with weight are equal (nothing to choose), and when all keys with weight are equal (no "
    r"way to choose). It is also why the gradient is large when two keys with different values compete.",
    cases=(
        Case(
            name="six keys",
            inputs=lambda random: tuple(
                torch.randn(*shape, generator=random, dtype=torch.float64) for shape in ((4,), (6, 4), (6, 3))
            ),
        ),
    ),
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


def _parts(query, key, value):
    """Scale, weights, and the means of values and keys under them."""
    scale = 1 / math.sqrt(len(query))
    weights = (key @ query * scale).softmax(dim=0)
    return scale, weights, weights @ value, weights @ key


def _product(weights, value, key):
    return torch.einsum("n,nv,nd->vd", weights, value, key)


@exercise.mistake(
    "Your Jacobian is too large by √d_head. The scores are $c\\,q \\cdot k_j$: what does the chain rule make of the "
    "$c$?"
)
def no_scale(query, key, value):
    _, weights, output, mean_key = _parts(query, key, value)
    return _product(weights, value - output, key - mean_key)


@exercise.mistake(
    "Your Jacobian is too small by √d_head: the scale stands in it twice. It enters once through the weights, where it "
    "belongs, and once as a factor.",
    id="scale_squared",
)
def divided_by_width(query, key, value):
    scale, weights, output, mean_key = _parts(query, key, value)
    return scale**2 * _product(weights, value - output, key - mean_key)


@exercise.mistake(
    "The factor in front is right, the weights are not: the scores in their softmax are scaled, too.",
    id="weights_without_scale",
)
def no_scale_in_the_weights(query, key, value):
    weights = (key @ query).softmax(dim=0)
    return _product(weights, value - weights @ value, key - weights @ key) / math.sqrt(len(query))


@exercise.mistake(
    "You have the mean of the products, not the covariance. A softmax pays for every gain with a loss elsewhere; which "
    "two means does that subtract?",
    id="not_centred",
)
def nothing_subtracted(query, key, value):
    scale, weights, _, _ = _parts(query, key, value)
    return scale * _product(weights, value, key)


@exercise.mistake(
    "You subtract the plain means of values and keys. Both means are taken under the attention weights: $o$ and $\\bar "
    "k$.",
    id="plain_mean",
)
def plain_means(query, key, value):
    scale, weights, _, _ = _parts(query, key, value)
    return scale * _product(weights, value - value.mean(dim=0), key - key.mean(dim=0))


@exercise.mistake(
    "Every key counts the same in your sum. A key that gets no weight teaches the query nothing.",
    id="weights_missing",
)
def all_keys_alike(query, key, value):
    scale, _, output, mean_key = _parts(query, key, value)
    return scale * _product(torch.full((len(key),), 1 / len(key), dtype=key.dtype), value - output, key - mean_key)


@exercise.like("weights_missing")
def summed(query, key, value):
    scale, _, output, mean_key = _parts(query, key, value)
    return scale * (value - output).T @ (key - mean_key)


@exercise.mistake(
    "Your rows belong to the query and your columns to the output. In a Jacobian it is the other way round: one row "
    "for each output.",
    id="transposed",
)
def turned(query, key, value):
    scale, weights, output, mean_key = _parts(query, key, value)
    return scale * _product(weights, value - output, key - mean_key).T


@exercise.mistake(
    "Every entry has the opposite sign. Is it $v_j - o$, or $o - v_j$?",
    id="sign",
)
def wrong_sign(query, key, value):
    scale, weights, output, mean_key = _parts(query, key, value)
    return scale * _product(weights, output - value, key - mean_key)


@exercise.mistake(
    "The weights enter twice. Take the derivative of the softmax again: with $v_l - o$ written out, one $A_l$ is left.",
    id="weights_squared",
)
def squared_weights(query, key, value):
    scale, weights, output, mean_key = _parts(query, key, value)
    return scale * _product(weights.square(), value - output, key - mean_key)


@exercise.mistake(
    "You differentiate each weight by its own score only, as for a sigmoid. In a softmax each score moves every "
    "weight: $A_j(\\delta_{jl} - A_l)$.",
    id="softmax_diagonal",
)
def diagonal_of_the_softmax(query, key, value):
    scale, weights, _, _ = _parts(query, key, value)
    return scale * _product(weights * (1 - weights), value, key)


@exercise.mistake(
    "The derivative of a score by the query is the key, times the scale; you have put the query in its place.",
    id="query_for_key",
)
def by_the_keys_query(query, key, value):
    """The derivative by the scores, times the query where the key belongs."""
    scale, weights, output, _ = _parts(query, key, value)
    return scale * _product(weights, value - output, query.expand_as(key))


@exercise.must_hold(
    "When all values are the same, the output is that value whatever the query asks, so the Jacobian is zero."
)
def equal_values_teach_nothing(trial: Trial) -> str | None:
    query, key, value = trial.inputs
    largest = trial.run(query, key, value[:1].expand_as(value).clone()).abs().max()
    if largest < 1e-9:
        return None
    return f"I gave all keys the same value, and your Jacobian still has an entry of {largest.item():.2g}."
