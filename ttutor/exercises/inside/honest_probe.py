"""Exercise: find the bug in a probe that finds everything everywhere."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise, Trial


def honest_probe(
    hidden: Float[Tensor, "samples d_model"],
    labels: Int[Tensor, " samples"],
    is_train: Bool[Tensor, " samples"],
    n_labels: int,
) -> float:
    """A colleague's version: how often a linear probe names the label of a vector that it has not seen."""
    inputs = torch.cat([hidden, torch.ones(len(hidden), 1, dtype=hidden.dtype)], dim=1)
    targets = torch.nn.functional.one_hot(labels, n_labels).to(hidden.dtype)
    solved = torch.linalg.lstsq(inputs, targets).solution
    held_out = inputs[~is_train]
    return ((held_out @ solved).argmax(dim=-1) == labels[~is_train]).double().mean().item()


def solution(
    hidden: Float[Tensor, "samples d_model"],
    labels: Int[Tensor, " samples"],
    is_train: Bool[Tensor, " samples"],
    n_labels: int,
) -> float:
    """How often a linear probe names the label of a vector that it has not seen."""
    inputs = torch.cat([hidden, torch.ones(len(hidden), 1, dtype=hidden.dtype)], dim=1)
    targets = torch.nn.functional.one_hot(labels, n_labels).to(hidden.dtype)
    solved = torch.linalg.lstsq(inputs[is_train], targets[is_train]).solution
    held_out = inputs[~is_train]
    return ((held_out @ solved).argmax(dim=-1) == labels[~is_train]).double().mean().item()


def _probe(hidden, labels, fitted, tested, n_labels, *, ones=True, signal=None):
    column = torch.ones(len(hidden), 1 if ones else 0, dtype=hidden.dtype)
    inputs = torch.cat([hidden, column], dim=1)
    targets = torch.nn.functional.one_hot(labels, n_labels).to(hidden.dtype) if signal is None else signal
    moment = inputs[fitted].T @ inputs[fitted]
    solved = torch.linalg.solve(moment, inputs[fitted].T @ targets[fitted])
    return (inputs[tested] @ solved).argmax(dim=-1) == labels[tested]


def _share(right):
    return right.double().mean().item()


def reference(hidden, labels, is_train, n_labels):
    return _share(_probe(hidden, labels, is_train, ~is_train, n_labels))


def _vectors(random):
    n, d_model, n_labels = 1201, 130, 3
    labels = (torch.rand(n, generator=random) ** 2.5 * n_labels).long()
    is_train = torch.rand(n, generator=random) < 0.6
    centres = torch.randn(n_labels, d_model, generator=random, dtype=torch.float64)
    hidden = torch.randn(n, d_model, generator=random, dtype=torch.float64) + 0.12 * centres[labels] + 0.05
    return hidden, labels, is_train, n_labels


exercise = Exercise(
    id="inside.honest_probe",
    title="The probe that finds everything",
    statement="""
A colleague's probe finds part of speech in every layer, also in the noise that you put in for fun: on vectors without
any information it is right far more often than chance. It should fit a linear map (with a constant, by least squares,
onto one-hot labels) on the samples where `is_train` is True, and give the share of right answers on all the others.
Find the bug, *by feeding it noise*, and mend it.
""".strip(),
    stub=honest_probe,
    reference=reference,
    solution=solution,
    explanation="""
The test looked at held-out samples; the fit looked at all of them. With 131 numbers to fit for each label and 1,201
samples, a linear map can fit part of any labels, and the bug looks like a discovery. Noise is the cheapest control
there is: put it in before you believe a probe. (A control task asks more: it has the same inputs and meaningless
labels.)
""".strip(),
    cases=(Case(name="1,201 vectors of 130 features", inputs=_vectors),),
    hints="""
Feed it random vectors and random labels. How often should it be right, and how often is it?

Mark every line with the samples that it uses: all, those for training, or the others.

One call uses samples that it must not know. Give it those for training, in both of its arguments.
""",
    forbids=("fit_probe", "probe", "LinearProbe"),
    difficulty=2,
    minutes=20,
    section="12-inside",
)


