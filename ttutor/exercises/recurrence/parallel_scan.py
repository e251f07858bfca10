"""Exercise: a linear recurrence in a few rounds."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.recurrence import linear_scan


def scan_rounds(
    factor: Float[Tensor, "tokens d_model"], added: Float[Tensor, "tokens d_model"]
) -> tuple[Float[Tensor, "tokens d_model"], int]:
    """Every state of h = factor * h + added, beginning with zero, and the number of rounds it took."""
    hidden, reach, n_rounds = added, 1, 0
    while reach < len(added):
        earlier = torch.zeros_like(hidden)
        earlier_factor = torch.zeros_like(factor)
        earlier[reach:], earlier_factor[reach:] = hidden[:-reach], factor[:-reach]
        hidden = hidden + factor * earlier
        factor = factor * earlier_factor
        reach, n_rounds = 2 * reach, n_rounds + 1
    return hidden, n_rounds


def reference(factor, added):
    hidden, n_rounds = linear_scan(factor[None], added[None])
    return hidden[0], n_rounds


def _steps(random):
    """Three, four or five rounds; each of the sizes needs another code that is made for one."""
    shape = one_of(random, (7, 11, 14, 19, 23)), drawn(random, 3, 4)
    factor = 0.5 + torch.rand(*shape, generator=random, dtype=torch.float64)
    return factor, torch.randn(*shape, generator=random, dtype=torch.float64)


exercise = Exercise(
    id="recurrence.scan_rounds",
    title="Eleven steps in four rounds",
    statement="Compute all states of $h_t = a_t \\odot h_{t-1} + b_t$, with nothing before the first, in "
    "$\\lceil \\log_2 T \\rceil$ **rounds**. Every position stands for a stretch of steps that ends with its "
    "own. In a round it joins that stretch with the one that ends where it begins; all positions do so at once, "
    "in a few tensor operations without a loop over positions. Return the states and the number of rounds.",
    reference=reference,
    solution=scan_rounds,
    explanation="Each position holds a step $(a, b)$ that stands for the last `reach` steps. Joined with the one "
    "`reach` positions earlier, it is $(a\\,a_\\mathrm{earlier},\\; b + a\\,b_\\mathrm{earlier})$ and stands for "
    "twice as many. Before the first position stands the step that adds nothing. It all rests on one property: "
    "joining is associative, so that it does not matter in which groups one joins.",
    cases=(Case(name="a number of steps that is no power of two", inputs=_steps, points=3),),
    hints="""
Two steps in a row are one step. Which, if the first is $(a_1, b_1)$ and the second $(a_2, b_2)$?

Keep two tensors: joined factors and joined summands. In a round shift both by `reach` places, fill the front with
zeros, and join; then double `reach`.

The new summand uses the *old* factor, so compute it first, then multiply the factors. Stop when `reach` is no longer
below the number of positions.
""",
    forbids=("linear_scan",),
    difficulty=3,
    minutes=35,
    section="01-recurrence",
)

exercise.mutations("""
factor_not_joined: "factor * earlier_factor" -> "factor"
    The first two states are right. From the second round on a position stands for several steps, and its factor has to
    be the product of theirs.
factor_too_early: "hidden + factor * earlier" -> "hidden + factor * earlier_factor * earlier"
    You join the factors before they are used: the summands need the factor as it was.
factor_of_earlier: "hidden + factor * earlier" -> "hidden + earlier_factor * earlier"
    You multiply what comes from earlier by the *earlier* position's factor. Which factors does it still have to pass?
reach_plus_one: "2 * reach" -> "reach + 1"
    A position that has covered two steps joins another that has covered two, and then stands for four. How does your
    reach grow?
one_round_short: "while reach" -> "while 2 * reach"
    The last states miss the first summands: you stop a round too early.
one_round_more: "return hidden, n_rounds" -> "return hidden, n_rounds + 1"
    The states are right, and you count a round too many.
running_sum: "hidden + factor * earlier" -> "hidden + earlier"
    That is the running sum of the summands: the factors take no part.
wraps_around: "torch.zeros_like(hidden)" -> "hidden.roll(reach, 0)",
  "torch.zeros_like(factor)" -> "factor.roll(reach, 0)"
    What is shifted out at the end comes back in at the front. Before the first position there is nothing.
""")


@exercise.mistake(
    "The states are right, and you took one step after another: as many rounds as positions. What can all positions do "
    "at once?",
    id="sequential",
)
def one_step_after_another(factor, added):
    hidden, states = torch.zeros_like(added[0]), []
    for a, b in zip(factor, added, strict=True):
        hidden = a * hidden + b
        states.append(hidden)
    return torch.stack(states), len(states)


@exercise.like("sequential")
def one_step_after_another_first_free(factor, added):
    states, n_rounds = one_step_after_another(factor, added)
    return states, n_rounds - 1


@exercise.must_hold("A state must not depend on later summands.")
def future_unseen(trial: Trial) -> str | None:
    factor, added = trial.inputs
    changed = added.clone()
    changed[-1] += 1
    moved = (trial.run(factor, changed)[0] - trial.value[0])[:-1].abs().max().item()
    return None if moved < 1e-9 else f"I changed the last summand, and an earlier state moved by {moved:.2g}."


@exercise.must_hold("Each state should be its factor times the one before it, plus its summand.")
def follows(trial: Trial) -> str | None:
    factor, added = trial.inputs
    hidden = trial.value[0]
    gap = (hidden[1:] - factor[1:] * hidden[:-1] - added[1:]).abs().amax(dim=1)
    if gap.max() < 1e-6:
        return None
    return f"Your state {int((gap > 1e-6).nonzero()[0]) + 1} (counted from 0) does not follow from the one before it."
