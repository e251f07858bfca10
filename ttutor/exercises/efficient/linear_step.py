"""Exercise: one step of linear attention as a recurrence."""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import elu

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def linear_step(
    summed: Float[Tensor, "features d_value"],
    normaliser: Float[Tensor, " features"],
    query: Float[Tensor, " features"],
    key: Float[Tensor, " features"],
    value: Float[Tensor, " d_value"],
) -> tuple[Float[Tensor, " d_value"], Float[Tensor, "features d_value"], Float[Tensor, " features"]]:
    """What the new token receives, and both sums with the new token in them."""
    asked, written = elu(query) + 1, elu(key) + 1
    summed = summed + einsum(written, value, "features, d_value -> features d_value")
    normaliser = normaliser + written
    return asked @ summed / (asked @ normaliser), summed, normaliser


def reference(summed, normaliser, query, key, value):
    asked, written = elu(query) + 1, elu(key) + 1
    summed, normaliser = summed + torch.outer(written, value), normaliser + written
    return (asked[:, None] * summed).sum(dim=0) / (asked * normaliser).sum(), summed, normaliser


def _inputs(random):
    n_before, n_features, d_value = drawn(random, 3, 4), drawn(random, 5, 7), drawn(random, 2, 3)
    keys = torch.randn(n_before, n_features, generator=random, dtype=torch.float64)
    values = torch.randn(n_before, d_value, generator=random, dtype=torch.float64)
    features = elu(keys) + 1
    query, key = torch.randn(2, n_features, generator=random, dtype=torch.float64)
    value = torch.randn(d_value, generator=random, dtype=torch.float64)
    return features.T @ values, features.sum(dim=0), query, key, value


exercise = Exercise(
    id="efficient.linear_step",
    title="One token more",
    statement="""
Write one step of causal linear attention for a single head, with the features $\\phi(x) = \\mathrm{elu}(x) + 1$. You
are given the two sums over all earlier tokens, $H = \\sum_j \\phi(k_j)\\,v_j^\\top$ (`summed`) and $z = \\sum_j
\\phi(k_j)$ (`normaliser`), and query, key and value of the new token, without features yet. A token sees itself.
Return what it receives, and both sums as the next step needs them.
""".strip(),
    reference=reference,
    solution=linear_step,
    explanation="""
Write first, read afterwards: a token sees itself. The state has `features` times `d_value` plus `features` numbers,
whatever came before, and a step does the same work for the millionth token as for the first. With empty sums the first
token receives its own value, which is a good test of the order.
""".strip(),
    cases=(Case(name="a few features, and a few tokens before", inputs=_inputs, points=2),),
    hints="""
Which sum belongs to the numerator, which to the denominator? Does the new token belong to them?

Take the features of key and query. The key's go into both sums, the query's read both.

Add the outer product of the key's features and the value to `summed`, and the features to `normaliser`; then divide one
product with the query's features by the other.
""",
    forbids=("linear_attention", "linear_attention_recurrent"),
    difficulty=2,
    minutes=20,
    section="11-efficient",
)

exercise.mutations(r"""
no_features: "elu(query) + 1, elu(key) + 1" -> "query, key"
    You use query and key as they are. Without features a weight can be negative.
raw_query: "elu(query) + 1" -> "query"
    The state is right. The query needs its features too.
raw_key: "elu(key) + 1" -> "key"
    You read with features and write without. Both sides of the product go through the same map.
without_one: "elu(query) + 1, elu(key) + 1" -> "elu(query), elu(key)"
    Your features can be negative: what is added to elu so that they are not?
exponentials: "elu(query) + 1, elu(key) + 1" -> "query.exp(), key.exp()"
    Your features are exponentials. elu + 1 is that only below zero.
relu_plus_one: "elu(query) + 1, elu(key) + 1" -> "query.relu() + 1, key.relu() + 1"
    Right for positive numbers. Below zero elu + 1 still falls, and yours is constant.
reads_before_writing: "summed = summed" -> "context = asked @ summed / (asked @ normaliser)\n    summed = summed",
  "return asked @ summed / (asked @ normaliser)" -> "return context"
    The state is right, and you read it before the new token was in. A token sees itself.
old_normaliser: "(asked @ normaliser)" -> "(asked @ (normaliser - written))"
    Your numerator has the new token in it and your denominator has not.
not_divided: " / (asked @ normaliser)" -> ""
    The state is right. What you hand out is a sum of values, not yet a mean.
forgets: "summed + einsum" -> "einsum", "normaliser + written" -> "written"
    Your state holds the new token alone. What of the earlier ones?
not_handed_on: "), summed, normaliser" -> "), summed - written[:, None] * value, normaliser - written"
    The context is right. The state that you return is the old one: the next step misses this token.
normaliser_not_handed_on: "), summed, normaliser" -> "), summed, normaliser - written"
    Context and `summed` are right. The `normaliser` that you return lacks the new token.
writes_the_query: "elu(query) + 1, elu(key) + 1" -> "elu(key) + 1, elu(query) + 1"
    Query and key have changed places: the key is what is written.
divided_by_all: "(asked @ normaliser)" -> "normaliser.sum()"
    You divide by the sum of the normaliser's entries. Each of them counts by the query's feature.
""")


@exercise.must_hold("The first token of a text sees only itself and receives its own value.")
def first_token(trial: Trial) -> str | None:
    summed, normaliser, query, key, value = trial.inputs
    context = trial.run(torch.zeros_like(summed), torch.zeros_like(normaliser), query, key, value)[0]
    if torch.allclose(context, value, atol=1e-9):
        return None
    return "I began with empty sums, and the first token did not receive its own value."


@exercise.must_hold("A weighted mean of equal values is that value.")
def constant_values(trial: Trial) -> str | None:
    summed, normaliser, query, key, value = trial.inputs
    sevens = 7 * normaliser[:, None].expand_as(summed)
    context = trial.run(sevens.clone(), normaliser, query, key, torch.full_like(value, 7.0))[0]
    if torch.allclose(context, torch.full_like(value, 7.0)):
        return None
    return f"All values so far were 7, and the new one too, and your token received {context[0].item():.3g}."
