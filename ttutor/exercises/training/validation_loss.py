"""Exercise: a validation that measures and leaves no trace."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.facts import fact


def validation_loss(
    model: nn.Module, batches: Iterable[object], loss: Callable[[nn.Module, object], tuple[Tensor, int]]
) -> float:
    """Return the mean loss per token of all batches, and leave the model as it was."""
    was_training = model.training
    model.eval()
    total, n_tokens = 0.0, 0
    with torch.no_grad():
        for batch in batches:
            value, n_here = loss(model, batch)
            total += value.item()
            n_tokens += n_here
    model.train(was_training)
    return total / n_tokens


def reference(model, batches, loss):
    was_training = model.training
    with torch.inference_mode():
        sums, counts = zip(*[loss(model.eval(), batch) for batch in batches], strict=True)
    model.train(was_training)
    return (torch.stack(sums).sum() / sum(counts)).item()


class Telling(nn.Module):
    """A layer whose result tells in which mode it works, and whether a graph is recorded."""

    def forward(self, hidden):
        """Make the numbers larger in training mode, and where a graph is recorded."""
        return hidden * (3.0 if self.training else 1.0) * (1.5 if torch.is_grad_enabled() else 1.0)


def observe(answer, weights, inputs, lengths, training):
    """Let an answer measure a small model on batches that come once, and say what was done on the way."""
    table = nn.Parameter(weights.clone())
    model = nn.Sequential(nn.Linear(weights.shape[1], weights.shape[0], bias=False), Telling())
    model[0].weight = table
    model.train(training)
    calls = []

    def loss(model, batch):
        calls.append((model.training, torch.is_grad_enabled()))
        return model(batch).square().sum(), len(batch)

    result = answer(model, (batch for batch in inputs.split(lengths)), loss)
    after = model(inputs)
    return {
        "the mean loss": result,
        "what the model gives afterwards": after.detach(),
        "how many batches were measured": len(calls),
        "measured in evaluation mode": not any(training for training, _ in calls),
        "measured without a graph": not any(recorded for _, recorded in calls),
        "the mode afterwards": "training" if model.training else "evaluation",
        "gradients can be computed afterwards": torch.is_grad_enabled(),
        "the weights are as they were": torch.equal(table.detach(), weights),
        "the gradient that a training gets afterwards": _gradient(after, table),
    }


def _gradient(after, table):
    """What a loss sends back to the weights, or zeros."""
    if not (after.requires_grad and table.requires_grad):
        return torch.zeros_like(table)
    (came,) = torch.autograd.grad(after.square().sum(), table, allow_unused=True)
    return torch.zeros_like(table) if came is None else came


def _batches(generator, training):
    lengths = [2, 5, 1, 3, 4][: drawn(generator, 3, 5)]
    inputs = torch.randn(sum(lengths), 4, generator=generator) * torch.arange(1, sum(lengths) + 1)[:, None]
    return torch.randn(3, 4, generator=generator), inputs, lengths, training


def _during_training(generator):
    return _batches(generator, True)


def _after_training(generator):
    return _batches(generator, False)


exercise = Exercise(
    id="training.validation_loss",
    title="Measure, and leave no trace",
    statement="""
Write the measurement of a loss on held-out text. `loss(model, batch)` gives two things: the **sum** of the losses of a
batch's tokens, as a tensor, and their number. Return the mean over all tokens of all batches, as a plain number.

Measure in evaluation mode and without recording a graph. Afterwards everything is as it was: the weights, whether
gradients are recorded, and the mode, whichever it was. The batches come from a generator, so they can be walked through
only once, and nobody knows how many there are.
""".strip(),
    reference=reference,
    solution=validation_loss,
    cases=(
        Case(name="a model in training mode", inputs=_during_training, points=2),
        Case(name="a model in evaluation mode", inputs=_after_training),
    ),
    hints="""
What is different about a forward pass in training, and what of it would spoil a measurement? What must you remember
before you change it?

Keep two running totals, losses and tokens, and divide once at the end. `with torch.no_grad():` keeps the graph from
being recorded, and is undone by itself.

Remember `model.training`; call `eval()`; in a loop under `no_grad` add up sums and counts; call `model.train(...)` with
what you remembered; divide.
""",
    properties=[
        fact(
            "the weights are as they were",
            True,
            "A measurement changes no weight: what writes to the model?",
            id="weights_stay",
        ),
        fact(
            "measured in evaluation mode",
            True,
            "Measure the model as it will be used: in evaluation mode.",
            id="evaluation_mode",
        ),
        fact(
            "how many batches were measured",
            lambda weights, inputs, lengths, training: len(lengths),
            "Each batch should be measured, and once: what does your loop walk through?",
            id="each_batch_once",
        ),
    ],
    observe=observe,
    difficulty=2,
    minutes=15,
    section="08-training",
)

exercise.mutations(r"""
mode_untouched: "    model.eval()\n" -> ""
    You measure in the mode the model happens to be in. In training mode dropout is at work, and the loss differs from
    run to run.
training_mode: "model.eval()" -> "model.train()"
    You measure in training mode, with dropout at work. A validation wants the model as it will be used.
stays_in_evaluation: "    model.train(was_training)\n" -> ""
    The model was in training mode and stays in evaluation mode: the training goes on without dropout, and nobody
    notices.
always_back_to_training: "model.train(was_training)" -> "model.train()"
    The model was in evaluation mode and leaves in training mode: whoever translates with it next gets dropout. Go back
    to the mode that was.
records_a_graph: "no_grad" -> "enable_grad"
    You record a graph for every batch, which costs memory and time for gradients nobody asks for. `torch.no_grad()`
    works only as a block (`with`) or above a function (`@`).
mean_of_means: "value.item()" -> "value.item() / n_here", "+= n_here" -> "+= 1"
    You average the means of the batches, so a token of a small batch weighs more. Add up losses and tokens, and divide
    once.
per_batch: "+= n_here" -> "+= 1"
    You divide by the number of batches: large batches then have large losses. How many tokens are there?
summed: "total / n_tokens" -> "total"
    Your result is the sum over all tokens, and grows with the text.
first_batch: "+= n_here" -> "+= n_here\n            break"
    Only the first batch is measured: does a `return` stand inside your loop?
perplexity: "total / n_tokens" -> "torch.tensor(total / n_tokens).exp().item()"
    That is the perplexity, e to the power of the loss.
trains: "no_grad" -> "enable_grad", "total += value.item()" -> "total += value.item()\n            value.backward()",
  "+= n_here" -> "+= n_here\n            [each.data.sub_(0.01 * each.grad) for each in model.parameters()]"
    The weights have changed: you train on what should only be measured, and no text is held out any more.
""")
