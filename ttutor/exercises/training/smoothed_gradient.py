"""Exercise: the gradient of a smoothed loss by its logits."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def smoothed_gradient(
    logits: Float[Tensor, "positions vocab_size"], targets: Int[Tensor, " positions"], epsilon: float
) -> Float[Tensor, "positions vocab_size"]:
    """The gradient, by the logits, of the mean smoothed cross-entropy over all positions."""
    n_positions, vocab_size = logits.shape
    wanted = torch.full_like(logits, epsilon / vocab_size)
    wanted[torch.arange(n_positions), targets] += 1 - epsilon
    return (logits.softmax(dim=-1) - wanted) / n_positions


def reference(logits, targets, epsilon):
    logits = logits.detach().requires_grad_()
    loss = functional.cross_entropy(logits, targets, label_smoothing=epsilon)
    return torch.autograd.grad(loss, logits)[0]


def _ordinary(random):
    n_positions, vocab_size = drawn(random, 4, 6), drawn(random, 7, 9)
    logits = 2 * torch.randn(n_positions, vocab_size, generator=random, dtype=torch.float64)
    return logits, torch.randint(vocab_size, (n_positions,), generator=random), drawn(random, 5, 15) / 100


def _certain(random):
    """Logits hundreds apart and above a thousand; no row is certain of its target."""
    vocab_size = drawn(random, 7, 9)
    order = torch.stack([torch.randperm(vocab_size, generator=random) for _ in range(drawn(random, 3, 6))])
    return 300.0 * order.double(), order.argmin(dim=1), 0.3


exercise = Exercise(
    id="training.smoothed_gradient",
    title="The gradient of a smoothed loss",
    statement=r"""Derive $\partial L / \partial z_v = p_v - q_v$ for $L = -\sum_u q_u \log p_u$ with
$p = \mathrm{softmax}(z)$ and any $q$ that sums to 1. At the minimum, how far is the logit of the right token above the
others, for $\epsilon = 0.1$ and $V = 37{,}000$? What is that distance without smoothing?

Then write, without autograd, the gradient with respect to all logits. The loss is the mean over positions (none of them
is padding), and $\epsilon$ is spread over the whole vocabulary, the right token included.""",
    reference=reference,
    solution=smoothed_gradient,
    explanation=r"$L = -\sum_u q_u z_u + \big(\sum_u q_u\big) \log \sum_w e^{z_w}$, and the bracket is 1. "
    r"Differentiating by $z_v$ gives $-q_v + p_v$. At the minimum the gradient is zero, so $p = q$, and the "
    r"right token's logit stands above each other one by $\ln \frac{1 - \epsilon + \epsilon/V}{\epsilon / V} = "
    r"\ln 333{,}001 = 12.7$. Without smoothing the distance is infinite: there is no minimum, and the logits "
    r"grow for as long as the training lasts.",
    cases=(
        Case(name="a few positions", inputs=_ordinary),
        Case(name="logits above a thousand", inputs=_certain),
    ),
    hints=r"""
Write $\log p_u = z_u - \log \sum_w e^{z_w}$ before you differentiate.

$\partial \log \sum_w e^{z_w} / \partial z_v = p_v$. Where does $\sum_u q_u = 1$ come in? And for the code: how many
positions share the mean?

At the minimum $p = q$, and $z_u - z_w = \ln (p_u / p_w)$. For the code: build the smoothed target first; the rest is
the formula, with the mean taken into account.
""",
    forbids=("backward", "grad", "requires_grad_", "cross_entropy"),
    difficulty=2,
    minutes=15,
    section="08-training",
)

exercise.mutations(r"""
overflow: "logits.softmax(dim=-1)" -> "logits.exp() / logits.exp().sum(dim=-1, keepdim=True)"
    Right for ordinary logits, NaN above a thousand: $e^{1000}$ is infinite. Subtract a constant from the row, or let
    PyTorch's softmax do it.
prediction_for_probability: "logits.softmax(dim=-1)" -> "functional.one_hot(logits.argmax(dim=-1), vocab_size)"
    You subtract the target from the one token that the model would choose. The gradient holds its probabilities, all of
    them.
sign: "(logits.softmax(dim=-1) - wanted)" -> "(wanted - logits.softmax(dim=-1))"
    Every sign is the other way round: following your gradient downhill makes the right token less probable.
not_averaged: " / n_positions" -> ""
    This is the gradient of the sum over positions. The loss is their mean: what does that do to each position's share?
averaged_over_cells: "/ n_positions" -> "/ logits.numel()"
    Your gradient is too small by the size of the vocabulary: you divide by the number of cells, and the loss has one
    term for each position.
not_smoothed: "wanted = " -> "epsilon = 0.0\n    wanted = "
    Your target is one-hot; epsilon has no effect.
others_only: "epsilon / vocab_size" -> "epsilon / (vocab_size - 1)", "+= 1" -> "= 1"
    You spread epsilon over the other tokens only. Here it goes to all of them, the right one included, so each gets
    $\epsilon / V$.
epsilon_exchanged: "wanted = " -> "epsilon = 1 - epsilon\n    wanted = "
    Epsilon and $1 - \epsilon$ are exchanged: you spread most of the target, and leave the right token a tenth.
softmax_over_positions: "dim=-1" -> "dim=0"
    Your softmax runs over the positions. Each position has one distribution over the vocabulary.
log_probabilities: "softmax" -> "log_softmax"
    You subtract the target from the log-probabilities. The derivative of the log-sum is a probability.
""")


@exercise.must_hold(
    "Adding the same number to all logits of a position changes nothing, so each row of the gradient sums to 0."
)
def rows_sum_to_zero(trial: Trial) -> str | None:
    totals = trial.value.sum(dim=1)
    worst = totals.abs().argmax().item()
    if totals[worst].abs() < 1e-6:
        return None
    return f"Row {worst} of your gradient sums to {totals[worst].item():.2g}."
