"""Exercise: temperature and top-p, the filter in front of a sampler."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import one_of
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.generation import top_p_only, with_temperature


def top_p(logits: Float[Tensor, "... vocab_size"], p: float, temperature: float) -> Float[Tensor, "... vocab_size"]:
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
    return _shuffled_logits(generator, UNSURE, level=-1.0), one_of(generator, (0.6, 0.72, 0.81)), 1.0


def _sure(generator):
    return _shuffled_logits(generator, SURE, level=0.5)[0], 0.6, 1.0


def _hot(generator):
    return _shuffled_logits(generator, BENT, level=0.5)[0], 0.75, one_of(generator, (1.3, 1.5, 1.7))


def _large(generator):
    """Two texts of two places each, of which all have the same probabilities in another order."""
    logits = _shuffled_logits(generator, 4 * BENT, level=300.0)
    return logits.unflatten(0, (2, 2)), one_of(generator, (0.55, 0.7, 0.83)), 1.0


def _kept(trial):
    """Which tokens have probability, and what the temperature alone would give all of them."""
    logits, _, temperature = trial.inputs
    return trial.value > 0, (logits.double() / temperature).softmax(dim=-1)


exercise = Exercise(
    id="decoder.top_p",
    title="Temperature and top-p",
    statement="""
Write the filter in front of a sampler. First the temperature $\\tau$: divide the logits by it, then take the softmax.
Then the nucleus: keep the smallest set of most probable tokens that together have probability `p` or more, give the
others probability 0, and renormalise.

`logits` may have any leading axes, and may lie in the hundreds. Return probabilities, each at the place of its token.
Sampling itself is not asked for.
""".strip(),
    reference=reference,
    solution=top_p,
    cases=(
        Case(name="three unsure distributions", inputs=_unsure),
        Case(name="a model that is sure", inputs=_sure),
        Case(name="a temperature above 1", inputs=_hot),
        Case(name="logits in the hundreds", inputs=_large),
    ),
    explanation="""
A token is judged by the sum *before* it. The sum before the best one is 0, so the best is always kept, however sure the
model is; and the token with which the sum crosses `p` is kept too, since the sum before it had not yet reached `p`.
Subtracting each token's own share from the running sum gives exactly that.
""".strip(),
    hints="""
Sort five probabilities on paper, best first, and write the running sums below them. Which of the tokens do you need to
reach 0.8? And which if the first alone has 0.86?

A token is kept when the sum of those *before* it is still below `p`: so the one that crosses stays, and the first
always does. Sorting gives you the order too; you need it to find the way back to the tokens.

Softmax of the logits over the temperature; sort, descending; running sum minus the own share; compare with `p`;
multiply; write back to the tokens' places with `scatter` (or with the inverse permutation, the argsort of the order);
divide by what is left.
""",
    forbids=("top_p_only", "TopPLogitsWarper"),
    difficulty=2,
    minutes=20,
    section="06-decoder",
)

exercise.mutations(r"""
drops_crossing_token: "ranked.cumsum(dim=-1) - ranked" -> "ranked.cumsum(dim=-1)"
    What you keep holds less than `p`: the token with which the sum crosses `p` must stay. Where the best token alone
    has more than `p`, its own sum is too large already, and nothing at all would be kept.
keeps_one_too_many: "(sum_before < p)" -> "(sum_before - ranked.roll(1, dims=-1) < p)"
    You keep one token too many: without your least probable one the sum would reach `p` as well. Which sum decides
    about a token, with or without its own share?
always_keeps_two: "(sum_before < p)" -> "((sum_before < p) | (torch.arange(logits.shape[-1]) < 2))"
    Right unless the model is sure: where the best token alone has more than `p`, it is the whole nucleus, and you keep
    a second one.
not_unsorted: "torch.zeros_like(probabilities).scatter(-1, order, ranked * (sum_before < p))" ->
  "ranked * (sum_before < p)"
    Your probabilities come out in sorted order, so that entry 0 is always the largest. Entry i must belong to token i:
    how do you get back?
not_sorted: "probabilities.sort(dim=-1, descending=True)" ->
  "probabilities, torch.arange(logits.shape[-1]).expand_as(logits)"
    You add up the probabilities in the order of the vocabulary, so that a token's fate depends on its id. In which
    order must they be added for the set to be the smallest?
