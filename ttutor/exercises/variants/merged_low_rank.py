"""Exercise: what LoRA has learned goes into the weights."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def merged_low_rank(
    weight: Float[Tensor, "d_out d_in"],
    down: Float[Tensor, "rank d_in"],
    up: Float[Tensor, "d_out rank"],
    alpha: float,
) -> Float[Tensor, "d_out d_in"]:
    """The one matrix that does what the frozen weight and its adapter do together."""
    rank = down.shape[0]
    return weight + alpha / rank * (up @ down)


def reference(weight, down, up, alpha):
    """By what the two give for each unit vector."""
    inputs = torch.eye(weight.shape[1], dtype=weight.dtype)
    return (inputs @ weight.T + (inputs @ down.T * (alpha / len(down))) @ up.T).T


def _square(generator):
    rank, width = drawn(generator, 2, 4), drawn(generator, 6, 8)
    shapes = (width, width), (rank, width), (width, rank)
    return *(torch.randn(*shape, generator=generator) for shape in shapes), 4.0 * drawn(generator, 2, 8)


exercise = Exercise(
    id="variants.merged_low_rank",
    title="LoRA, merged",
    statement="""
LoRA leaves a layer's weight $W$ frozen and learns a small change beside it. For an input $x$ the layer gives

$$W x + \\frac{\\alpha}{r}\\, B A x,$$

where $A$ (`down`) maps to $r$ numbers and $B$ (`up`) maps back. When the training is done, the change can be merged, so
that the model is as fast as it was before. Return the merged weight. `weight` itself must stay as it is: somebody may
want to take the change out again.
""".strip(),
    reference=reference,
    solution=merged_low_rank,
    explanation="""
Maps add: $W x + \\frac{\\alpha}{r} B A x = (W + \\frac{\\alpha}{r} B A) x$. The product $BA$ is as large as $W$, but
its rank is at most $r$: it was learned with $r\\,(d_\\text{in} + d_\\text{out})$ numbers, far fewer than $W$ has.
""".strip(),
    cases=(Case(name="a square layer, whose shape does not tell a wrong order", inputs=_square, points=2),),
    hints="""
Which single matrix gives the same output for every $x$? Factor $x$ out.

Check the shapes: which order of `up` and `down` gives `d_out d_in`? Which axis is $r$ long?

The weight plus `alpha / down.shape[0]` times `up @ down`, in a new tensor.
""",
    difficulty=1,
    minutes=10,
    section="09-variants",
)

exercise.mutations("""
alpha_alone: "alpha / rank" -> "alpha"
    Your change is too large by a factor of $r$: what divides `alpha`?
no_factor: "alpha / rank * " -> ""
    `alpha` and the rank have no effect on your result. Which factor stands before $BA$?
divided_by_width: "down.shape[0]" -> "down.shape[1]"
    You divide by the width of the input. Which axis of `down` is the rank?
root_of_rank: "alpha / rank" -> "alpha / rank**0.5"
    You divide by the root of the rank, as a later variant does (rank-stabilised LoRA). The formula here divides by the
    rank itself.
change_alone: "weight + " -> ""
    That is the change alone. Where is the weight that it is added to?
taken_out: "weight + " -> "weight - "
    You subtract the change: that is how a merged model is taken apart again.
transposed: "up @ down" -> "down.T @ up.T"
    Your change is transposed; in a square layer the shapes do not tell. Which of the two maps is applied first?
""")


@exercise.mistake("Your result is right, but `weight` was changed: `+=` and `add_` write into the caller's tensor.")
def inplace(weight, down, up, alpha):
    weight += alpha / len(down) * (up @ down)
    return weight


@exercise.must_hold("The change should have at most the rank of the adapter.")
def rank_of_the_change(trial: Trial) -> str | None:
    weight, down, *_ = trial.inputs
    found = int(torch.linalg.matrix_rank(trial.value - weight, rtol=1e-4))
    return None if found <= len(down) else f"Yours has rank {found}, the adapter {len(down)}."


@exercise.must_hold("Twice the `alpha` is twice the change.")
def linear_in_alpha(trial: Trial) -> str | None:
    weight, down, up, alpha = trial.inputs
    twice, once = trial.run(weight, down, up, 2 * alpha) - weight, trial.value - weight
    off = (twice - 2 * once).abs().max().item()
    return None if off <= 1e-3 * once.abs().max().item() else f"Two of them differ by {off:.2g} from that."
