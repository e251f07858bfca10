"""Exercise: find the bug in a mask that hides well, until the scores have grown."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def outgrown_mask(
    scores: Float[Tensor, "queries keys"], may_attend: Bool[Tensor, "queries keys"]
) -> Float[Tensor, "queries keys"]:
    """A colleague's attention weights: keys that a query may not attend to get none."""
    penalty = -10_000.0 * ~may_attend
    return (scores + penalty).softmax(dim=-1)


def solution(
    scores: Float[Tensor, "queries keys"], may_attend: Bool[Tensor, "queries keys"]
) -> Float[Tensor, "queries keys"]:
    """Attention weights that leave out a hidden key whatever its score."""
    return scores.masked_fill(~may_attend, -torch.inf).softmax(dim=-1)


def reference(scores, may_attend):
    weights = torch.zeros_like(scores)
    for row, (score, seen) in enumerate(zip(scores, may_attend, strict=True)):
        weights[row, seen] = score[seen].softmax(dim=0)
    return weights


def _scores(random):
    """Rows of scores that grow from ordinary ones to ten thousand million; each query may see three keys or more."""
    n_queries, n_keys = drawn(random, 5, 6), drawn(random, 7, 9)
    size = torch.logspace(0, 10, n_queries, dtype=torch.float64)[:, None]
    scores = torch.randn(n_queries, n_keys, generator=random, dtype=torch.float64)
    order = torch.rand(n_queries, n_keys, generator=random).argsort(dim=-1).argsort(dim=-1)
    may_attend = order < drawn(random, 3, 5)
    # What is seen lies close together and far below what is hidden, as where a stream has grown.
    return torch.where(may_attend, scores - size, scores + size), may_attend


exercise = Exercise(
    id="attention.outgrown_mask",
    title="The mask that was outgrown",
    statement="For weeks a colleague's model is right: the weight of a hidden key is zero to the last bit. Then its "
    "activations grow, and sentences begin to depend on words that they may not see. Find out *by experiment* from "
    "which scores on it happens, and mend it: a hidden key gets no weight, whatever the scores are. Each query may "
    "attend to at least one key.",
    stub=outgrown_mask,
    reference=reference,
    solution=solution,
    explanation="Ten thousand is far below scores of ten, and nothing beside scores of twenty thousand: the softmax "
    "knows differences alone. A larger number only moves the day; minus infinity stays below every score. (A row in "
    "which nothing may be seen would then be zero divided by zero. That case needs a decision of its own: the "
    "package's attention gives zeros.)",
    cases=(Case(name="scores of one to ten thousand million", inputs=_scores),),
    hints="""
Take three scores, hide the third key, and let its score grow tenfold, again and again. When does its weight
leave zero?

Is there a number that is below *every* score, and stays there whatever is added to it?

Do not add to a hidden score: replace it, by `-torch.inf`, before the softmax.
""",
    forbids=("scaled_dot_product_attention",),
    difficulty=1,
    minutes=10,
    section="02-attention",
)

exercise.mutations(r"""
larger_penalty: "scores.masked_fill(~may_attend, -torch.inf)" -> "(scores - 1e9 * ~may_attend)"
or: "-torch.inf" -> "-1e9"
    A larger number moves the day on which it fails. Which number is below every score?
not_a_number: "scores.masked_fill(~may_attend, -torch.inf)" -> "(scores - torch.inf * ~may_attend)"
    Zero times infinity is no number, and it spreads over every row. Choose between two values instead of multiplying.
multiplied: "scores.masked_fill(~may_attend, -torch.inf)" -> "(scores * may_attend)"
or: "-torch.inf" -> "0.0"
    A score of zero is an ordinary score: the softmax gives it weight, here nearly all of it.
cut_afterwards: ".masked_fill(~may_attend, -torch.inf).softmax(dim=-1)" -> ".softmax(dim=-1) * may_attend"
    You take the weight away after the softmax: what is left no longer sums to one, and may be nothing at all.
turned_round: "~may_attend" -> "may_attend"
    It is the other way round: you hide what may be seen.
clamped: "scores.masked_fill" -> "scores.clamp(-9_000, 9_000).masked_fill"
    You cut the scores off: keys that may be seen become equal. It is the mask that has to give way, not the scores.
over_queries: "softmax(dim=-1)" -> "softmax(dim=0).nan_to_num()"
    Your weights sum to one over the queries. Each query shares out one unit over its keys.
""")


@exercise.mistake(
    "After the softmax the seen keys may have nothing left that could be shared out anew: a hidden one has taken it "
    "all. Hide before."
)
def shared_out_anew(scores, may_attend):
    weights = scores.softmax(dim=-1) * may_attend
    return (weights / weights.sum(dim=-1, keepdim=True)).nan_to_num()


@exercise.must_hold("Whatever a hidden key's score is, no weight may change by it. Let it grow.")
def hidden_scores_do_not_matter(trial: Trial) -> str | None:
    scores, may_attend = trial.inputs
    came = trial.run(torch.where(may_attend, scores, scores + 1e12), may_attend)
    off = (came - trial.value).abs().max().item()
    return None if off < 1e-9 else f"With larger scores of the hidden keys a weight moves by up to {off:.2g}."
