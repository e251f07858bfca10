"""How one step of a training is watched."""

import torch
from torch import nn

from ttutor.exercises.facts import fact


class CountingDescent(torch.optim.SGD):
    """Gradient descent that counts its steps."""

    steps = 0

    def step(self, closure=None):
        """Count, then step."""
        self.steps += 1
        return super().step(closure)


def observe(answer, weights, batches, max_norm):
    """Let an answer take one step for each batch, and say what became of the model and what was done on the way."""
    model = nn.Linear(weights.shape[1], weights.shape[0])
    with torch.no_grad():
        model.weight.copy_(weights)
        model.bias.zero_()
    model.eval()  # as a validation has left it
    optimizer = CountingDescent(model.parameters(), lr=0.5)
    calls = []

    def loss(model, batch):
        calls.append(model.training)
        inputs, targets = batch
        return (model(inputs) - targets).square().mean()

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
        "how often the optimiser stepped": optimizer.steps,
        "the gradients left behind are clipped": max(left_behind) <= 1.001 * max_norm,
        "if no weight has moved, there are gradients": "a weight has moved" if moved else any(left_behind),
    }


def model_table(model):
    """The weights, and the bias as one more column."""
    return torch.cat([model.weight.detach(), model.bias.detach()[:, None]], dim=1)


def weights_that_stay(trial):
    """Look whether the first step moved the model at all."""
    weights, batches, max_norm = trial.inputs
    moved = (trial.value["the weights after the first step"][:, :-1] - weights).norm().item()
    if 0 < moved <= 0.5 * max_norm * 1.001:
        return None
    return (
        f"The first step moved the weights by {moved:.3g}; the learning rate is 0.5, the longest gradient {max_norm:g}."
    )


PROPERTIES = (
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
)
"""What holds for every right step; how far a step may go is for the exercise to add."""