sorted_upwards: ", descending=True" -> ""
    You keep the least probable tokens and drop the best: the sum starts from the wrong end. Which way does `sort` sort?
temp_multiplied: "/ temperature" -> "* temperature"
    A higher temperature should flatten the distribution; yours sharpens it. Do you multiply or divide?
temp_ignored: " / temperature" -> ""
    `temperature` has no effect. Either it is not used, or the probabilities are divided by it and then renormalised,
    which cancels. It must act before the exponential.
temp_after_cut: " / temperature" -> "", "return kept" -> "kept = kept ** (1 / temperature)\n    return kept"
    You choose the tokens at temperature 1 and apply the temperature afterwards. Here the temperature comes first: the
    nucleus is cut from the distribution that it has made.
not_renormalised: "kept / kept.sum(dim=-1, keepdim=True)" -> "kept"
    The right tokens are kept, but their probabilities do not sum to 1: what the dropped ones had is missing. Who gets
    it?
zeroed_logits: "kept / kept.sum(dim=-1, keepdim=True)" -> "torch.softmax(logits / temperature * (kept > 0), dim=-1)"
    Dropped tokens still have probability: you set their logits to 0, and exp(0) = 1. Which logit has a probability of
    exactly 0?
returns_logits: "kept / kept.sum(dim=-1, keepdim=True)" -> "(logits / temperature).masked_fill(kept == 0, -torch.inf)"
    You return logits, −inf for the dropped tokens. The exercise asks for probabilities: one step is missing.
renormalised_over_batch: "kept.sum(dim=-1, keepdim=True)" -> "kept.sum() * kept[..., 0].numel()"
    Right for a single distribution. In a batch you divide by the sum over all rows; each row should sum to 1 by itself.
above_p: "sum_before < p" -> "ranked >= p"
    You keep the tokens whose own probability is at least `p`, often none at all. `p` is the share that the kept ones
    must have together.
unstable: "torch.softmax(logits / temperature, dim=-1)" ->
  "torch.exp(logits / temperature) / torch.exp(logits / temperature).sum(dim=-1, keepdim=True)"
    Right for small logits, NaN for logits in the hundreds: the exponential overflows. Taking a constant off all logits
    of a row changes nothing; which constant helps?
inplace: "torch.softmax(logits / temperature" -> "torch.softmax(logits.div_(temperature)"
    Your result is right, but the logits were edited on the way, by `/=` or by an assignment to part of them. The next
    filter would get what you have left of them.
""")


@exercise.must_hold(
    "One samples from a distribution: no number below 0, and a sum of 1 along the last axis. What do you divide by at "
    "the end?"
)
def sums_to_one(trial: Trial) -> str | None:
    if (lowest := trial.value.min().item()) < 0:
        return f"The lowest of your numbers is {lowest:.3g}."
    sums = trial.value.sum(dim=-1)
    worst = sums.flatten()[(sums - 1).abs().argmax()].item()
    return None if abs(worst - 1) < 1e-4 else f"The probabilities of one distribution sum to {worst:.3g}."


@exercise.must_hold("The nucleus holds the most probable tokens: does each result stand at the place of its own token?")
def keeps_the_best(trial: Trial) -> str | None:
    is_kept, before = _kept(trial)
    least_kept = before.masked_fill(~is_kept, 2.0).amin(dim=-1)
    best_dropped = before.masked_fill(is_kept, -1.0).amax(dim=-1)
    if (best_dropped <= least_kept).all():
        return None
    return "A token that you drop is more probable than one that you keep."


@exercise.must_hold(
    "Keep as few tokens as will hold `p` together at this temperature, and no fewer: which sum do you compare with `p`?"
)
def smallest_set(trial: Trial) -> str | None:
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


@exercise.must_hold(
    "What is kept grows by one common factor: at which temperature are the proportions that you return?"
)
def keeps_proportions(trial: Trial) -> str | None:
    is_kept, before = _kept(trial)
    growth = torch.where(is_kept, trial.value.double() / before, torch.nan)
    lowest, highest = growth.nan_to_num(torch.inf).amin(dim=-1), growth.nan_to_num(-torch.inf).amax(dim=-1)
    row = (highest / lowest).argmax()
    least, most = lowest.flatten()[row].item(), highest.flatten()[row].item()
    if most <= least * 1.001:
        return None
    return f"Of the tokens that you keep, one has grown by the factor {most:.3g} and another by {least:.3g}."
