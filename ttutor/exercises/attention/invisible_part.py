"""Exercise: the part of a word's vector that a head cannot see."""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def invisible_part(
    words: Float[Tensor, "tokens d_model"],
    w_query: Float[Tensor, "d_head d_model"],
    w_key: Float[Tensor, "d_head d_model"],
    w_value: Float[Tensor, "d_head d_model"],
) -> Float[Tensor, "tokens d_model"]:
    """The largest part of each vector that may be taken away without any change to the head's weights and outputs."""
    stacked = torch.cat([w_query, w_key, w_value])
    _, sizes, directions = torch.linalg.svd(stacked)
    n_seen = int((sizes > 1e-9 * sizes.max()).sum())
    unseen = directions[n_seen:]
    amounts = einsum(words, unseen, "tokens d_model, unseen d_model -> tokens unseen")
    return einsum(amounts, unseen, "tokens unseen, unseen d_model -> tokens d_model")


def reference(words, w_query, w_key, w_value):
    stacked = torch.cat([w_query, w_key, w_value])
    return words - words @ torch.linalg.pinv(stacked, rtol=1e-9) @ stacked


def _head(random):
    d_head = drawn(random, 2, 4)
    d_model = 3 * d_head + drawn(random, 2, 4)
    shapes = ((drawn(random, 5, 7), d_model), *[(d_head, d_model)] * 3)
    return tuple(torch.randn(*shape, generator=random, dtype=torch.float64) for shape in shapes)


def _shared(random):
    """Queries and keys by the same matrix, as some models do."""
    words, w_query, _, w_value = _head(random)
    return words, w_query, w_query.clone(), w_value


exercise = Exercise(
    id="attention.invisible_part",
    title="A change that nobody sees",
    statement=r"""A head has $d_\mathrm{model} = 16$ and $d_\mathrm{head} = 4$. Find a vector $u \ne 0$
such that adding $u$ to *any* token of *any* sentence changes neither a weight nor an output of the head. How many
independent such vectors are there at least? What does that say about one head, and how does a model see the rest of
its input?

Then write a function that finds the largest part of each word's vector that may be taken
away without the head noticing. The matrices are stored as `nn.Linear` stores them, and they may have directions in
common.""",
    reference=reference,
    solution=invisible_part,
    explanation=r"Twelve equations, sixteen unknowns: a space of at least four dimensions is invisible. A "
    r"single head sees at most $3\,d_\mathrm{head}$ directions of its input. Other heads have other matrices, "
    r"and the residual connection carries the whole vector past all of them. Remember it when a probe finds "
    r"information in a token's vector: that it is there does not mean that a given head can use it. The "
    r"function lets the singular values count the directions, because matrices that have some in common leave "
    r"more unseen.",
    cases=(
        Case(name="three independent matrices", inputs=_head),
        Case(name="one matrix for queries and keys", inputs=_shared),
    ),
    hints=r"""
How does a token enter the head? Only through three matrices.

You need $u W_Q = u W_K = u W_V = 0$: one system of linear equations. How many equations, how many unknowns? And how
many of the equations say something new?

Stack the three matrices and take the null space with `torch.linalg.svd`: those rows of $V^\top$ whose singular value is
zero, or that have none. They are orthonormal, so two products project onto them.
""",
    difficulty=2,
    minutes=30,
    section="02-attention",
)

exercise.mutations(r"""
keys_forgotten: "w_query, w_key, w_value]" -> "w_query, w_value]"
    Your part is seen by the keys: adding it to a word changes how the others look at it. A token enters the head in
    three ways.
values_forgotten: "w_query, w_key, w_value]" -> "w_query, w_key]"
    Your part changes no weight, and yet it changes the output: it comes through the values.
query_alone: "w_query, w_key, w_value]" -> "w_query]"
    Your part is invisible to the queries alone. The keys and the values see it; all three equations have to hold at
    once.
product_only: "w_query, w_key, w_value]" -> "w_query.T @ w_key, w_value]"
    You ask what the product of queries and keys does to a word on one of the two sides. A word plays both parts: it
    asks, and it is found.
equations_counted: "int((sizes > 1e-9 * sizes.max()).sum())" -> "len(stacked)"
    When queries and keys share a matrix, more is invisible than you find: you count the equations, and three of them
    say nothing new. Let the singular values do the counting.
complement: "return einsum(" -> "return words - einsum("
    This is the part that the head sees. What it does not see is the rest of the vector.
coordinates: 'einsum(amounts, unseen, "tokens unseen, unseen d_model -> tokens d_model")' -> "amounts"
    You return how much of each invisible direction a word has. The exercise asks for the part itself, a vector of width
    $d_\mathrm{model}$ again.
directions_only: 'einsum(amounts, unseen, "tokens unseen, unseen d_model -> tokens d_model")' -> "unseen"
    You return the invisible directions. How much of each does a word have?
not_orthonormal: "directions[n_seen:]" -> "stacked", "return einsum(" -> "return words - einsum("
    You subtract $W^\top W$ times the vector. That is a projection only if the rows of $W$ are orthonormal, and yours
    have lengths and angles of their own.
""")


@exercise.mistake(
    "You make the vector invisible to one matrix after the other, and each step brings back something that an earlier "
    "one had removed. Solve the three equations together."
)
def one_after_the_other(words, w_query, w_key, w_value):
    for matrix in (w_query, w_key, w_value):
        words = invisible_part(words, matrix, matrix, matrix)
    return words


@exercise.mistake(
    "You average three parts, each invisible to one matrix. What one misses, another sees.",
    id="averaged",
)
def each_by_itself(words, w_query, w_key, w_value):
    return sum(invisible_part(words, matrix, matrix, matrix) for matrix in (w_query, w_key, w_value)) / 3


@exercise.must_hold("None of the three matrices may see anything of your part: each takes it to zero.")
def head_sees_it(trial: Trial) -> str | None:
    for name, matrix in zip(("w_query", "w_key", "w_value"), trial.inputs[1:], strict=True):
        largest = (trial.value @ matrix.T).abs().max().item()
        if largest > 1e-6:
            return f"Through {name} your part gives numbers up to {largest:.2g}; it should give zero."
    return None


@exercise.must_hold("Nothing invisible may be left in the rest of the vector: yours is a part, not the largest.")
def some_left_behind(trial: Trial) -> str | None:
    words, *matrices = trial.inputs
    left = reference(words - trial.value, *matrices).abs().max().item()
    if left < 1e-6:
        return None
    return f"In what remains without your part there is still an invisible one, with entries up to {left:.2g}."
