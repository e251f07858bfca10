"""Exercise: which smoothing has a given floor."""

import math

import torch

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def smoothing_for_floor(vocab_size: int, floor: float) -> float:
    """The smoothing at which no model can bring the smoothed loss below ``floor`` nats."""

    def floor_of(epsilon: float) -> float:
        right, other = 1 - epsilon + epsilon / vocab_size, epsilon / vocab_size
        return -right * math.log(right) - (vocab_size - 1) * other * math.log(other)

    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if floor_of(middle) < floor else (low, middle)
    return (low + high) / 2


def _floor(epsilon, vocab_size):
    """The entropy of the smoothed target, as a tensor, so that it can be differentiated."""
    right, other = 1 - epsilon + epsilon / vocab_size, epsilon / vocab_size
    return -right * right.log() - (vocab_size - 1) * other * other.log()


def reference(vocab_size, floor):
    """Newton's method; the floor rises with the smoothing, and bends downwards, so that it comes from the left."""
    epsilon = torch.tensor(1e-6, dtype=torch.float64)
    for _ in range(60):
        epsilon = epsilon.detach().requires_grad_()
        reached = _floor(epsilon, vocab_size)
        (slope,) = torch.autograd.grad(reached, epsilon)
        epsilon = epsilon + (floor - reached) / slope
    return epsilon.item()


exercise = Exercise(
    id="training.smoothing_for_floor",
    title="How much smoothing is a nat?",
    statement=r"""For which $\epsilon$ is the floor of the smoothed loss exactly 1 nat, at $V = 37{,}000$? Does the
floor grow with $V$, and how fast? Is a validation loss of 1.2 nats with $\epsilon = 0.1$ possible there?

Write a function that answers the first question for any vocabulary and any floor below
$\ln V$. You may use the package's `smoothing_floor`, or write the floor out.""",
    reference=reference,
    solution=smoothing_for_floor,
    explanation=r"Bisection gives $\epsilon \approx 0.071$ for 1 nat at $V = 37{,}000$. The floor grows with "
    r"$\epsilon \ln V$, so ten times the vocabulary adds only $0.1 \ln 10 = 0.23$ nats at $\epsilon = 0.1$. A "
    r"smoothed loss of 1.2 is below the floor of 1.377 and therefore impossible: it was measured without "
    r"smoothing, with another $\epsilon$, or with a bug.",
    cases=(
        Case(name="a small vocabulary", inputs=lambda random: (drawn(random, 10, 13), drawn(random, 35, 45) / 100)),
        Case(
            name="a floor of several nats",
            inputs=lambda random: (1000 * drawn(random, 33, 41), drawn(random, 50, 95) / 10),
        ),
    ),
    hints=r"""
`smoothing_floor(37_000, epsilon)` grows with $\epsilon$.

A function that grows crosses a value once: halve the interval again and again.

Begin with 0 and 1 (at 1 the target is uniform, and the floor is $\ln V$), and stop when they are nearly equal. For the
second question look at the term $\epsilon \ln (V / \epsilon)$.
""",
    difficulty=2,
    minutes=10,
    section="08-training",
    rtol=1e-4,
)

exercise.mutations(r"""
approximation: "1 - epsilon + epsilon / vocab_size, " -> "1 - epsilon, ", "(vocab_size - 1)" -> "vocab_size"
    Right for a large vocabulary, not for one of 11: you search with the approximation, and $\epsilon / V$ is no longer
    small beside 1.
others_only: "1 - epsilon + epsilon / vocab_size, epsilon / vocab_size" -> "1 - epsilon, epsilon / (vocab_size - 1)",
  "0.0, 1.0" -> "0.0, 1 - 1 / vocab_size"
    Right for a large vocabulary, not for one of 11: you spread epsilon over the wrong tokens only. In this chapter the
    right one gets its share, too.
right_without_share: "1 - epsilon + epsilon / vocab_size, " -> "1 - epsilon, "
    Right for a large vocabulary, not for one of 11: the probabilities of your target do not sum to 1. The right token
    lacks its share of what is spread.
narrow_bracket: "0.0, 1.0" -> "0.01, 0.2"
    Right as long as the smoothing lies between 0.01 and 0.2; a floor of 5 nats needs more. Which is the largest that
    there can be?
other_half: "< floor" -> "> floor"
    Your search ends at 0: it keeps the half in which the answer is not. When the floor in the middle is too low, does
    the smoothing have to be larger or smaller?
bits: "< floor" -> "< floor * math.log(2)"
    Your smoothing has that floor in bits. A nat is longer than a bit, by the factor $1 / \ln 2$.
stopped_early: "1e-9" -> "0.02"
    You are near and not there: the interval was still wide when you stopped. Each halving gives one more binary digit,
    and twenty of them six decimal ones.
one_term: "return (low + high) / 2" -> "return floor / math.log(vocab_size)"
    You kept the term $\epsilon \ln V$ alone. It is the largest; the others are not small enough to leave out.
right_token_alone: "return (low + high) / 2" -> "return (1 - math.exp(-floor)) / (1 - 1 / vocab_size)"
    You count what the right token costs, and forget the others: at the floor all of them together have the probability
    that you spread, and each costs a large logarithm.
floor_returned: "return (low + high) / 2" -> "return floor_of(0.1)"
    You return a floor. It was given; the question is which smoothing has it.
""")


@exercise.must_hold("Put your smoothing into the formula for the floor: the floor that was asked for must come out.")
def another_floor(trial: Trial) -> str | None:
    vocab_size, floor = trial.inputs
    epsilon = float(trial.value)
    if not 0 < epsilon < 1:
        return f"Your smoothing is {epsilon:.4g}; it is a share, between 0 and 1."
    reached = _floor(torch.tensor(epsilon, dtype=torch.float64), vocab_size).item()
    return (
        None
        if math.isclose(reached, floor, rel_tol=2e-4)
        else (
            f"With V = {vocab_size:,} your smoothing of {epsilon:.4g} has a floor of {reached:.4g} nats; "
            f"{floor:.4g} was asked for."
        )
    )