@exercise.mistake("Still the colleague's: the map has seen the answers to the questions that it is asked.")
def fitted_on_all(hidden, labels, is_train, n_labels):
    every = torch.ones_like(is_train)
    return _share(_probe(hidden, labels, every, ~is_train, n_labels))


@exercise.mistake("You fit on the training samples and test on them too. On noise this is right even more often.")
def tested_on_training(hidden, labels, is_train, n_labels):
    return _share(_probe(hidden, labels, is_train, is_train, n_labels))


@exercise.mistake("You fit on everything and test on everything; nothing is held out any more.")
def all_and_all(hidden, labels, is_train, n_labels):
    every = torch.ones_like(is_train)
    return _share(_probe(hidden, labels, every, every, n_labels))


@exercise.mistake("You fit and test on the held-out samples. Held out from what?")
def fitted_on_held_out(hidden, labels, is_train, n_labels):
    return _share(_probe(hidden, labels, ~is_train, ~is_train, n_labels))


@exercise.mistake("Honest, but the roles are swapped: you fit where `is_train` is False.")
def swapped(hidden, labels, is_train, n_labels):
    return _share(_probe(hidden, labels, ~is_train, is_train, n_labels))


@exercise.mistake("The fit is right now. The test mixes samples that it has seen with those that it has not.")
def tested_on_everything(hidden, labels, is_train, n_labels):
    return _share(_probe(hidden, labels, is_train, torch.ones_like(is_train), n_labels))


@exercise.mistake("The samples are right now, but the constant has gone, and the vectors are not centred.")
def no_constant(hidden, labels, is_train, n_labels):
    return _share(_probe(hidden, labels, is_train, ~is_train, n_labels, ones=False))


@exercise.mistake("You fit the label's number. Label 1 then lies between 0 and 2, which means nothing.")
def number_as_target(hidden, labels, is_train, n_labels):
    inputs = torch.cat([hidden, torch.ones(len(hidden), 1, dtype=hidden.dtype)], dim=1)
    solved = torch.linalg.lstsq(inputs[is_train], labels[is_train].to(hidden.dtype)[:, None]).solution
    said = (inputs[~is_train] @ solved)[:, 0].round()
    return _share(said == labels[~is_train])


@exercise.mistake("You divide by the number of all samples, and you tested only some.")
def over_all_samples(hidden, labels, is_train, n_labels):
    right = _probe(hidden, labels, is_train, ~is_train, n_labels)
    return right.sum().item() / len(labels)


@exercise.mistake("This is the share of wrong answers.")
def share_wrong(hidden, labels, is_train, n_labels):
    return 1 - reference(hidden, labels, is_train, n_labels)


@exercise.mistake("This is what the commonest label reaches: the baseline, without a look at the vectors.")
def commonest_label(hidden, labels, is_train, n_labels):
    return _share(labels[~is_train] == labels[is_train].bincount().argmax())


@exercise.must_hold("A share of right answers lies between 0 and 1.")
def is_a_share(trial: Trial) -> str | None:
    return None if 0 <= trial.value <= 1 else f"{trial.value:.3g} is no share."


@exercise.must_hold("Predictions must not depend on the labels of the samples on which they are tested.")
def held_out_is_unknown(trial: Trial) -> str | None:
    hidden, labels, is_train, n_labels = trial.inputs
    total = 0.0
    for shift in range(n_labels):
        moved = torch.where(is_train, labels, (labels + shift) % n_labels)
        total += trial.run(hidden, moved, is_train, n_labels)
    if abs(total - 1) < 1e-6:
        return None
    return (
        f"Replace held-out labels by each of the {n_labels} cyclic shifts in turn: an unseen vector has one "
        f"prediction, so the shares sum to 1. Yours sum to {total:.3g}."
    )
