"""Exercise: the router of a mixture of experts."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def expert_shares(scores: Float[Tensor, "tokens experts"], n_chosen: int) -> Float[Tensor, "tokens experts"]:
    """By how much each expert's answer counts for each token; 0 for those that the token does not visit."""
    best, chosen = scores.topk(n_chosen, dim=-1)
    shares = best.softmax(dim=-1)
    return torch.zeros_like(scores).scatter(-1, chosen, shares)


def reference(scores, n_chosen):
    threshold = scores.sort(dim=-1, descending=True).values[:, n_chosen - 1 : n_chosen]
    return scores.masked_fill(scores < threshold, float("-inf")).softmax(dim=-1)


def _scores(generator):
    return torch.randn(drawn(generator, 8, 11), drawn(generator, 5, 7), generator=generator) - 1, drawn(generator, 2, 4)


exercise = Exercise(
    id="variants.expert_shares",
    title="Two experts of eight",
    statement="""
In a mixture of experts each token visits only a few of many feed-forward networks. A router has given every expert a
score for every token. Of each token's scores keep the `n_chosen` highest and turn these into shares by a softmax, as
Mixtral does. Return the shares in a table of the same size as the scores, with 0 for every expert that the token does
not visit.
""".strip(),
    reference=reference,
    solution=expert_shares,
    explanation="""
The softmax is taken over the chosen scores alone, so that the shares of a token sum to one whatever the others score.
The same comes of a softmax over all experts whose chosen entries are divided by their sum. The zeros are the point: an
expert with share 0 need not be run for that token, and a model with many experts costs as much as one with few.
""".strip(),
    cases=(Case(name="a few of several experts", inputs=_scores, points=2),),
    hints="""
Which axis holds the experts of one token? What should the shares of a token sum to?

`topk` gives the highest scores of each row and where they stood. Over which numbers do you take the softmax?

Softmax over what `topk` returns, then `scatter` those shares into a table of zeros.
""",
    forbids=("Router",),
    difficulty=1,
    minutes=15,
    section="09-variants",
)

exercise.mutations("""
softmax_over_all: "best.softmax(dim=-1)" -> "scores.softmax(dim=-1).gather(-1, chosen)"
    You take the softmax over all experts and keep a part of it: the shares of a token sum to less than one. Which
    scores should compete?
lowest: "topk(n_chosen, dim=-1)" -> "topk(n_chosen, dim=-1, largest=False)"
    Your tokens visit the experts with the lowest scores.
equal_shares: "best.softmax(dim=-1)" -> "torch.full_like(best, 1 / n_chosen)"
    All chosen experts count the same. The router's scores say how much each should count, and learn by that.
only_the_best: "topk(n_chosen, dim=-1)" -> "topk(1, dim=-1)"
    Each token visits one expert, whatever `n_chosen` is.
scores_as_shares: "best.softmax(dim=-1)" -> "best"
    You return the scores of the chosen experts. Scores can be negative, and do not sum to one: what turns them into
    shares?
sigmoid: "best.softmax(dim=-1)" -> "best.sigmoid()"
    Your shares do not compete: each comes from its own score, as a sigmoid does. Some routers do that; here those of a
    token sum to one.
softmax_over_tokens: "best.softmax(dim=-1)" -> "best.softmax(dim=0)"
    Your softmax runs down the column, over tokens. The shares of one *token* should sum to one.
shares_in_order: "chosen, shares" -> "torch.arange(n_chosen).expand_as(chosen), shares"
    The shares stand in the first columns, in the order of their size. To which expert does each belong?
""")


@exercise.mistake(
    "You take the highest scores of each expert, not of each token: some tokens visit none. (There are models in which "
    "experts choose their tokens.) Over which axis do you choose?"
)
def experts_choose(scores, n_chosen):
    best, chosen = scores.topk(n_chosen, dim=0)
    return torch.zeros_like(scores).scatter(0, chosen, best.softmax(dim=0))


@exercise.must_hold("The shares of a token should sum to one.")
def sums_to_one(trial: Trial) -> str | None:
    sums = trial.value.sum(dim=-1)
    worst = sums[(sums - 1).abs().argmax()].item()
    return None if abs(worst - 1) < 1e-4 else f"Those of one token sum to {worst:.3g}."


@exercise.must_hold("Each token should visit as many experts as it may choose.")
def n_visited(trial: Trial) -> str | None:
    visited = (trial.value != 0).sum(dim=-1)
    off = visited != trial.inputs[1]
    return f"One visits {int(visited[off][0])}, not {trial.inputs[1]}." if off.any() else None
