"""Exercise: one step of a training, in the right order."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from ttutor.exercises.exercise import Case, Exercise, Mistake, Property
from ttutor.exercises.training import training_step_mistakes as wrong
from ttutor.exercises.training.training_step_probes import PROPERTIES, observe, weights_that_stay


def training_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[nn.Module, object], Tensor],
    batch: object,
    max_norm: float,
) -> float:
    """Take one step on a batch, and return the loss from before the step as a plain number."""
    ...


def solution(
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


def _batches(generator, scale):
    return [
        (scale * torch.randn(6, 4, generator=generator), scale * torch.randn(6, 3, generator=generator))
        for _ in range(2)
    ]


def _long_gradients(generator):
    return torch.randn(3, 4, generator=generator), _batches(generator, 4.0), 0.7


def _short_gradients(generator):
    return 0.1 * torch.randn(3, 4, generator=generator), _batches(generator, 0.5), 20.0


EXERCISES = (
    Exercise(
        id="training.training_step",
        title="One step, in the right order",
        statement="""
Write one step of a training. `loss(model, batch)` gives a tensor with one number; `optimizer` knows the parameters of
the model. Take the loss once, in training mode, and compute its gradients, those of this batch alone. Where their
common norm is above `max_norm`, scale all of them down to it. Then let the optimiser step. Return the loss as a plain
number, so that no graph is kept alive. `torch.nn.utils.clip_grad_norm_` may be used.
""".strip(),
        stub=training_step,
        reference=reference,
        solution=solution,
        cases=(
            Case(name="gradients longer than allowed", inputs=_long_gradients, points=2),
            Case(name="gradients shorter than allowed", inputs=_short_gradients),
        ),
        hints=(
            (
                "Where does `backward()` put the gradients, and what stands there from the batch before? What does the "
                "optimiser read when it steps?"
            ),
            (
                "Six things, in this order: the mode, clean gradients, the loss, backward, clipping, the step. "
                "Which of them reads what another one has left behind?"
            ),
            (
                "`model.train()`, `optimizer.zero_grad()`, the loss, its `backward()`, `clip_grad_norm_` on the "
                "model's parameters, `optimizer.step()`; then return the loss's `item()`."
            ),
        ),
        mistakes=(
            Mistake(
                id="no_zero_grad",
                says="The first step is right, the second is not: gradients add up from batch to batch, and nobody "
                "clears them. Which call does?",
                answers=(wrong.no_zero_grad,),
            ),
            Mistake(
                id="nothing_to_step_on",
                says="The weights never move: when the optimiser steps there are no gradients, or they are zero. "
                "Either they are cleared after `backward()`, or there is no `backward()` before the step.",
                answers=(wrong.zero_after_backward, wrong.no_backward, wrong.no_graph),
            ),
            Mistake(
                id="step_before_backward",
                says="You step before the gradients of this batch are there: the first step has no effect, and every "
                "later one uses those of the batch before, if they have not been cleared.",
                answers=(wrong.step_before_backward, wrong.step_between_zero_and_backward),
            ),
            Mistake(
                id="no_step",
                says="Loss and gradients are right, and the weights stay as they are: who uses the gradients?",
                answers=(wrong.no_step,),
            ),
            Mistake(
                id="no_clipping",
                says="The step is as long as if nothing were clipped, and long gradients stay long. Clipping changes "
                "gradients that are there: it belongs after `backward()` and before the step.",
                answers=(wrong.no_clipping, wrong.clips_before_backward),
            ),
            Mistake(
                id="clips_after_step",
                says="You clip, but after the step, when the weights have already moved by the full length.",
                answers=(wrong.clips_after_step,),
            ),
            Mistake(
                id="clips_each_number",
                says="You limit each number of the gradient by itself, which turns its direction. Its norm is asked "
                "for: one factor for all numbers.",
                answers=(wrong.clips_each_number,),
            ),
            Mistake(
                id="clips_each_tensor",
                says="You clip weight and bias each to the limit, so that together they exceed it and change their "
                "proportion. The norm is taken over all parameters at once.",
                answers=(wrong.clips_each_tensor,),
            ),
            Mistake(
                id="always_rescales",
                says="Short gradients grow: you bring every gradient to the limit. Those below it stay as they are.",
                answers=(wrong.always_rescales,),
            ),
            Mistake(
                id="clips_to_one",
                says="You clip to a norm of 1, whatever limit is given. It comes as an argument.",
                answers=(wrong.clips_to_one,),
            ),
            Mistake(
                id="mode",
                says="The loss is taken in evaluation mode, in which dropout does nothing: a validation has left the "
                "model so. Say which mode you need.",
                answers=(wrong.mode_untouched, wrong.evaluation_mode),
            ),
            Mistake(
                id="keeps_the_graph",
                says="The step is right, but the loss you return still carries its graph: whoever collects the losses "
                "keeps every activation of the training in memory.",
                answers=(wrong.keeps_the_graph,),
            ),
            Mistake(
                id="loss_afterwards",
                says="You return the loss after the step. That needs a second pass, and flatters: it is measured on "
                "the batch just learnt. Return the one you have.",
                answers=(wrong.loss_afterwards,),
            ),
            Mistake(
                id="loss_twice",
                says="All numbers are right, but you compute the loss twice, and each forward pass costs about a third "
                "of the step. Keep the first.",
                answers=(wrong.loss_twice,),
            ),
            Mistake(
                id="steps_twice",
                says="The optimiser steps twice with the same gradients.",
                answers=(wrong.steps_twice,),
            ),
            Mistake(
                id="uphill",
                says="The weights move the wrong way: you make the loss large. Look for a sign.",
                answers=(wrong.uphill,),
            ),
            Mistake(
                id="returns_the_norm",
                says="The step is right, but what you return is the gradient's norm.",
                answers=(wrong.returns_the_norm,),
            ),
        ),
        properties=(
            *PROPERTIES,
            Property(
                id="step_has_a_limit",
                says="The first step should move the weights, by at most the learning rate times `max_norm`.",
                broken=weights_that_stay,
            ),
        ),
        observe=observe,
        forbids=("fit",),
        difficulty=2,
        minutes=15,
        section="08-training",
    ),
)
