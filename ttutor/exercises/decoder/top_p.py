"""Exercise: temperature and top-p, the filter in front of a sampler."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.decoder.top_p_sentences import MISTAKES
from ttutor.exercises.exercise import Case, Exercise, Property, Trial
from ttutor.generation import top_p_only, with_temperature


def top_p(logits: Float[Tensor, "... vocab_size"], p: float, temperature: float) -> Float[Tensor, "... vocab_size"]:
    """Give the probabilities from which to sample: of the nucleus that holds `p`, at this temperature."""
    ...


def solution(logits: Float[Tensor, "... vocab_size"], p: float, temperature: float) -> Float[Tensor, "... vocab_size"]:
    """Give the probabilities from which to sample: of the nucleus that holds `p`, at this temperature."""
    probabilities = torch.softmax(logits / temperature, dim=-1)
    ranked, order = probabilities.sort(dim=-1, descending=True)
    sum_before = ranked.cumsum(dim=-1) - ranked
    kept = torch.zeros_like(probabilities).scatter(-1, order, ranked * (sum_before < p))
    return kept / kept.sum(dim=-1, keepdim=True)


def reference(logits, p, temperature):
    return top_p_only(with_temperature(logits, temperature), p).exp()


def _shuffled_logits(generator, probabilities, level):
    """Logits of these probabilities, shuffled, every row with a constant of its own near a level added."""
    rows = torch.tensor(probabilities).log()
    shuffled = [row[torch.randperm(len(row), generator=generator)] for row in rows]
    return torch.stack(shuffled) + level + torch.randn(len(rows), 1, generator=generator)


# The sums of the largest ones stay clear of the p that is asked for: no rounding decides who is kept.
UNSURE = [
    [0.30, 0.22, 0.14, 0.10, 0.08, 0.06, 0.05, 0.03, 0.02],
    [0.21, 0.18, 0.15, 0.13, 0.10, 0.09, 0.07, 0.04, 0.03],
    [0.50, 0.19, 0.09, 0.07, 0.06, 0.04, 0.03, 0.015, 0.005],
]
SURE = [[0.86, 0.08, 0.03, 0.02, 0.01]]
BENT = [[0.40, 0.24, 0.14, 0.09, 0.06, 0.04, 0.03]]


def _unsure(generator):
    return _shuffled_logits(generator, UNSURE, level=-1.0), 0.75, 1.0


def _sure(generator):
    return _shuffled_logits(generator, SURE, level=0.5)[0], 0.6, 1.0


def _hot(generator):
    return _shuffled_logits(generator, BENT, level=0.5)[0], 0.75, 1.7


def _large(generator):
    return _shuffled_logits(generator, BENT, level=300.0)[0], 0.75, 1.0


def _kept(trial):
    """Which tokens have probability, and what the temperature alone would give all of them."""
    logits, _, temperature = trial.inputs
    return trial.value > 0, (logits.double() / temperature).softmax(dim=-1)


def _shares_that_are_none(trial: Trial) -> str | None:
    """Look for negative numbers and for sums other than one."""
    if (lowest := trial.value.min().item()) < 0:
        return f"The lowest of your numbers is {lowest:.3g}."
    sums = trial.value.sum(dim=-1)
    worst = sums.flatten()[(sums - 1).abs().argmax()].item()
    return None if abs(worst - 1) < 1e-4 else f"The probabilities of one distribution sum to {worst:.3g}."


def _better_token_that_is_dropped(trial: Trial) -> str | None:
    """Look for a dropped token that is more probable than a kept one."""
    is_kept, before = _kept(trial)
    least_kept = before.masked_fill(~is_kept, 2.0).amin(dim=-1)
    best_dropped = before.masked_fill(is_kept, -1.0).amax(dim=-1)
    if (best_dropped <= least_kept).all():
        return None
    return "A token that you drop is more probable than one that you keep."


def _nucleus_of_another_size(trial: Trial) -> str | None:
    """Add up what the kept tokens had, with and without the least probable of them."""
    p = trial.inputs[1]
    is_kept, before = _kept(trial)
    together = (before * is_kept).sum(dim=-1)
    without_least = together - before.masked_fill(~is_kept, 2.0).amin(dim=-1)
    if (together < p).any():
        return f"The tokens that you keep had {together.min().item():.2f} together, less than p = {p}."
    if (without_least >= p).any():
        return (
            f"Without the least probable of those you keep, they still had {without_least.max().item():.2f}; p is {p}."
        )
    return None


def _proportions_that_are_lost(trial: Trial) -> str | None:
    """Compare each kept token's share with what it had."""
    is_kept, before = _kept(trial)
    growth = torch.where(is_kept, trial.value.double() / before, torch.nan)
    lowest, highest = growth.nan_to_num(torch.inf).amin(dim=-1), growth.nan_to_num(-torch.inf).amax(dim=-1)
    row = (highest / lowest).argmax()
    least, most = lowest.flatten()[row].item(), highest.flatten()[row].item()
    if most <= least * 1.001:
        return None
    return f"Of the tokens that you keep, one has grown by the factor {most:.3g} and another by {least:.3g}."


