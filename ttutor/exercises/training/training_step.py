"""Exercise: one step of a training, in the right order."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.facts import fact


class Telling(nn.Linear):
    """A linear model whose result tells in which mode it works."""

    def forward(self, inputs):
        """Multiply, and in evaluation mode halve."""
        return super().forward(inputs) * (1.0 if self.training else 0.5)


def observe(answer, weights, batches, rates, max_norm):
    """Let an answer take one step for each batch, and say what became of the model and what was done on the way.

    The targets move a little with each call of the loss, so that the losses tell how often it was taken. How far a step
    goes only the optimiser knows, so that the weights tell how often it stepped.
    """
    steps = []

    class Descent(torch.optim.SGD):
        def step(self, closure=None):
            self.param_groups[0]["lr"] = rates[len(steps) % len(rates)]
            steps.append(closure)
            super().step(closure)
            self.param_groups[0]["lr"] = self.defaults["lr"]

    model = Telling(weights.shape[1], weights.shape[0])
    with torch.no_grad():
        model.weight.copy_(weights)
        model.bias.zero_()
    model.eval()  # as a validation has left it
    optimizer = Descent(model.parameters(), lr=0.5)
    calls = []

    def loss(model, batch):
        calls.append(model.training)
        inputs, targets = batch
        return (model(inputs) - (1 + 0.1 * len(calls)) * targets).square().mean()

    returned, after, left_behind = [], [model_table(model)], []
    for batch in batches:
        returned.append(answer(model, optimizer, loss, batch, max_norm))
        after.append(model_table(model))
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        left_behind.append(torch.stack([gradient.norm() for gradient in gradients]).norm().item() if gradients else 0.0)
    moved = not torch.equal(after[0], after[-1])
    return {
        "the weights after the first step": after[1],
        "the weights after the last step": after[-1],
        "the losses": returned,
        "every loss was taken in training mode": all(calls),
        "how often the loss was taken": len(calls),
        "what is returned has left the graph": not any(getattr(value, "requires_grad", False) for value in returned),
        "how often the optimiser stepped": len(steps),
        "the gradients left behind are clipped": max(left_behind) <= 1.001 * max_norm,
        "if no weight has moved, there are gradients": "a weight has moved" if moved else any(left_behind),
    }


def model_table(model):
    """The weights, and the bias as one more column."""
    return torch.cat([model.weight.detach(), model.bias.detach()[:, None]], dim=1)


PROPERTIES = [
    fact(
        "every loss was taken in training mode",
        True,
        "Dropout and its like work in training mode only, and a validation may have left the model in the other.",
        id="training_mode",
    ),
    fact(
        "how often the loss was taken",
        2,
        "One step needs the loss once: forward and backward are the expensive part.",
        id="one_loss_a_step",
    ),
    fact(
        "how often the optimiser stepped",
        2,
        "Two batches, two steps: the optimiser steps once for each batch.",
        id="one_step_a_batch",
    ),
]


def training_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[nn.Module, object], Tensor],
    batch: object,
    max_norm: float,
) -> float:
    """Take one step on a batch, and return the loss from before the step as a plain number."""
    model.train()
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return value.item()


def reference(model, optimizer, loss, batch, max_norm):
    model.train()
    value = loss(model, batch)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(value, parameters)
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient * min(1.0, max_norm / norm.item())
    optimizer.step()
    return value.item()


def _batches(generator, scale, n_outputs):
    return [
        (scale * torch.randn(6, 4, generator=generator), scale * torch.randn(6, n_outputs, generator=generator))
        for _ in range(2)
    ]


def _rates(generator):
    return (0.3 + 0.1 * torch.rand(2, generator=generator, dtype=torch.float64)).tolist()


def _long_gradients(generator):
    weights, batches = torch.randn(3, 4, generator=generator), _batches(generator, 4.0, 3)
    return weights, batches, _rates(generator), drawn(generator, 5, 9) / 10


def _short_gradients(generator):
    return 0.1 * torch.randn(2, 4, generator=generator), _batches(generator, 0.5, 2), _rates(generator), 20.0


exercise = Exercise(
    id="training.training_step",
    title="One step, in the right order",
    statement="""
