"""Exercise: two halves of a softmax, computed apart, made one."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def merge_blocks(
    context_a: Float[Tensor, "queries d_value"],
    log_sum_a: Float[Tensor, " queries"],
    context_b: Float[Tensor, "queries d_value"],
    log_sum_b: Float[Tensor, " queries"],
) -> tuple[Float[Tensor, "queries d_value"], Float[Tensor, " queries"]]:
    """What attention over both blocks of keys gives, and the logarithm of its sum of exponentials."""
    largest = torch.maximum(log_sum_a, log_sum_b)
    sum_a, sum_b = (log_sum_a - largest).exp(), (log_sum_b - largest).exp()
    total = sum_a + sum_b
    share_a = rearrange(sum_a / total, "queries -> queries 1")
    return share_a * context_a + (1 - share_a) * context_b, largest + total.log()


def _column(numbers):
    return rearrange(numbers, "queries -> queries 1")


def _share(log_sum_a, log_sum_b):
    return _column((log_sum_a - torch.logaddexp(log_sum_a, log_sum_b)).exp())


def reference(context_a, log_sum_a, context_b, log_sum_b):
    share = _share(log_sum_a, log_sum_b)
    return share * context_a + (1 - share) * context_b, torch.logaddexp(log_sum_a, log_sum_b)


def _blocks(random):
    places = torch.tensor([0.0, 0.0, 1500.0, 1500.0, -1500.0, 0.0, 900.0][: drawn(random, 5, 7)], dtype=torch.float64)
    contexts = torch.randn(2, len(places), drawn(random, 3, 4), generator=random, dtype=torch.float64)
    log_sums = 1.5 + torch.rand(2, len(places), generator=random, dtype=torch.float64) + places
    return contexts[0], log_sums[0], contexts[1], log_sums[1] + 0.7


exercise = Exercise(
    id="efficient.merge_blocks",
    title="Two halves made one",
    statement="""
Two workers have taken half of the keys each. Each hands you, for every query, its finished context $y$ (already divided
by its own sum) and the logarithm of its sum of exponentials, $L = \\log \\sum_j e^{s_j}$. Give the context over *all*
keys, and its $L$. Scores may be in the hundreds or thousands, so that $e^L$ is no number.

This is how long caches are read by many processors at once, and how texts are spread over several machines.
""".strip(),
    reference=reference,
    solution=merge_blocks,
    explanation="""
The total sum is $e^{L_a} + e^{L_b}$, and each context counts by its share of it. Subtracting the larger of the two
logarithms first leaves the shares as they are and keeps every exponential at most one. The merge is symmetric and
associative: blocks may be merged in any order, and in a tree.
""".strip(),
    cases=(Case(name="scores of a few units for some queries, in the thousands for others", inputs=_blocks, points=2),),
    hints="""
Each context is a numerator divided by a sum. You know the sums: what were the numerators?

The merged context is a weighted mean of the two. By what shares?

Subtract the larger of the two logarithms from both, take exponentials, and divide by their sum.
""",
    difficulty=2,
    minutes=20,
    section="11-efficient",
)

exercise.mutations("""
plain_mean: "share_a * context_a + (1 - share_a) * context_b" -> "(context_a + context_b) / 2"
    You take the mean of both contexts. A block whose scores were higher has to count more.
plain_sum: "share_a * context_a + (1 - share_a) * context_b" -> "context_a + context_b"
    You add two finished contexts. Each is a mean already; what is the mean of both?
by_logarithm: "sum_a / total" -> "log_sum_a / (log_sum_a + log_sum_b)"
    Your shares are in proportion to the logarithms. The sums themselves are what counts.
swapped: "share_a * context_a + (1 - share_a) * context_b" -> "share_a * context_b + (1 - share_a) * context_a"
    Each context got the share of the other block.
not_divided: "share_a * context_a + (1 - share_a) * context_b" ->
  "sum_a[:, None] * context_a + sum_b[:, None] * context_b"
    Your two factors do not sum to one: the exponentials still have to be divided by their sum.
overflows: "torch.maximum(log_sum_a, log_sum_b)" -> "torch.zeros_like(log_sum_a)"
    Right for small scores. With scores in the thousands the exponential of a logarithm is infinite.
logarithms_added: "largest + total.log()" -> "log_sum_a + log_sum_b"
    The context is right. Adding logarithms multiplies the sums, and they should be added.
larger_logarithm: "largest + total.log()" -> "largest"
    The context is right. Your logarithm is that of the larger block; the other adds something.
without_the_largest: "largest + total.log()" -> "total.log()"
    The context is right. You subtracted the larger logarithm and did not give it back at the end.
sum_itself: "largest + total.log()" -> "(largest + total.log()).exp()"
    The context is right. The second result should be the logarithm of the sum, not the sum.
larger_block_alone: "sum_a / total" -> "(log_sum_a > log_sum_b).double()"
    You keep one block and drop the other. The smaller sum still has its share.
""")


@exercise.must_hold("It should not matter which block comes first.")
def order(trial: Trial) -> str | None:
    context_a, log_sum_a, context_b, log_sum_b = trial.inputs
    other = trial.run(context_b, log_sum_b, context_a, log_sum_a)
    if torch.allclose(trial.value[0], other[0]) and torch.allclose(trial.value[1], other[1]):
        return None
    return "I exchanged the two blocks, and the result changed."


@exercise.must_hold("A weighted mean lies between what it is a mean of.")
def between(trial: Trial) -> str | None:
    low, high = torch.minimum(trial.inputs[0], trial.inputs[2]), torch.maximum(trial.inputs[0], trial.inputs[2])
    outside = ((trial.value[0] < low - 1e-6) | (trial.value[0] > high + 1e-6)).any()
    return "A number of your context lies outside of the two that it is blended from." if outside else None