EXERCISES = (
    Exercise(
        id="decoder.top_p",
        title="Temperature and top-p",
        statement="""
Write the filter in front of a sampler. First the temperature $\\tau$: divide the logits by it, then take the softmax.
Then the nucleus: keep the smallest set of most probable tokens that together have probability `p` or more, give the
others probability 0, and renormalise.

`logits` may have any leading axes, and may lie in the hundreds. Return probabilities, each at the place of its token.
Sampling itself is not asked for.
""".strip(),
        stub=top_p,
        reference=reference,
        solution=solution,
        cases=(
            Case(name="three unsure distributions", inputs=_unsure),
            Case(name="a model that is sure", inputs=_sure),
            Case(name="a temperature of 1.7", inputs=_hot),
            Case(name="logits in the hundreds", inputs=_large),
        ),
        explanation="""
A token is judged by the sum *before* it. The sum before the best one is 0, so the best is always kept, however sure the
model is; and the token with which the sum crosses `p` is kept too, since the sum before it had not yet reached `p`.
Subtracting each token's own share from the running sum gives exactly that.
""".strip(),
        hints=(
            (
                "Sort five probabilities on paper, best first, and write the running sums below them. Which of "
                "the tokens do you need to reach 0.8? And which if the first alone has 0.86?"
            ),
            (
                "A token is kept when the sum of those *before* it is still below `p`: so the one that crosses "
                "stays, and the first always does. Sorting gives you the order too; you need it to find the way "
                "back to the tokens."
            ),
            (
                "Softmax of the logits over the temperature; sort, descending; running sum minus the own share; "
                "compare with `p`; multiply; write back to the tokens' places with `scatter` (or with the "
                "inverse permutation, the argsort of the order); divide by what is left."
            ),
        ),
        mistakes=MISTAKES,
        properties=(
            Property(
                id="sums_to_one",
                says="One samples from a distribution: no number below 0, and a sum of 1 along the last axis. "
                "What do you divide by at the end?",
                broken=_shares_that_are_none,
            ),
            Property(
                id="keeps_the_best",
                says="The nucleus holds the most probable tokens: does each result stand at the place of its own "
                "token?",
                broken=_better_token_that_is_dropped,
            ),
            Property(
                id="smallest_set",
                says="Keep as few tokens as will hold `p` together at this temperature, and no fewer: which sum "
                "do you compare with `p`?",
                broken=_nucleus_of_another_size,
            ),
            Property(
                id="keeps_proportions",
                says="What is kept grows by one common factor: at which temperature are the proportions that you "
                "return?",
                broken=_proportions_that_are_lost,
            ),
        ),
        forbids=("top_p_only", "TopPLogitsWarper"),
        difficulty=2,
        minutes=20,
        section="06-decoder",
    ),
)
