"""Exercise: softmax, along any axis and for scores of any size."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial


def softmax(scores: Float[Tensor, "..."], dim: int = -1) -> Float[Tensor, "..."]:
    """Turn scores into weights that are positive and sum to one along the axis `dim`."""
    powers = (scores - scores.amax(dim=dim, keepdim=True)).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


def reference(scores, dim=-1):
    return torch.softmax(scores, dim=dim)


def _scores_on_levels(generator):
    """Rows whose scores lie hundreds apart, so that no one constant suits them; in one row they do so themselves."""
    levels = torch.tensor([[0.0], [300.0], [-600.0], [900.0]])
    scores = 2 * torch.randn(4, drawn(generator, 6, 9), generator=generator) + levels
    scores[0, 2] += 200.0
    return (scores,)


def _three_axes(generator):
    return (2 * torch.randn(2, 5, drawn(generator, 6, 9), generator=generator),)


def _another_axis(generator):
    """Any axis but the last, counted from either end."""
    return 2 * torch.randn(drawn(generator, 3, 6), 5, 2, 4, 2, generator=generator), one_of(
        generator, (0, 2, -2, -4, -5)
    )


def _float64(generator):
    return (2 * torch.randn(3, drawn(generator, 4, 7), generator=generator, dtype=torch.float64),)


exercise = Exercise(
    id="attention.softmax",
    title="A softmax that survives large scores",
    statement="""
Write the softmax yourself: turn scores into positive weights that sum to one along the axis `dim`,

$$w_j = \\frac{e^{s_j}}{\\sum_{j'} e^{s_{j'}}}.$$

The tensor may have any number of axes, the scores may lie in the hundreds, and the weights have the scores' dtype (a
power too small for the dtype may become 0).
""".strip(),
    reference=reference,
    solution=softmax,
    explanation="""
Taking a constant $c$ off every score multiplies each power by $e^{-c}$, above and below the fraction, so that
nothing changes. With the maximum for $c$ the largest power is exactly 1: none overflows, and the sum is at least 1,
so that nothing is divided by 0. It must be the maximum of the same row: a constant too large makes all powers of a
row 0.
""".strip(),
    cases=(
        Case(name="rows whose scores lie hundreds apart", inputs=_scores_on_levels, rtol=3e-4),
        Case(name="three axes and no `dim` given", inputs=_three_axes),
        Case(name="another axis asked for", inputs=_another_axis),
        Case(name="scores in float64", inputs=_float64),
    ),
    hints="""
Two things must hold: every weight is positive, and the weights along one axis add up to one. Which function makes a
positive number of any number, and what do you divide by? Then try a score of 800.

$e^{800}$ does not fit a float64, nor $e^{300}$ a float32. The softmax does not change when one constant is taken off
all scores that share a sum: which one makes the largest power 1, and is it the same for every row?

Three steps: take off the maximum along `dim`, exponentiate, divide by the sum along `dim`. Maximum and sum must both
keep the axis, with size one, so that they line up with the scores again.
""",
    forbids=("softmax", "log_softmax", "Softmax", "softmin", "attention_weights"),
    difficulty=1,
    minutes=10,
    section="02-attention",
)

exercise.mutations(r"""
unstable: "(scores - scores.amax(dim=dim, keepdim=True))" -> "scores"
    Right for small numbers, NaN for large ones: exp(300) overflows, and far below zero every power is 0, which gives
    0/0. Taking a constant off a row changes nothing: which one keeps exp at 1 or less?
row_minimum: "amax" -> "amin"
or: "amax" -> "mean"
    Right until scores of one row lie far apart: you take the row's minimum or mean off, and what stands 100 above it
    overflows. Which score of the row must become 0, so that no power exceeds 1?
one_maximum: "amax(dim=dim, keepdim=True)" -> "max()"
    You take one maximum off the whole tensor. A row that lies far below it then has only powers of 0, and gives 0/0.
    Which maximum does each row need?
clamped: "(scores - scores.amax(dim=dim, keepdim=True))" -> "scores.clamp(-80.0, 80.0)"
or: "(scores - scores.amax(dim=dim, keepdim=True))" -> "scores.clamp(max=80.0)"
    Clamping keeps exp finite but makes all large scores equal: among 900, 901 and 902 yours cannot choose. What can you
    take off a row without changing its softmax?