Write one step of a training. `loss(model, batch)` gives a tensor with one number; `optimizer` knows the parameters of
the model. Take the loss once, in training mode, and compute its gradients, those of this batch alone. Where their
common norm is above `max_norm`, scale all of them down to it. Then let the optimiser step. Return the loss as a plain
number, so that no graph is kept alive. `torch.nn.utils.clip_grad_norm_` may be used.
""".strip(),
    reference=reference,
    solution=training_step,
    cases=(
        Case(name="gradients longer than allowed", inputs=_long_gradients, points=2),
        Case(name="gradients shorter than allowed", inputs=_short_gradients),
    ),
    hints="""
Where does `backward()` put the gradients, and what stands there from the batch before? What does the optimiser read
when it steps?

Six things, in this order: the mode, clean gradients, the loss, backward, clipping, the step. Which of them reads what
another one has left behind?

`model.train()`, `optimizer.zero_grad()`, the loss, its `backward()`, `clip_grad_norm_` on the model's parameters,
`optimizer.step()`; then return the loss's `item()`.
""",
    properties=[
        *PROPERTIES,
    ],
    observe=observe,
    forbids=("fit",),
    difficulty=2,
    minutes=15,
    section="08-training",
)

exercise.mutations(r"""
no_zero_grad: "    optimizer.zero_grad()\n" -> ""
    The first step is right, the second is not: gradients add up from batch to batch, and nobody clears them. Which call
    does?
nothing_to_step_on: "    optimizer.zero_grad()\n" -> "",
  "clip_grad_norm_(model.parameters(), max_norm)" -> "optimizer.zero_grad()"
    The weights never move: when the optimiser steps there are no gradients, or they are zero. Either they are cleared
    after `backward()`, or there is no `backward()` before the step.
step_before_backward: "    optimizer.zero_grad()\n" -> "", "    optimizer.step()\n" -> "",
  "value.backward()" -> "optimizer.step()\n    optimizer.zero_grad()\n    value.backward()"
    You step before the gradients of this batch are there: the first step has no effect, and every later one uses those
    of the batch before, if they have not been cleared.
no_step: "    optimizer.step()\n" -> ""
    Loss and gradients are right, and the weights stay as they are: who uses the gradients?
no_clipping: "    clip_grad_norm_(model.parameters(), max_norm)\n" -> ""
    The step is as long as if nothing were clipped, and long gradients stay long. Clipping changes gradients that are
    there: it belongs after `backward()` and before the step.
clips_after_step: "    clip_grad_norm_(model.parameters(), max_norm)\n" -> "",
  "optimizer.step()" -> "optimizer.step()\n    clip_grad_norm_(model.parameters(), max_norm)"
    You clip, but after the step, when the weights have already moved by the full length.
clips_each_tensor: "clip_grad_norm_(model.parameters(), max_norm)" ->
  "[clip_grad_norm_([parameter], max_norm) for parameter in model.parameters()]"
    You clip weight and bias each to the limit, so that together they exceed it and change their proportion. The norm is
    taken over all parameters at once.
always_rescales: "clip_grad_norm_(model.parameters(), max_norm)" ->
  "norm = clip_grad_norm_(model.parameters(), 1e9)\n    [p.grad.mul_(max_norm / norm) for p in model.parameters()]"
    Short gradients grow: you bring every gradient to the limit. Those below it stay as they are.
mode: "    model.train()\n" -> ""
    The loss is taken in evaluation mode, in which dropout does nothing: a validation has left the model so. Say which
    mode you need.
loss_afterwards: "value.item()" -> "loss(model, batch).item()"
    You return the loss after the step. That needs a second pass, and flatters: it is measured on the batch just learnt.
    Return the one you have.
uphill: "value.backward()" -> "(-value).backward()"
    The weights move the wrong way: you make the loss large. Look for a sign.
""")


@exercise.must_hold("The first step should move the weights, by at most the learning rate times `max_norm`.")
def step_has_a_limit(trial):
    weights, _, (rate, _), max_norm = trial.inputs
    moved = (trial.value["the weights after the first step"][:, :-1] - weights).norm().item()
    if 0 < moved <= rate * max_norm * 1.001:
        return None
    limits = f"the learning rate is {rate:.3g}, the longest gradient {max_norm:g}"
    return f"The first step moved the weights by {moved:.3g}; {limits}."
