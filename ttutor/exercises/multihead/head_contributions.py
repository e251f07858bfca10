"""Exercise: the layer's output as a sum of what each head writes."""

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def head_contributions(
    context: Float[Tensor, "batch heads queries d_head"], w_output: Float[Tensor, "d_model heads_d_head"]
) -> Float[Tensor, "batch heads queries d_model"]:
    """What each head adds to the layer's output; `w_output` is stored as `nn.Linear` stores it."""
    slices = rearrange(w_output, "d_model (heads d_head) -> heads d_model d_head", heads=context.shape[1])
    return einsum(context, slices, "batch heads queries d_head, heads d_model d_head -> batch heads queries d_model")


def reference(context, w_output):
    blocks = w_output.chunk(context.shape[1], dim=1)
    return torch.stack([context[:, head] @ block.T for head, block in enumerate(blocks)], dim=1)


def _layer(random):
    """A layer whose output is as wide as all its heads together."""
    n_heads, d_head = drawn(random, 3, 4), drawn(random, 5, 6)
    shapes = ((drawn(random, 1, 2), n_heads, drawn(random, 7, 8), d_head), (n_heads * d_head, n_heads * d_head))
    return tuple(torch.randn(*shape, generator=random, dtype=torch.float64) for shape in shapes)


exercise = Exercise(
    id="multihead.head_contributions",
    title="One output, taken apart",
    statement="A layer lays its heads side by side and multiplies by $W^O$. Give instead, for each head, the "
    "vector that this head alone adds to the output. The sum over heads has to be the layer's output, and a head "
    "whose context is zero has to write zero.",
    reference=reference,
    solution=head_contributions,
    explanation="The product of a concatenation with a matrix is a sum over its blocks. As `nn.Linear` stores "
    "`d_out d_in`, the block of a head is a block of *columns*: `d_model (heads d_head)`. The package's "
    "`ttutor.inside.head_writes` is the same line. Dividing the whole output evenly among the heads would sum to "
    "the right thing too, and would say nothing: what a silent head writes must be zero.",
    cases=(Case(name="a square output matrix", inputs=_layer),),
    hints=r"""
Write out $[O_1, O_2]\,\begin{pmatrix}B_1\\ B_2\end{pmatrix}$. Which part of the matrix does head 1 meet?

`nn.Linear` stores the transpose: the axes are `d_model (heads d_head)`. Cut the *second* axis into heads.

Rearrange `w_output` to `heads d_model d_head`, then one `einsum` that keeps `heads` and sums over `d_head`.
""",
    forbids=("head_writes",),
    difficulty=2,
    minutes=15,
    section="03-multihead",
)

exercise.mutations("""
every_hth_column: "heads d_head" -> "d_head heads"
    Head 0 gets every h-th column of the matrix. Its features lie next to one another, and so do the columns that belong
    to it.
rows_for_columns: '"d_model (heads d_head)' -> '"(heads d_head) d_model'
    You cut the rows into heads. Stored as `d_out d_in`, the matrix has the heads on its columns; a square matrix hides
    the difference.
same_slice_for_all: "context, slices" -> "context, slices[:1].expand_as(slices)"
    All heads go through the first head's part of the matrix. Each has a part of its own.
whole_sum: "-> batch heads queries d_model" -> "-> batch queries d_model"
    You return the sum. The exercise asks for the summands, one for each head.
mean_instead_of_sum: "context, slices" -> "context, slices / len(slices)"
    Your parts are too small by the number of heads: they should *sum* to the output, not average to it.
heads_reversed: "context, slices" -> "context, slices.flip(0)"
    Heads and parts of the matrix are paired in opposite order. The first columns belong to head 0.
""")


@exercise.mistake("Every head is given the whole output. What would be left of it if all other heads were silent?")
def sum_for_each(context, w_output):
    return reference(context, w_output).sum(dim=1, keepdim=True).expand(-1, context.shape[1], -1, -1)


@exercise.mistake(
    "The sum is right, but you deal the whole out in equal parts, and a silent head would get its share. Multiply each "
    "head's context by its own part of the matrix."
)
def shared_out_evenly(context, w_output):
    return sum_for_each(context, w_output) / context.shape[1]


@exercise.mistake("You give what is left *without* each head. The exercise asks for what the head itself adds.")
def without_each(context, w_output):
    return sum_for_each(context, w_output) - reference(context, w_output)


@exercise.mistake(
    "A reshape laid the heads side by side without moving axes first, so that pieces of different queries meet. There "
    "is no need to merge at all.",
    id="merged_by_reshape",
)
def through_another_tokens(context, w_output):
    merged = context.reshape(len(context), context.shape[2], -1)
    return reference(
        rearrange(merged, "batch queries (heads d_head) -> batch heads queries d_head", heads=context.shape[1]),
        w_output,
    )


@exercise.must_hold("Summed over heads, the parts have to be the layer's output.")
def sum_is_the_output(trial: Trial) -> str | None:
    context, w_output = trial.inputs
    whole = rearrange(context, "batch heads queries d_head -> batch queries (heads d_head)") @ w_output.T
    if trial.value.shape[-1] != whole.shape[-1] or trial.value.ndim != 4:
        return f"The result is {tuple(trial.value.shape)}; the layer's output is {tuple(whole.shape)}."
    off = (trial.value.sum(dim=1) - whole).abs().max().item()
    return None if off < 1e-6 else f"Their sum differs from the layer's output by up to {off:.2g}."


@exercise.must_hold("A head whose context is zero adds nothing.")
def silent_head_writes_nothing(trial: Trial) -> str | None:
    context, w_output = trial.inputs
    silenced = context.clone()
    silenced[:, 0] = 0
    written = trial.run(silenced, w_output)[:, 0].abs().max().item()
    return None if written < 1e-9 else f"With head 0 silenced, your head 0 still writes numbers up to {written:.2g}."