global_sum: "sum(dim=dim, keepdim=True)" -> "sum()"
or: "amax(dim=dim, keepdim=True)" -> "max()", "sum(dim=dim, keepdim=True)" -> "sum()"
or: "(scores - scores.amax(dim=dim, keepdim=True))" -> "scores", "sum(dim=dim, keepdim=True)" -> "sum()"
    The whole tensor sums to 1. Each row should: along which axis do you add up?
no_keepdim: "sum(dim=dim, keepdim=True)" -> "sum(dim=dim)"
    The denominator has lost an axis, so that it lines up with the wrong one, or with none. Print both shapes, and look
    at `keepdim`.
divides_by_largest: ".sum" -> ".amax"
    The largest weight of every row is 1: you divide by the largest power. What must you divide by for the weights to
    sum to 1?
neg: "scores - scores.amax(dim=dim, keepdim=True)" -> "scores.amin(dim=dim, keepdim=True) - scores"
or: "scores - scores.amax(dim=dim, keepdim=True)" -> "scores.amax(dim=dim, keepdim=True) - scores"
    The largest score gets the smallest weight. Look for a sign.
wrong_dim: "powers = " -> "dim = 0\n    powers = "
    You always normalise over axis 0, so that columns sum to 1 and rows do not. One distribution runs along the axis
    `dim`: where does your code use it?
ignores_dim: "powers = " -> "dim = -1\n    powers = "
    Right along the last axis, and unchanged when another one is asked for: `dim` has no effect on your result. Which of
    your steps need to know the axis?
default_is_one: "dim: int = -1" -> "dim: int = 1"
    Right for two axes; with three, and no `dim` given, you normalise over the middle one. The default should be the
    last axis however many there are: how does Python count from the end?
no_exponential: "(scores - scores.amax(dim=dim, keepdim=True)).exp()" -> "scores"
    You divide scores by their sum, and a negative score gives a negative weight. What has to be done to the scores
    first?
base_two: "exp()" -> "exp2()"
    The weights are positive and sum to 1, but are flatter than they should be, as if you had taken powers of 2. Which
    base does the formula have?
sigmoid: "powers / powers.sum(dim=dim, keepdim=True)" -> "scores.sigmoid()"
    You judge each score by itself, as a sigmoid does. In a softmax the weights compete: raise one and the others of its
    row must fall.
hardmax: "powers / powers.sum(dim=dim, keepdim=True)" -> "(powers == 1).to(scores.dtype)"
    All of the weight is on the largest score. A softmax leaves a share to the others, by which they can be learnt:
    where does exp come in?
log_softmax: "powers / powers.sum(dim=dim, keepdim=True)" -> "scores - scores.logsumexp(dim=dim, keepdim=True)"
    None of your outputs is above 0: these are log-probabilities. The exercise asks for the probabilities themselves.
casts_to_float32: "powers = " -> "scores = scores.float()\n    powers = "
    The numbers are right, but scores in float64 come back in float32. A function that computes should keep the dtype it
    is given: where do you name one?
inplace: "(scores - scores.amax(dim=dim, keepdim=True))" -> "scores.sub_(scores.amax(dim=dim, keepdim=True))"
    Your result is right, but the tensor you were given has changed. An underscore at the end of a method (`sub_`) or an
    operator such as `-=` edits the caller's data.
""")


@exercise.must_hold("Along the axis that is asked for, the weights should sum to 1: what do you divide by?")
def sums_to_one(trial: Trial) -> str | None:
    dim = trial.inputs[1] if len(trial.inputs) > 1 else -1
    sums = trial.value.sum(dim=dim)
    worst = sums.flatten()[(sums - 1).abs().argmax()].item()
    return None if abs(worst - 1) < 1e-4 else f"Along the axis {dim} one sum is {worst:.3g}."


@exercise.must_hold("A weight is a share, and no share is negative: does every score go through exp?")
def positive(trial: Trial) -> str | None:
    lowest = trial.value.min().item()
    return None if lowest >= 0 else f"The lowest of your weights is {lowest:.3g}."


@exercise.must_hold(
    "A constant added to all scores should change nothing, as it stands above and below the fraction. Do you use the "
    "scores anywhere but in the exponent?"
)
def ignores_a_constant(trial: Trial) -> str | None:
    scores, *dim = trial.inputs
    moved = (trial.run(scores + 1.0, *dim) - trial.value).abs().max().item()
    return None if moved < 1e-3 else f"Adding 1 to every score moved a weight by {moved:.2g}."
