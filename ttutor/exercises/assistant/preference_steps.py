"""Exercise: find the bug in DPO whose reference moves along."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial


def preference_steps(
    scores: Float[Tensor, "prompts answers"],
    chosen: Int[Tensor, " prompts"],
    rejected: Int[Tensor, " prompts"],
    beta: float,
    rate: float,
    n_steps: int,
) -> Float[Tensor, "prompts answers"]:
    """A colleague's version: scores after some steps of gradient descent on the mean DPO loss."""
    model = scores.clone().requires_grad_()
    reference = model
    row = torch.arange(len(scores))
    for _ in range(n_steps):
        log_p = model.log_softmax(dim=1)
        with torch.no_grad():
            before = reference.log_softmax(dim=1)
        gained = log_p - before
        margin = gained[row, chosen] - gained[row, rejected]
        loss = -functional.logsigmoid(beta * margin).mean()
        (gradient,) = torch.autograd.grad(loss, model)
        with torch.no_grad():
            model -= rate * gradient
    return model.detach()


def solution(
    scores: Float[Tensor, "prompts answers"],
    chosen: Int[Tensor, " prompts"],
    rejected: Int[Tensor, " prompts"],
    beta: float,
    rate: float,
    n_steps: int,
) -> Float[Tensor, "prompts answers"]:
    """Scores after some steps of gradient descent on the mean DPO loss."""
    model = scores.clone().requires_grad_()
    reference = scores.clone()
    row = torch.arange(len(scores))
    for _ in range(n_steps):
        log_p = model.log_softmax(dim=1)
        with torch.no_grad():
            before = reference.log_softmax(dim=1)
        gained = log_p - before
        margin = gained[row, chosen] - gained[row, rejected]
        loss = -functional.logsigmoid(beta * margin).mean()
        (gradient,) = torch.autograd.grad(loss, model)
        with torch.no_grad():
            model -= rate * gradient
    return model.detach()


def reference(scores, chosen, rejected, beta, rate, n_steps):
    """By hand: the softmax's denominator cancels, and each pair pulls at its two scores alone."""
    now, row = scores.clone(), torch.arange(len(scores))
    start = scores[row, chosen] - scores[row, rejected]
    for _ in range(n_steps):
        margin = now[row, chosen] - now[row, rejected] - start
        pull = beta * torch.sigmoid(-beta * margin) / len(scores)
        now[row, chosen] += rate * pull
        now[row, rejected] -= rate * pull
    return now


def _pairs(generator):
    prompts, answers = drawn(generator, 4, 6), drawn(generator, 3, 5)
    scores = torch.randn(prompts, answers, generator=generator, dtype=torch.float64)
    chosen = torch.randint(answers, (prompts,), generator=generator)
    rejected = (chosen + torch.randint(1, answers, (prompts,), generator=generator)) % answers
    beta, rate, n_steps = one_of(generator, (0.4, 0.5, 0.6)), float(drawn(generator, 5, 7)), 2 * drawn(generator, 5, 7)
    return scores, chosen, rejected, beta, rate, n_steps


exercise = Exercise(
    id="assistant.preference_steps",
    title="The reference that came along",
    statement="""
A colleague trains by preferences. So that you can see everything, the "model" is a table: each prompt has four possible
answers and a score for each; a softmax over a prompt's scores gives their probabilities. Of each prompt one answer was
`chosen` and another `rejected`. The colleague reports that the loss does not move from 0.693, that the scores run off
the longer it trains, and that `beta` only seems to change the speed. Find the bug and mend it. The scores that come in
must stay as they are.
""".strip(),
    stub=preference_steps,
    reference=reference,
    solution=solution,
    explanation="""
The reference is the model as it was, and must stay so. Where it moves along, every margin is zero at each step, so the
loss is always ln 2 and each pair pulls with half of its strength for ever: nothing is ever learned enough. In a real
program it happens without a word, by a reference that shares its tensors with the model: take a deep copy, and let the
optimiser see the parameters of one of the two.
""".strip(),
    cases=(Case(name="a few prompts and steps", inputs=_pairs),),
    hints="""
What is ln 2? For which margin does the loss have this value, and when do model and reference agree?

Print the margin at every step. One of the two models should never change.

A second name for a tensor is not a second tensor.
""",
    forbids=("preference_loss",),
    difficulty=2,
    minutes=20,
    section="13-assistant",
)

exercise.mutations(r"""
moves_along: "reference = scores.clone()" -> "reference = model.detach()"
    The reference still moves along: at each step it is the model of that step, and every margin is zero. A second name,
    and `.detach()`, share the numbers.
no_reference: "gained = log_p - before" -> "gained = log_p"
or: "scores.clone()\n    row" -> "torch.zeros_like(scores)\n    row"
    You compare the two answers' log-probabilities themselves. A pair that the old model had in the right order already
    then teaches less. The *gain* over the reference counts, and the reference is the model from before, not one that
    finds all answers equally probable.
turned_round: "gained[row, chosen] - gained[row, rejected]" -> "gained[row, rejected] - gained[row, chosen]"
    The rejected answers become more probable: the margin is the gain of the chosen one minus that of the other.
without_beta: "beta * margin" -> "margin"
    `beta` does not enter. It says how large a margin is enough.
beta_outside: "-functional.logsigmoid(beta * margin).mean()" -> "-beta * functional.logsigmoid(margin).mean()"
    `beta` scales your loss; it should scale the margin *inside* the sigmoid, where it says how large a margin is
    enough.
summed: ".mean()" -> ".sum()"
    Your steps are as many times too long as there are pairs: the mean of the losses was asked for.
not_squashed: "-functional.logsigmoid(beta * margin).mean()" -> "-(beta * margin).mean()"
    Without the sigmoid no margin is ever enough, and all pairs pull equally hard for ever.
only_the_chosen: "gained[row, chosen] - gained[row, rejected]" -> "gained[row, chosen]"
    Only the chosen answer counts. The loss compares two gains.
changes_the_input: "return model.detach()" -> "scores.copy_(model.detach())\n    return model.detach()"
    The result is right, but the scores that you were given have changed. Train a copy.
""")


@exercise.must_hold("An answer that is in no pair keeps its score: the softmax's denominator cancels from the margin.")
def bystanders_stay(trial: Trial) -> str | None:
    scores, chosen, rejected, *_ = trial.inputs
    row = torch.arange(len(scores))
    moved = (trial.value - scores).abs()
    moved[row, chosen] = moved[row, rejected] = 0.0
    return None if moved.max() < 1e-6 else f"One of them has moved by {moved.max().item():.3g}."


@exercise.must_hold("Steps become shorter as the margin grows: twice as many steps do not take a score twice as far.")
def is_content_at_last(trial: Trial) -> str | None:
    scores, chosen, rejected, beta, rate, n_steps = trial.inputs
    row = torch.arange(len(scores))
    half = (trial.run(scores, chosen, rejected, beta, rate, n_steps // 2) - scores)[row, chosen].abs().sum()
    whole = (trial.value - scores)[row, chosen].abs().sum()
    if whole < 1.95 * half:
        return None
    return f"After {n_steps} steps the chosen scores have gone {float(whole / half):.3f} times as far as after half."
