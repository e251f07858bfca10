"""Exercise: train one head, with the scale and without."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def train_head(
    words: Float[Tensor, "texts tokens d_model"],
    targets: Float[Tensor, "texts tokens d_model"],
    w_query: Float[Tensor, "d_head d_model"],
    w_key: Float[Tensor, "d_head d_model"],
    scale: float,
    rate: float,
    n_steps: int,
) -> Float[Tensor, " steps"]:
    """The loss before each step of gradient descent on the two matrices of a head whose values are the words."""
    w_query, w_key = w_query.clone().requires_grad_(), w_key.clone().requires_grad_()
    losses = []
    for _ in range(n_steps):
        scores = scale * (words @ w_query.T) @ (words @ w_key.T).mT
        loss = (scores.softmax(dim=-1) @ words - targets).square().mean()
        losses.append(loss.detach())
        d_query, d_key = torch.autograd.grad(loss, (w_query, w_key))
        with torch.no_grad():
            w_query -= rate * d_query
            w_key -= rate * d_key
    return torch.stack(losses)


def reference(words, targets, w_query, w_key, scale, rate, n_steps):
    """By PyTorch's own optimiser."""
    matrices = [torch.nn.Parameter(weight.clone()) for weight in (w_query, w_key)]
    optimizer, losses = torch.optim.SGD(matrices, lr=rate), []
    for _ in range(n_steps):
        query, key = (words @ matrix.T for matrix in matrices)
        context = torch.nn.functional.scaled_dot_product_attention(query, key, words, scale=scale)
        loss = torch.nn.functional.mse_loss(context, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=words.dtype)


def _texts(random, *, is_scaled):
    """Texts of random words; the targets are what a head with other matrices gives."""
    d_head, d_model = drawn(random, 8, 11), drawn(random, 14, 17)
    words = torch.randn(drawn(random, 3, 4), drawn(random, 5, 7), d_model, generator=random, dtype=torch.float64)
    matrices = torch.randn(4, d_head, d_model, generator=random, dtype=torch.float64) / 4
    w_query, w_key, right_query, right_key = matrices.unbind()
    scores = d_head**-0.5 * (words @ right_query.T) @ (words @ right_key.T).mT
    scale, rate = d_head**-0.5 if is_scaled else 1.0, drawn(random, 4, 7) / 10
    return words, scores.softmax(dim=-1) @ words, w_query, w_key, scale, rate, drawn(random, 4, 6)


exercise = Exercise(
    id="attention.train_head",
    title="A head learns, with the scale and without",
    statement="""
Train one head. Its values are the words themselves; only `w_query` and `w_key` learn, stored as in `nn.Linear`. At each
step take the scores of all texts, times `scale`, blend the words by the weights, and take the mean squared difference
from `targets`. Then move both matrices against their gradients, by `rate` times the gradient. Return the loss before
each of `n_steps` steps. The matrices that you are given stay as they are.

Then call it with `scale` $= 1/\\sqrt{d_\\mathrm{head}}$ and with 1, from the same matrices, at several rates, and draw
the losses. Predict first: at which start are more rows of weights nearly all on one word, and what gradient do such
rows send back?
""".strip(),
    reference=reference,
    solution=train_head,
    explanation="""
The scale changes two things. At the start it keeps the weights spread out; a row that has nearly all its weight on one
word sends back nearly no gradient, right or wrong. And it stands in every gradient as a factor, so that one rate means
longer steps without it. Compare the two at the best rate of each, not at one rate for both, and from several starts.
""".strip(),
    cases=(
        Case(name="one over the root of d_head", inputs=lambda random: _texts(random, is_scaled=True)),
        Case(name="no scale, which is a scale of one", inputs=lambda random: _texts(random, is_scaled=False)),
    ),
    hints=r"""
Which of the tensors learn, and which gradients do you need? What must happen to the loss before it goes into your list?

Copy both matrices and let them require gradients. In each step: scores, weights, blend, loss; then
`torch.autograd.grad(loss, (w_query, w_key))`, and the two subtractions without a graph.

`scale * (words @ w_query.T) @ (words @ w_key.T).mT` are the scores of all texts. Put `loss.detach()` into the list
before the step, move the matrices inside `torch.no_grad()`, and stack the list at the end.
""",
    forbids=("SGD",),
    difficulty=2,
    minutes=25,
    section="02-attention",
)

exercise.mutations(r"""
no_scale: "scale * " -> ""
    Right for a scale of 1. `scale` has no effect on your scores.
always_scaled: "scale * " -> "w_query.shape[0] ** -0.5 * "
    Your scores always have the scale of the paper, so the two trainings are one and the same. Use the argument.
divided_by_scale: "scale * " -> "1 / scale * "
    You divide by `scale`. It is a factor already: $1/\sqrt{d_\mathrm{head}}$, or 1.
uphill: "w_query -=" -> "w_query +=", "w_key -=" -> "w_key +="
    Your loss climbs. A step goes against the gradient.
queries_alone: "            w_key -= rate * d_key\n" -> ""
    Only the matrix of the queries learns. Which other one should?
keys_alone: "            w_query -= rate * d_query\n" -> ""
    Only the matrix of the keys learns. Which other one should?
rate_ignored: "rate * d_query" -> "d_query", "rate * d_key" -> "d_key"
    Your steps do not depend on `rate`.
summed: "mean()" -> "sum()"
    Your loss is a sum, so loss and steps grow with the number of words. Take the mean.
over_the_queries: "dim=-1" -> "dim=1"
    Your softmax runs over the queries. Each query shares out its weight among the words that it looks at.
one_step_late: "range(n_steps)" -> "range(n_steps + 1)", "stack(losses)" -> "stack(losses[1:])"
    Your list begins one step late. The first number is the loss before anything has been learned.
never_moves: "w_query -= rate" -> "w_query - rate", "w_key -= rate" -> "w_key - rate"
    The loss stays what it is: you compute the new matrices and do not keep them.
matrices_changed: "w_query.clone()" -> "w_query", "w_key.clone()" -> "w_key"
    Your losses are right, and the matrices that you were given have changed: the second training would begin where the
    first one ended. Work on copies.
""")


@exercise.must_hold("The first number is the loss of the head as it is given, before any step.")
def begins_before_learning(trial: Trial) -> str | None:
    words, targets, w_query, w_key, scale, _, _ = trial.inputs
    weights = (scale * (words @ w_query.T) @ (words @ w_key.T).mT).softmax(dim=-1)
    right = (weights @ words - targets).square().mean().item()
    first = trial.value[0].item()
    return None if abs(first - right) < 1e-6 * right else f"Yours begins at {first:.4g}, not at {right:.4g}."


@exercise.must_hold("With a rate of 0 nothing is learned, and the loss stays as it is.")
def stands_still_at_rate_zero(trial: Trial) -> str | None:
    *others, _, n_steps = trial.inputs
    losses = trial.run(*others, 0.0, n_steps)
    return None if (losses - losses[0]).abs().max() < 1e-9 else f"At a rate of 0 your loss goes to {losses[-1]:.4g}."
