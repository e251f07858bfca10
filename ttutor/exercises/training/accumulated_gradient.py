"""Exercise: find the bug in gradients that are added up over the parts of a batch."""

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def accumulated_gradient(
    output_weight: Float[Tensor, "vocab_size d_model"],
    parts: list[tuple[Float[Tensor, "positions d_model"], Int[Tensor, " positions"]]],
) -> Float[Tensor, "vocab_size d_model"]:
    """A colleague's gradient of the loss per real token (padding has the id 0), one part of the batch after another."""
    weight = output_weight.detach().requires_grad_()
    for hidden, targets in parts:
        logits = einsum(hidden, weight, "positions d_model, vocab_size d_model -> positions vocab_size")
        loss = F.cross_entropy(logits, targets, ignore_index=0)
        (loss / len(parts)).backward()
    return weight.grad


def solution(
    output_weight: Float[Tensor, "vocab_size d_model"],
    parts: list[tuple[Float[Tensor, "positions d_model"], Int[Tensor, " positions"]]],
) -> Float[Tensor, "vocab_size d_model"]:
    """The gradient of the loss per real token (padding has the id 0), one part of the batch after another."""
    weight = output_weight.detach().requires_grad_()
    n_real = sum(int((targets != 0).sum()) for _, targets in parts)
    for hidden, targets in parts:
        logits = einsum(hidden, weight, "positions d_model, vocab_size d_model -> positions vocab_size")
        loss = F.cross_entropy(logits, targets, ignore_index=0, reduction="sum")
        (loss / n_real).backward()
    return weight.grad


def reference(output_weight, parts):
    """All parts at once."""
    hidden, targets = (torch.cat(side) for side in zip(*parts, strict=True))
    weight = output_weight.detach().requires_grad_()
    return torch.autograd.grad(F.cross_entropy(hidden @ weight.T, targets, ignore_index=0), weight)[0]


def _parts(random):
    """Parts of unequal length, each with its own amount of padding."""
    parts, d_model, vocab_size = [], drawn(random, 5, 6), drawn(random, 11, 14)
    sizes = ((4, 3), (drawn(random, 9, 12), 7), (2, 2), (6, 5), (5, 4))
    for n_positions, n_real in sizes[: drawn(random, 3, 5)]:
        hidden = 2 * torch.randn(n_positions, d_model, generator=random, dtype=torch.float64)
        targets = torch.randint(1, vocab_size, (n_positions,), generator=random)
        targets[n_real:] = 0
        parts.append((hidden, targets))
    return torch.randn(vocab_size, d_model, generator=random, dtype=torch.float64), parts


exercise = Exercise(
    id="training.accumulated_gradient",
    title="Find the bug: small batches added up",
    statement="""A batch that does not fit into memory can be cut into parts whose gradients are added up before one
step (**gradient accumulation**). A colleague's version, below, has no model but its last layer, so that you can see
everything: hidden vectors times the output weight are the logits. The losses look right, the training works, but
slightly worse than with the large batch, and the more the parts differ in length, the worse. What is wrong? Repair it,
and show that your version gives the gradient of the large batch.""",
    stub=accumulated_gradient,
    reference=reference,
    solution=solution,
    explanation="It is a mean of means: each part weighs the same, however many real tokens it has, so a token "
    "of a small part weighs more than one of a large part. Count the real tokens of all parts first, add up "
    "sums, and divide by the count; or weight each part's mean by its share of the real tokens.",
    cases=(Case(name="a few parts of different sizes", inputs=_parts),),
    hints="""
Try two parts: one with a single short sentence, one with many long ones. How much does a token of each weigh?

`F.cross_entropy` gives a mean over the real tokens of its part. A mean of means is the mean of all only if ...

Weight each part's mean by its share of the real tokens, or ask for sums with `reduction` and divide by the number of
real tokens of all parts, which has to be known before the first.
""",
    difficulty=2,
    minutes=20,
    section="08-training",
)

exercise.mutations(r"""
mean_of_means: ', reduction="sum"' -> "", "(loss / n_real)" -> "(loss / len(parts))"
    Still a mean of means: each part weighs the same, so a token of a small part weighs more than one of a large part.
    What should each part's mean be multiplied by?
means_added: ', reduction="sum"' -> "", "(loss / n_real)" -> "loss"
    You add the means up. With three parts the gradient is about three times too long, and small parts still count too
    much.
not_divided: "(loss / n_real)" -> "loss"
    Every token weighs the same now, and the length is wrong: this is the gradient of the sum. By what is it divided,
    once, for all parts together?
divided_by_parts: "(loss / n_real)" -> "(loss / len(parts))"
    Every token weighs the same now, and the length is wrong: you divide by the number of parts, and the loss is counted
    per token.
divided_by_cells: "int((targets != 0).sum())" -> "len(targets)"
    The direction is right and the length is not: your divisor counts the padding, so more padding would give a smaller
    step.
weighted_by_cells: ', reduction="sum"' -> "", "int((targets != 0).sum())" -> "len(targets)",
  "(loss / n_real)" -> "(loss * len(targets) / n_real)"
    You weight each part by its length with padding. A part with much padding counts too much; only real tokens have a
    loss.
padding_counted: "int((targets != 0).sum())" -> "len(targets)", "ignore_index=0, " -> ""
    Your loss has a term for every cell, so it teaches the model to predict padding. Leave the padded positions out, and
    out of the count.
last_part_only: "in parts:" -> "in parts[-1:]:"
or: "in parts:" -> "in parts[-1:]:", "(loss / n_real)" -> "(loss / int((targets != 0).sum()))"
    Only the last part has any influence: the gradients of the others were thrown away or written over. They are added
    up until the step is made.
shares_turned_round: ', reduction="sum"' -> "", "(loss / n_real)" -> "(loss * (1 - int((targets != 0).sum()) / n_real))"
    The largest part weighs least: your factor is one minus the share, and should be the share.
weight_changed: "return weight.grad" -> "output_weight -= 0.1 * weight.grad\n    return weight.grad"
    The gradient is right, and the weight that you were given has moved. Accumulating makes no step.
""")


@exercise.must_hold("How the batch is cut into parts may not matter: every real token weighs the same in any of them.")
def cut_matters(trial: Trial) -> str | None:
    weight, parts = trial.inputs
    joined = [tuple(torch.cat(side) for side in zip(*parts, strict=True))]
    difference = (trial.run(weight, joined) - trial.value).abs().max() / trial.value.abs().max().clamp(min=1e-12)
    if difference < 1e-6:
        return None
    return f"I gave you the same tokens in one part, and your gradient changed by up to {difference.item():.0%}."
