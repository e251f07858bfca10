"""Exercise: find the bug in a layer that runs and trains, and is wrong with weights from elsewhere."""

import math

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def loaded_heads(
    hidden: Float[Tensor, "batch tokens d_model"],
    w_in: Float[Tensor, "three_d_model d_model"],
    w_output: Float[Tensor, "d_model d_model"],
    n_heads: int,
) -> Float[Tensor, "batch tokens d_model"]:
    """A colleague's layer for the weights of `nn.MultiheadAttention`: its `in_proj_weight` and `out_proj.weight`."""
    query, key, value = (hidden @ w_in.T).chunk(3, dim=-1)
    q, k, v = (part.unflatten(-1, (-1, n_heads)).movedim(-1, 1) for part in (query, key, value))
    scores = einsum(q, k, "batch heads queries d_head, batch heads keys d_head -> batch heads queries keys")
    weights = (scores / math.sqrt(q.shape[-1])).softmax(dim=-1)
    context = einsum(weights, v, "batch heads queries keys, batch heads keys d_head -> batch heads queries d_head")
    return context.movedim(1, -1).flatten(-2) @ w_output.T


def solution(
    hidden: Float[Tensor, "batch tokens d_model"],
    w_in: Float[Tensor, "three_d_model d_model"],
    w_output: Float[Tensor, "d_model d_model"],
    n_heads: int,
) -> Float[Tensor, "batch tokens d_model"]:
    """The layer with blocks of neighbouring features for each head, as `nn.MultiheadAttention` has them."""
    query, key, value = (hidden @ w_in.T).chunk(3, dim=-1)
    q, k, v = (part.unflatten(-1, (n_heads, -1)).transpose(1, 2) for part in (query, key, value))
    scores = einsum(q, k, "batch heads queries d_head, batch heads keys d_head -> batch heads queries keys")
    weights = (scores / math.sqrt(q.shape[-1])).softmax(dim=-1)
    context = einsum(weights, v, "batch heads queries keys, batch heads keys d_head -> batch heads queries d_head")
    return context.transpose(1, 2).flatten(-2) @ w_output.T


BLOCKS, CARDS = "(heads d_head)", "(d_head heads)"


def reference(hidden, w_in, w_output, n_heads):
    split = "batch tokens (three heads d_head) -> three batch heads tokens d_head"
    context = scaled_dot_product_attention(*rearrange(hidden @ w_in.T, split, three=3, heads=n_heads))
    return rearrange(context, "batch heads tokens d_head -> batch tokens (heads d_head)") @ w_output.T


def _inputs(random):
    n_heads, d_head = drawn(random, 2, 4), drawn(random, 5, 8)
    d_model = n_heads * d_head
    shapes = ((drawn(random, 2, 3), drawn(random, 9, 10), d_model), (3 * d_model, d_model), (d_model, d_model))
    hidden, w_in, w_output = (torch.randn(*shape, generator=random, dtype=torch.float64) for shape in shapes)
    return hidden, w_in / 2, w_output / 2, n_heads


exercise = Exercise(
    id="multihead.loaded_heads",
    title="It trains, but it cannot load",
    statement="A colleague's layer has been used for months: models with it train as well as any. Now it is "
    "given the weights of a trained `nn.MultiheadAttention`, no shape is wrong, and the answers are useless. "
    "Find out *by experiment* which features each of its heads owns, and mend it. (Of `in_proj_weight` the first "
    "third makes queries, the second keys, the third values. `hidden` has the batch first. No mask, no bias.)",
    stub=loaded_heads,
    reference=reference,
    solution=solution,
    explanation="`unflatten(-1, (-1, n_heads))`, in einops' words `(d_head heads)`, deals the features out like "
    "cards; `unflatten(-1, (n_heads, -1))`, or `(heads d_head)`, cuts the pack into blocks. Used consistently, the "
    "first is the second after a permutation of features, and as no feature has a meaning before training, a "
    "model that is trained with it learns as well. Trained weights have their blocks. Then split *and* merge have "
    "to follow the order in which they were trained.",
    cases=(Case(name="several heads", inputs=_inputs),),
    hints="""
Copy the weights of an `nn.MultiheadAttention(12, 3, bias=False, batch_first=True)` and compare. Then do the same with a
layer that has a single head, `nn.MultiheadAttention(12, 1, bias=False, batch_first=True)`. What is equal, what is not?

Put numbers 0 to 11 through the split in place of features, and read off what head 0 gets. What does PyTorch's head 0
own?

Split and merge are wrong, and in the same way. Of the two axes into which `unflatten` cuts, the first is the slow one.
Which of them counts the heads?
""",
    forbids=(
        "scaled_dot_product_attention",
        "multi_head_attention_forward",
        "MultiheadAttention",
        "MultiHeadAttention",
    ),
    difficulty=2,
    minutes=20,
    section="03-multihead",
)

exercise.mutations(r"""
still_cards: "unflatten(-1, (n_heads, -1)).transpose(1, 2)" -> "unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)",
  "context.transpose(1, 2)" -> "context.movedim(1, -1)"
    Still the colleague's layer: features are dealt out like cards and collected like cards. Put 0, 1, 2, ... through
    the split and look at head 0.
split_mended_alone: "context.transpose(1, 2)" -> "context.movedim(1, -1)"
    The split is mended, and the merge still interleaves. The output weights expect the heads as they were cut.
merge_mended_alone: "unflatten(-1, (n_heads, -1)).transpose(1, 2)" -> "unflatten(-1, (-1, n_heads)).movedim(-1, 1)"
    The merge is mended, and the split still deals like cards, so that no head sees its own features.
queries_forgotten: "scores = " -> "q = query.unflatten(-1, (-1, n_heads)).movedim(-1, 1)\n    scores = "
    Keys and values are cut into blocks, the queries not: each score pairs features that do not belong together.
heads_outside_three: "chunk(3, dim=-1)" -> "unflatten(-1, (n_heads, 3, -1)).movedim(-2, 0).flatten(-2)"
    You cut the fused weights into heads first, then each into three. Some libraries store them so. Here queries, keys
    and values of all heads lie in three thirds.
reshaped: "unflatten(-1, (n_heads, -1)).transpose(1, 2)" -> "reshape(len(hidden), n_heads, hidden.shape[1], -1)",
  "context.transpose(1, 2).flatten(-2)" -> "context.reshape(hidden.shape)"
    A reshape straight to the heads' shape mixes tokens. Only the last axis is to be cut.
output_not_transposed: "w_output.T" -> "w_output"
    The heads are right, and the output weights act the other way round: they are stored `d_out d_in`.
scale_of_the_model: "q.shape[-1]" -> "hidden.shape[-1]"
    The order is mended, but the scale is that of the whole model. A score sums over the features of one head.
""")


@exercise.must_hold(
    "With the output columns of all other heads at zero, what is left is one head's work: test the heads one by one."
)
def heads_one_by_one(trial: Trial) -> str | None:
    hidden, w_in, w_output, n_heads = trial.inputs
    d_head = hidden.shape[-1] // n_heads
    for head in range(n_heads):
        rows = slice(head * d_head, (head + 1) * d_head)
        alone = torch.zeros_like(w_output)
        alone[:, rows] = w_output[:, rows]
        q, k, v = (hidden @ part[rows].T for part in w_in.chunk(3))
        expected = scaled_dot_product_attention(q, k, v) @ w_output[:, rows].T
        off = (trial.run(hidden, w_in, alone, n_heads) - expected).abs().max().item()
        if off > 1e-6:
            return f"Head {head}, with the output columns of all others at zero, is off by up to {off:.2g}."
    return None
