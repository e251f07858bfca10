"""Exercise: what several tries are worth, from few samples."""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def solved_in_k(n_right: Int[Tensor, " problems"], n_samples: int, k: int) -> float:
    """The mean over problems of the unbiased estimate of pass@k."""
    choices = math.comb(n_samples, k)
    shares = [1 - math.comb(n_samples - count, k) / choices for count in n_right.tolist()]
    return sum(shares) / len(shares)


def reference(n_right, n_samples, k):
    place = torch.arange(k, dtype=torch.float64)
    left = (n_samples - n_right[:, None].double() - place).clamp(min=0) / (n_samples - place)
    return (1 - left.prod(dim=1)).mean().item()


def _counts(generator):
    n_samples = drawn(generator, 9, 12)
    counts = torch.randint(1, n_samples - 4, (drawn(generator, 5, 8),), generator=generator)
    return torch.cat([counts, torch.tensor([0, 1, 2, n_samples - 2])]), n_samples, drawn(generator, 2, 4)


exercise = Exercise(
    id="assistant.solved_in_k",
    title="pass@k without a bias",
    statement="""
A model wrote `n_samples` answers to each of several problems; `n_right` says how many were right. What is the chance
that at least one of `k` answers is right? Give, for each problem, the share of all ways to choose `k` of the samples
that hold a right one, and return the mean over the problems.
""".strip(),
    reference=reference,
    solution=solved_in_k,
    explanation="""
The estimate $1 - (1 - c/n)^k$ puts each sample back before the next is drawn, so that one wrong answer may be drawn $k$
times; it is too low, above all where $n$ is not much larger than $k$. Chen et al. (2021) choose without putting back.
""".strip(),
    cases=(Case(name="about ten problems", inputs=_counts),),
    hints="""
Of four answers one is right. In how many of the six pairs does it stand?

It is easier to count the choices in which all are wrong.

`math.comb(wrong, k)` of `math.comb(all, k)` choices hold no right answer; `math.comb` gives 0 where there are too few.
""",
    forbids=("pass_at_k",),
    difficulty=1,
    minutes=10,
    section="13-assistant",
)

exercise.mutations(r"""
biased: "1 - math.comb(n_samples - count, k) / choices" -> "1 - (1 - count / n_samples) ** k"
    You put each answer back before you draw the next, so the same wrong one may come several times: too low where
    there are few samples.
first_k: "1 - math.comb(n_samples - count, k) / choices" -> "min(1.0, k * count / n_samples)"
    You add up the chances of the single tries. Two of them may be right at once; count the choices where none is.
all_wrong: "1 - math.comb(n_samples - count, k) / choices" -> "math.comb(n_samples - count, k) / choices"
    That is the share of choices in which all answers are wrong.
exactly_one: "1 - math.comb(n_samples - count, k) / choices" ->
  "count * math.comb(n_samples - count, k - 1) / choices"
    You count the choices with exactly one right answer. More than one is fine, too.
all_right: "1 - math.comb(n_samples - count, k) / choices" -> "math.comb(count, k) / choices"
    You ask that all of the chosen answers are right. One is enough.
one_try: "1 - math.comb(n_samples - count, k) / choices" -> "count / n_samples"
    That is pass@1. With more tries the chance grows.
anything_right: "1 - math.comb(n_samples - count, k) / choices" -> "float(count > 0)"
    You count a problem as solved if any of all samples is right: that is pass@n, for all samples at once.
pooled: "for count in n_right.tolist()" -> "for count in [int(n_right.double().mean())]"
    You average the counts first, and then ask. Problems differ: of an easy and a hard one the hard one stays unsolved.
summed: "sum(shares) / len(shares)" -> "sum(shares)"
    That is the expected number of solved problems; their share was asked for.
""")


@exercise.must_hold("A share lies between 0 and 1.")
def is_a_share(trial: Trial) -> str | None:
    return None if 0 <= trial.value <= 1 else f"{trial.value:.3g} is no share."


@exercise.must_hold("With one try it is the share of right samples.")
def one_try_is_the_share(trial: Trial) -> str | None:
    n_right, n_samples, _ = trial.inputs
    came, expected = trial.run(n_right, n_samples, 1), n_right.double().mean().item() / n_samples
    return None if abs(came - expected) < 1e-9 else f"Here that is {expected:.3g}, and yours {came:.3g}."


@exercise.must_hold("A problem of which more answers are wrong than chosen can fail; one with fewer cannot.")
def enough_right_is_certain(trial: Trial) -> str | None:
    _, n_samples, k = trial.inputs
    came = trial.run(torch.tensor([n_samples - k + 1]), n_samples, k)
    return None if abs(came - 1) < 1e-9 else f"With {k - 1} wrong answers and {k} tries yours is {came:.3g}."
