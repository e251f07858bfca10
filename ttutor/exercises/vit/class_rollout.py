"""Exercise: find the bug in a rollout whose rows sum to one and whose map looks reasonable."""

import torch
from einops import reduce
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def class_rollout(weights: Float[Tensor, "layers heads tokens tokens"]) -> Float[Tensor, " patches"]:
    """A colleague's version: the share of each patch in the class token's rollout; the shares sum to one."""
    rolled = torch.eye(weights.shape[-1], dtype=weights.dtype)
    for layer in reduce(weights, "layers heads queries keys -> layers queries keys", "mean"):
        rolled = rolled @ (layer / 2 + torch.eye(len(layer), dtype=layer.dtype) / 2)
    shares = rolled[0, 1:]
    return shares / shares.sum()


def solution(weights: Float[Tensor, "layers heads tokens tokens"]) -> Float[Tensor, " patches"]:
    """The share of each patch in the class token's rollout; the shares sum to one."""
    rolled = torch.eye(weights.shape[-1], dtype=weights.dtype)
    for layer in reduce(weights, "layers heads queries keys -> layers queries keys", "mean"):
        rolled = (layer / 2 + torch.eye(len(layer), dtype=layer.dtype) / 2) @ rolled
    shares = rolled[0, 1:]
    return shares / shares.sum()


def reference(weights):
    """One row, from the class token down: no square table is ever multiplied."""
    row = torch.zeros(weights.shape[-1], dtype=weights.dtype)
    row[0] = 1
    for layer in weights.mean(dim=1).flip(0):
        row = row / 2 + row @ layer / 2
    return row[1:] / row[1:].sum()


def _layers(random):
    n_tokens = drawn(random, 6, 9)
    shape = drawn(random, 3, 5), drawn(random, 2, 3), n_tokens, n_tokens
    return (torch.randn(*shape, generator=random, dtype=torch.float64).mul(2).softmax(dim=-1),)


exercise = Exercise(
    id="vit.class_rollout",
    title="A rollout that goes the wrong way",
    statement="""
A colleague has written a rollout for the class token. All rows of the product sum to one, the map is smooth, and for
one layer it agrees with the package. For three layers it does not. Find the bug, first on paper: which of the layers
reads the image, and where in the product does it stand? Then mend it. What comes back is one number for each patch,
divided by their sum.
""".strip(),
    stub=class_rollout,
    reference=reference,
    solution=solution,
    explanation="""
Row $i$ of a layer's table says of what token $i$ *behind* the layer is made, so the table of a later layer stands to
the left: $\\tilde A_3 \\tilde A_2 \\tilde A_1$. The colleague computes $\\tilde A_1 \\tilde A_2 \\tilde A_3$, the
rollout of a model whose layers run in the opposite order. A product of tables whose rows sum to one has rows that sum
to one in either order, so that the test everybody writes cannot see it. A test that can: two layers that differ, and
the two sums written out for one token.
""".strip(),
    cases=(Case(name="three layers or more", inputs=_layers, points=2),),
    hints="""
Write down for two layers what token 0 is made of behind the second, in terms of tokens behind the first.

Come from the class token at the top: do you meet the table of the last layer or of the first?

One matrix product has its factors in the wrong order. Everything else is right.
""",
    forbids=("attention_rollout",),
    difficulty=2,
    minutes=20,
    section="10-vit",
)

exercise.mutations("""
first_layer_last: "reduce(weights" -> "reduce(weights.flip(0)"
    The sums are right, the layers are not: your product is that of a model whose layers run in the opposite order.
no_residual: "layer / 2 + torch.eye(len(layer), dtype=layer.dtype) / 2" -> "layer"
    There is no residual connection in your product: half of each token stays where it is.
last_layer_alone: "rolled[0, 1:]" -> "layer[0, 1:]"
    That is the attention of the last layer. What it looks at has been mixed by the layers before.
column_of_the_class_token: "rolled[0, 1:]" -> "rolled[1:, 0]"
    You read a column: whom the class token reaches. The exercise asks what reaches the class token.
layers_averaged: "rolled[0, 1:]" -> "weights.mean(dim=(0, 1))[0, 1:]"
    You average the layers. They act one after another: what does that make of their tables?
entries_multiplied: "torch.eye(weights.shape[-1], dtype" -> "torch.ones(weights.shape[-2:], dtype",
  "@ rolled" -> "* rolled"
    You multiply entry by entry. A path from one token to another may lead through any third token between two layers.
one_head: "reduce(weights" -> "reduce(weights[:, :1]"
    You look at one head. The layer blends by all of them.
transposed_layers: "reduce(weights" -> "reduce(weights.mT"
    Your tables lie on their side: queries are rows, keys are columns.
not_divided: "shares / shares.sum()" -> "shares"
    A part of the row is the class token's own; divide by the sum of what the patches have.
class_token_kept: "shares / shares.sum()" -> "rolled[0]"
    There is one number too many: the class token's own share is no patch.
""")


@exercise.must_hold("The shares of the patches sum to one.")
def sums_to_one(trial: Trial) -> str | None:
    total = trial.value.sum().item()
    return None if abs(total - 1) < 1e-5 else f"Yours sum to {total:.4g}."


@exercise.must_hold("A layer in which every token looks at itself alone hands on what it got, wherever it stands.")
def idle_layer(trial: Trial) -> str | None:
    (weights,) = trial.inputs
    idle = torch.eye(weights.shape[-1], dtype=weights.dtype).expand_as(weights[:1])
    for name, longer in (("last", [weights, idle]), ("first", [idle, weights])):
        change = (trial.run(torch.cat(longer)) - trial.value).abs().max().item()
        if not change < 1e-6:
            return f"A {name} layer in which every token looks at itself alone changes a share by {change:.3g}."
    return None
