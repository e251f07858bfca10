"""Exercise: three weights on paper, for a query that meets three keys."""

import math

from ttutor.exercises.exercise import Case, Exercise, Trial


def weights_by_hand() -> list[list[float]]:
    """Three lists of three weights: as they stand, at temperature 1/2, and with the third key masked."""
    as_they_stand = [1 / 8, 2 / 8, 5 / 8]
    at_half = [1 / 30, 4 / 30, 25 / 30]
    third_masked = [1 / 3, 2 / 3, 0.0]
    return [as_they_stand, at_half, third_masked]


def reference():
    scores = (0.0, math.log(2), math.log(5))
    return [_softmax(scores), _softmax([score / 0.5 for score in scores]), [*_softmax(scores[:2]), 0.0]]


def _softmax(scores):
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def _numbers(answer):
    """Whole numbers, fractions and tensors count as the floats that they are."""
    return [[float(weight) for weight in row] for row in answer()]


exercise = Exercise(
    id="attention.weights_by_hand",
    title="By hand",
    statement=r"A query meets three keys; the scores, already scaled, are $0$, $\ln 2$ and $\ln 5$. Give the three "
    r"weights as fractions, without a computer: (1) as they stand; (2) at temperature $\tfrac12$; (3) at "
    "temperature 1 again, with the third key masked. Then write them down as three lists; `1 / 3` is a number to "
    "Python.",
    reference=reference,
    solution=weights_by_hand,
    explanation=r"(1) $\tfrac18, \tfrac28, \tfrac58$. (2) $\tfrac1{30}, \tfrac4{30}, \tfrac{25}{30}$: the best "
    r"key has gained. (3) $\tfrac13, \tfrac23, 0$: the remaining keys share the whole, and their *ratio* is "
    r"what it was. A mask takes a key away; it does not take its share away.",
    observe=_numbers,
    cases=(Case(name="the three lists", inputs=lambda random: ()),),
    hints=r"""
$e^{\ln 5} = 5$. The scores were chosen so that no exponential is left.

Dividing by $\tfrac12$ doubles each score, and $e^{2 \ln 5} = 5^2$.

The powers are $1, 2, 5$; then $1, 4, 25$; then $1, 2$ and nothing. Divide each list by its sum.
""",
    difficulty=1,
    minutes=10,
    section="02-attention",
    rtol=1e-3,
)

exercise.mutations(r"""
not_normalised: "[1 / 8, 2 / 8, 5 / 8]" -> "[1, 2, 5]", "[1 / 30, 4 / 30, 25 / 30]" -> "[1, 4, 25]",
  "[1 / 3, 2 / 3, 0.0]" -> "[1, 2, 0]"
    These are the powers, and they are right; weights are shares of a whole. What do you divide each list by, so that it
    sums to 1?
masked_key_in_denominator: "[1 / 3, 2 / 3, 0.0]" -> "[1 / 8, 2 / 8, 0.0]"
    With the third key masked, your weights sum to 3/8. A masked key leaves the row before the denominator is formed:
    what has to be the sum of the two that remain?
masked_score_zero: "[1 / 3, 2 / 3, 0.0]" -> "[1 / 4, 2 / 4, 1 / 4]"
    Your masked key still has a weight of 1/4. A score of 0 is not nothing: its power is 1. Which score has the power 0?
temperature_multiplied: "[1 / 30, 4 / 30, 25 / 30]" -> "_softmax((0.0, math.log(2) / 2, math.log(5) / 2))"
    At temperature 1/2 your weights are flatter than before; they should be more pointed. The scores are divided by the
    temperature: does a half make them larger or smaller?
temperature_after_softmax: "[1 / 30, 4 / 30, 25 / 30]" -> "[2 / 8, 4 / 8, 10 / 8]"
    Your second list sums to 2: it is the first, divided by 1/2. The temperature divides the scores, before anything is
    exponentiated.
temperature_ignored: "[1 / 30, 4 / 30, 25 / 30]" -> "[1 / 8, 2 / 8, 5 / 8]"
    Your second list equals the first. A temperature changes the weights unless all scores are the same: what becomes of
    the three scores when each is divided by 1/2?
power_of_a_multiple: "[1 / 30, 4 / 30, 25 / 30]" -> "[1 / 15, 4 / 15, 10 / 15]"
    You took $e^{2 \ln 5}$ for twice $e^{\ln 5}$. (For 2 the two happen to be the same number.) How is a power with a
    doubled exponent written?
""")


@exercise.mistake(
    "You have shared out the scores themselves, so a key with score 0 gets nothing. Softmax first turns every score "
    "into a positive number.",
    id="not_exponentiated",
)
def shares_of_the_scores():
    first = [0.0, math.log(2) / math.log(10), math.log(5) / math.log(10)]
    return [first, first, [0.0, 1.0, 0.0]]


@exercise.must_hold("Each list holds the shares of a whole, so it sums to 1.")
def lists_sum_to_one(trial: Trial) -> str | None:
    for number, row in enumerate(trial.value, start=1):
        if abs(sum(row) - 1) > 1e-3:
            return f"List {number} sums to {sum(row):.3g}."
    return None
