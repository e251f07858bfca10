"""Exercise: the learning rate of the Transformer paper, step by step."""

import math

from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.training.schedule import noam_rate


def warmup_rate(step: int, d_model: int, warmup: int, factor: float) -> float:
    """Return the learning rate of a step: it rises until step `warmup`, and falls from there on."""
    step = max(step, 1)
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def reference(step, d_model, warmup, factor):
    return noam_rate(max(step, 1), d_model, warmup, factor)


def _settings(generator):
    """Width, steps of the warm-up and factor."""
    return 8 * drawn(generator, 10, 14), 10 * drawn(generator, 4, 6), 0.5 * drawn(generator, 3, 7)


def _step_zero(generator):
    return 0, *_settings(generator)


def _while_warming_up(generator):
    """As in the paper, where the first rates are below a millionth."""
    return drawn(generator, 6, 9), one_of(generator, (256, 512, 1024)), 1000 * drawn(generator, 4, 16), 0.7


def _long_after(generator):
    d_model, warmup, factor = _settings(generator)
    return 4 * warmup, d_model, warmup, factor


exercise = Exercise(
    id="training.warmup_rate",
    title="Slowly up, then down with the root",
    statement="""
Write the learning rate of the Transformer paper (equation 3), times a factor of our own:

$$\\mathrm{lr}(s) = \\mathrm{factor} \\cdot d_\\mathrm{model}^{-0.5}
\\cdot \\min(s^{-0.5},\\; s \\cdot \\mathrm{warmup}^{-1.5})$$

Steps count from 1. PyTorch's schedulers, however, ask for step 0 first: give it the rate of step 1.
""".strip(),
    reference=reference,
    solution=warmup_rate,
    cases=(
        Case(name="a step of the warm-up", inputs=_while_warming_up),
        Case(name="a step at four times the warm-up", inputs=_long_after),
        Case(name="step 0", inputs=_step_zero),
    ),
    hints="""
Of the two terms of the minimum one rises with the step and one falls. At which step are they equal, and which of them
is smaller before it?

A negative exponent is a division: what is 0 to the power of -0.5? Settle the step before you compute.

Replace a step of 0 by 1; then the formula can be written as it stands, with `min` and `**`.
""",
    difficulty=1,
    minutes=10,
    section="08-training",
)

exercise.mutations(r"""
max_not_min: "min" -> "max"
    Your rate begins high, falls to the end of the warm-up and then grows without end. Of the two terms the smaller one
    counts.
step0_crash: "    step = max(step, 1)\n" -> ""
    Step 0 divides by zero. Schedulers call you with 0 before the first step: treat it as 1.
step0_zero: "step = max(step, 1)" -> "if step == 0:\n        return 0.0"
    A rate of 0 at step 0 wastes the first update. Give what step 1 has.
step0_infinite: "step = max(step, 1)" -> "if step == 0:\n        return float('inf')"
    An infinite rate at step 0 destroys all weights with the first update. Give what step 1 has.
d_model: "d_model**-0.5 * " -> ""
or: "d_model**-0.5" -> "d_model**0.5"
or: "d_model**-0.5" -> "d_model**-1"
    The curve has the right form at another height: its ratio to what is asked for is a power of `d_model`. A wider
    model gets a *lower* rate, by the square root of its width.
warmup_exp: "warmup**-1.5" -> "warmup**-0.5"
    Your rate is right after the warm-up and too high during it: the rising term meets the falling one too early. They
    must be equal at step = warmup: put it in for the step in both.
no_decay: "max(step, 1)" -> "min(max(step, 1), warmup)"
    After the warm-up your rate stays level. It should fall as 1/√step: at four times the warm-up it is half of the
    peak.
linear_decay: "return factor" ->
  "if step > warmup:\n        factor, step = factor * max(0.0, 1.1 - step / (10 * warmup)), warmup\n    return factor"
    After the warm-up your rate falls, but along another curve. It should fall as 1/√step: at four times the warm-up it
    is half of the peak.
no_factor: "factor * d" -> "d"
    `factor` has no effect on your rate.
step_plus_one: "step = max(step, 1)" -> "step += 1"
or: "step = max(step, 1)" -> "step += step < warmup"
    You are one step ahead: step 7 has the rate of step 8. Only step 0 needs help.
""")


@exercise.must_hold("During the warm-up twice the step should have twice the rate.")
def rises_straight(trial: Trial) -> str | None:
    _, d_model, warmup, factor = trial.inputs
    early, late = (trial.run(step, d_model, warmup, factor) for step in (10, 20))
    return None if math.isclose(late, 2 * early, rel_tol=1e-4) else f"Step 10 has {early:.3g}, step 20 has {late:.3g}."


@exercise.must_hold("After the warm-up four times the step should have half the rate.")
def falls_with_the_root(trial: Trial) -> str | None:
    _, d_model, warmup, factor = trial.inputs
    early, late = (trial.run(share * warmup, d_model, warmup, factor) for share in (2, 8))
    if math.isclose(2 * late, early, rel_tol=1e-4):
        return None
    return f"At twice the warm-up your rate is {early:.3g}, at eight times the warm-up it is {late:.3g}."


@exercise.must_hold("The rate should be highest at the end of the warm-up, and not jump there.")
def peaks_at_warmup(trial: Trial) -> str | None:
    _, d_model, warmup, factor = trial.inputs
    before, peak, after = (trial.run(warmup * share // 100, d_model, warmup, factor) for share in (98, 100, 102))
    if before < peak > after and max(peak - before, peak - after) < 0.05 * peak:
        return None
    return f"Around the end of the warm-up your rates are {before:.3g}, {peak:.3g}, {after:.3g}."
