"""Exercise: how much a head looks at what followed the last time."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def twin_score(
    weights: Float[Tensor, "heads tokens tokens"], token_ids: Int[Tensor, " tokens"]
) -> Float[Tensor, " heads"]:
    """The mean weight on the one token that followed the latest earlier occurrence of the query's token."""
    landed = []
    for query, token in enumerate(token_ids.tolist()):
        earlier = (token_ids[:query] == token).nonzero()[:, 0]
        if len(earlier):
            landed.append(weights[:, query, earlier[-1] + 1])
    return torch.stack(landed).mean(dim=0)


def reference(weights, token_ids):
    ids = token_ids.tolist()
    twins = [(query, [place for place in range(query) if ids[place] == token]) for query, token in enumerate(ids)]
    return torch.stack([weights[:, query, places[-1] + 1] for query, places in twins if places]).mean(dim=0)


def _text(random):
    ids = torch.tensor([4, 1, 4, 2, 6, 4, 2, 1, 4, 6, 3, 2, 1, 5][: drawn(random, 12, 14)])
    names = torch.randperm(20, generator=random)
    scores = 2 * torch.randn(drawn(random, 2, 4), len(ids), len(ids), generator=random, dtype=torch.float64)
    future = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(dim=-1), names[ids]


exercise = Exercise(
    id="inside.twin_score",
    title="A stricter score for induction",
    statement="""
`ttutor.inside.induction_score` gives a head credit for looking at what follows *any* earlier occurrence of the present
token. Write a stricter one. Only the key right after the *latest* earlier occurrence counts. The score of a head is the
mean of that weight over the queries whose token has occurred before; other queries do not count. `weights` are those of
a causal model on one text.
""".strip(),
    reference=reference,
    solution=twin_score,
    explanation="""
Both scores are right for what they say. On blocks that repeat several times, a head that spreads over all earlier
successors has a high lenient score and a low strict one, though either way it copies the right token. In text, where
"the" is followed by many things, a head that averages over all successors and one that takes the latest do different
work. A score is a definition, and a head can be "an induction head" by one and not by another.
""".strip(),
    cases=(Case(name="a text in which some tokens occur four times", inputs=_text),),
    hints="""
Take one query. Which keys hold the same token, and which of these comes last before the query?

Go through the queries; look for the latest equal token before each; the wanted key is one further.

Collect one weight per head for each query that has such a key, and average over these queries.
""",
    forbids=("induction_score", "weight_on"),
    difficulty=2,
    minutes=20,
    section="12-inside",
)

exercise.mutations(r"""
first_twin: "earlier[-1]" -> "earlier[0]"
    You take the first earlier occurrence. The exercise asks for the latest.
all_twins: "earlier[-1] + 1]" -> "earlier + 1].sum(dim=1)"
    You add up the weight after every earlier occurrence: that is the lenient score.
the_twin_itself: "earlier[-1] + 1" -> "earlier[-1]"
    You look at the twin itself. What would a model copy from there?
before_the_twin: "earlier[-1] + 1" -> "earlier[-1] - 1", "if len(earlier):" -> "if len(earlier) and earlier[-1]:"
    You look one token before the twin. Time runs the other way.
over_all_queries: "return" -> "landed += [torch.zeros_like(landed[0])] * (len(token_ids) - len(landed))\n    return"
    Queries without an earlier twin count as zero with you. They should not count at all.
not_divided: ".mean(dim=0)" -> ".sum(dim=0)"
    You have a sum over the queries, not a mean.
the_future: "query, earlier[-1] + 1]" -> "earlier[-1] + 1, query]"
    You read weights on later tokens, which are all zero here. Either rows and columns are swapped (queries are rows),
    or a token counts as its own earlier occurrence.
mean_over_heads: ".mean(dim=0)" -> ".mean().expand(len(weights)).clone()"
    All heads get the same score from you. Which axis did you average over besides the queries?
share_of_hits: "weights[:, query, earlier[-1] + 1]" ->
  "(weights[:, query].argmax(dim=-1) == earlier[-1] + 1).to(weights.dtype)"
    You count how often the wanted key has the largest weight. The exercise asks for the weight.
""")


@exercise.like("the_future")
def counts_itself(weights, token_ids):
    n, landed = len(token_ids), []
    for query in range(n - 1):
        landed.append(weights[:, query, query + 1])
    return torch.stack(landed).mean(dim=0)


@exercise.mistake("You look back by one fixed distance. These tokens do not repeat with a period.")
def fixed_distance(weights, token_ids):
    ids = token_ids.tolist()
    query = next(place for place, token in enumerate(ids) if token in ids[:place])
    period = query - ids.index(ids[query])
    keys = [(place, place - period + 1) for place in range(period, len(ids))]
    return torch.stack([weights[:, place, key] for place, key in keys]).mean(dim=0)


@exercise.must_hold("A mean of single weights lies between 0 and 1.")
def at_most_one(trial: Trial) -> str | None:
    largest, smallest = trial.value.max().item(), trial.value.min().item()
    return (
        None
        if smallest >= -1e-9 and largest <= 1 + 1e-9
        else f"Your scores reach from {smallest:.3g} to {largest:.3g}."
    )


@exercise.must_hold("A head that puts everything on the wanted key should score 1.")
def perfect_head(trial: Trial) -> str | None:
    _, token_ids = trial.inputs
    ids = token_ids.tolist()
    weights = torch.zeros(2, len(ids), len(ids), dtype=torch.float64)
    weights[:, :, 0] = 1.0
    for query, token in enumerate(ids):
        earlier = [place for place in range(query) if ids[place] == token]
        if earlier:
            weights[0, query] = 0.0
            weights[0, query, earlier[-1] + 1] = 1.0
    best = trial.run(weights, token_ids)[0].item()
    return None if abs(best - 1) < 1e-9 else f"A head that always looks at the wanted key scores {best:.3g} with you."


@exercise.must_hold("Only which tokens are equal should matter.")
def names(trial: Trial) -> str | None:
    weights, token_ids = trial.inputs
    off = (trial.run(weights, 7 * token_ids + 3) - trial.value).abs().max().item()
    return None if off < 1e-9 else f"Other names for the same tokens move your scores by {off:.3g}."
