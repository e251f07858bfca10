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
        Case(name="a vocabulary of 11", inputs=lambda random: (11, drawn(random, 35, 45) / 100)),
        Case(name="a floor of 5 nats", inputs=lambda random: (1000 * drawn(random, 33, 41), 5.0)),
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


def _halved(rises_to, low=0.0, high=1.0, steps=60):
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if rises_to(middle) else (low, middle)
    return (low + high) / 2


def _entropy(right, other, n_others, log=math.log):
    return -right * log(right) - n_others * other * log(other)


@exercise.mistake(
    "Right for a large vocabulary, not for one of 11: you search with the approximation, and $\\epsilon / V$ is no "
    "longer small beside 1.",
    id="approximation",
)
def by_the_approximation(vocab_size, floor):
    return _halved(lambda e: _entropy(1 - e, e / vocab_size, vocab_size) < floor)


@exercise.mistake(
    "Right for a large vocabulary, not for one of 11: you spread epsilon over the wrong tokens only. In this chapter "
    "the right one gets its share, too."
)
def others_only(vocab_size, floor):
    return _halved(lambda e: _entropy(1 - e, e / (vocab_size - 1), vocab_size - 1) < floor, high=1 - 1 / vocab_size)


@exercise.mistake(
    "Right for a large vocabulary, not for one of 11: the probabilities of your target do not sum to 1. The right "
    "token lacks its share of what is spread.",
    id="right_without_share",
)
def right_without_its_share(vocab_size, floor):
    return _halved(lambda e: _entropy(1 - e, e / vocab_size, vocab_size - 1) < floor)


@exercise.mistake(
    "Right as long as the smoothing lies between 0.01 and 0.2; a floor of 5 nats needs more. Which is the largest that "
    "there can be?"
)
def narrow_bracket(vocab_size, floor):
    return _halved(lambda e: _floor(torch.tensor(e).double(), vocab_size) < floor, low=0.01, high=0.2)


@exercise.mistake(
    "Your search ends at 0: it keeps the half in which the answer is not. When the floor in the middle is too low, "
    "does the smoothing have to be larger or smaller?"
)
def other_half(vocab_size, floor):
    return _halved(lambda e: _floor(torch.tensor(e).double(), vocab_size) > floor)


@exercise.mistake(
    "Your smoothing has that floor in bits. A nat is longer than a bit, by the factor $1 / \\ln 2$.",
    id="bits",
)
def in_bits(vocab_size, floor):
    return _halved(lambda e: _floor(torch.tensor(e).double(), vocab_size) < floor * math.log(2))


@exercise.mistake(
    "You are near and not there: the interval was still wide when you stopped. Each halving gives one more binary "
    "digit, and twenty of them six decimal ones."
)
def stopped_early(vocab_size, floor):
    return _halved(lambda e: _floor(torch.tensor(e).double(), vocab_size) < floor, steps=6)


@exercise.mistake(
    "You kept the term $\\epsilon \\ln V$ alone. It is the largest; the others are not small enough to leave out."
)
def one_term(vocab_size, floor):
    return floor / math.log(vocab_size)


@exercise.mistake(
    "You count what the right token costs, and forget the others: at the floor all of them together have the "
    "probability that you spread, and each costs a large logarithm.",
    id="right_token_alone",
)
def loss_of_the_right_token(vocab_size, floor):
    return (1 - math.exp(-floor)) / (1 - 1 / vocab_size)


@exercise.mistake(
    "You return a floor. It was given; the question is which smoothing has it.",
    id="floor_returned",
)
def floor_of_a_tenth(vocab_size, floor):
    return _floor(torch.tensor(0.1).double(), vocab_size).item()


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
