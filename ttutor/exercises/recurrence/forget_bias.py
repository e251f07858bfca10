"""Exercise: which bias gives a forget gate its half-life."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def forget_bias(half_life: Float[Tensor, " settings"]) -> Float[Tensor, " settings"]:
    """The bias with which half of the cell state is left after that many words, for each setting."""
    forget = 0.5 ** (1 / half_life)
    return torch.log(forget / (1 - forget))


def reference(half_life):
    return -torch.expm1(math.log(2) / half_life).log()


def _inputs(random):
    """From a few words to tens of thousands."""
    places = torch.linspace(0.7, 11, drawn(random, 4, 7), dtype=torch.float64)
    return (places.exp() + torch.rand(len(places), generator=random).double(),)


exercise = Exercise(
    id="recurrence.forget_bias",
    title="The half-life of a page",
    statement="An LSTM's forget gate stays at $f = \\sigma(b)$, and nothing is let in. Derive the bias $b$ for "
    "which exactly half of the cell state is left after $n$ words; then write it as a function. On paper: "
    "what is $b$ approximately for large $n$, and which bias would you start with for a task in which 100 words "
    "have to be bridged?",
    reference=reference,
    solution=forget_bias,
    explanation="$\\sigma(b)^n = \\tfrac12$ gives $f = 2^{-1/n}$, and the inverse of the sigmoid is $b = "
    "\\ln\\frac{f}{1-f} = -\\ln(2^{1/n} - 1)$. For large $n$, $2^{1/n} - 1 \\approx \\ln 2 / n$, so that $b \\approx "
    "\\ln n - \\ln \\ln 2 = \\ln n + 0.37$: the bias need only grow like the logarithm of the distance. Biases that "
    "begin so are called *chrono initialisation* (Tallec and Ollivier 2018). For 100 words that is about 5. Half "
    "left is comfortable: the chapter's LSTM learns its nouns with a bias of 3, which leaves half after 14 words. "
    "The default, a bias near 0, has a half-life of *one* word.",
    cases=(Case(name="several half-lives", inputs=_inputs, points=2),),
    hints=r"""
Write down what is left after $n$ words as a power, and set it to one half.

Solve for $f$ first. Then turn the sigmoid round: which $b$ has $\sigma(b) = f$?

$f$ is the $n$-th root of one half. And $\sigma(b) = f$ means $e^{-b} = (1 - f)/f$.
""",
    difficulty=2,
    minutes=20,
    section="01-recurrence",
)

exercise.mutations("""
gate: "torch.log(forget / (1 - forget))" -> "forget"
    That is the gate, a number between 0 and 1. The exercise asks for the bias that makes it.
horizon: "0.5 ** (1 / half_life)" -> "1 - 1 / half_life"
    You set $f = 1 - 1/n$, the rule for the horizon: after $n$ words about a third is left, not one half, and for short
    times not even that.
one_over_e: "0.5 ** (1 / half_life)" -> "torch.exp(-1 / half_life)"
    With your bias the share $1/e$ is left after $n$ words. The exercise asks for one half.
linear: "0.5 ** (1 / half_life)" -> "1 - 0.5 / half_life"
    You let the state lose the same amount at every word. It loses the same *share*: what is left is a power.
sign: "torch.log" -> "-torch.log"
    Your gate is nearly shut where it should be nearly open: the sign is exchanged.
logarithm: "forget / (1 - forget)" -> "forget"
    That is the logarithm of the gate. The inverse of the sigmoid has the odds, gate to one minus gate, inside.
sigmoid_again: "torch.log(forget / (1 - forget))" -> "forget.sigmoid()"
    You apply the sigmoid to the gate once more. From gate to bias the way leads back.
power: "(1 / half_life)" -> "half_life"
    Your gate is one half to the power $n$: that shuts it. Which number gives one half when it is multiplied with itself
    $n$ times?
base_two: "torch.log(" -> "torch.log2("
    The sigmoid is made with $e$; your logarithm has base 2.
""")


@exercise.must_hold("After the half-life one half should be left.")
def half_is_left(trial: Trial) -> str | None:
    (half_life,) = trial.inputs
    left = torch.sigmoid(trial.value) ** half_life
    worst = (left - 0.5).abs().argmax()
    if (left - 0.5).abs().max() < 1e-6:
        return None
    return f"After {half_life[worst]:.0f} words your gate has left {left[worst]:.3g} of the cell state."
