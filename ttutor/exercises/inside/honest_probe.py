"""Exercise: find the bug in a probe that finds everything everywhere."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.exercises.draws import drawn
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


def reference(hidden, labels, is_train, n_labels):
    inputs = torch.cat([hidden, torch.ones(len(hidden), 1, dtype=hidden.dtype)], dim=1)
    seen, targets = inputs[is_train], torch.nn.functional.one_hot(labels[is_train], n_labels).to(hidden.dtype)
    solved = torch.linalg.solve(seen.T @ seen, seen.T @ targets)
    return ((inputs[~is_train] @ solved).argmax(dim=-1) == labels[~is_train]).double().mean().item()


def _vectors(random):
    n, d_model, n_labels = drawn(random, 1190, 1210), drawn(random, 128, 132), drawn(random, 3, 4)
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
The test looked at held-out samples; the fit looked at all of them. With a number to fit for each nine or ten of the
samples, a linear map can fit part of any labels, and the bug looks like a discovery. Noise is the cheapest control
there is: put it in before you believe a probe. (A control task asks more: it has the same inputs and meaningless
labels.)
""".strip(),
    cases=(Case(name="over a thousand vectors", inputs=_vectors),),
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

exercise.mutations("""
fitted_on_all: "inputs[is_train], targets[is_train]" -> "inputs[:], targets[:]"
    Still the colleague's: the map has seen the answers to the questions that it is asked.
tested_on_training: "inputs[~is_train]" -> "inputs[is_train]", "labels[~is_train]" -> "labels[is_train]"
    You fit on the training samples and test on them too. On noise this is right even more often.
all_and_all: "inputs[is_train], targets[is_train]" -> "inputs, targets", "inputs[~is_train]" -> "inputs",
  "labels[~is_train]" -> "labels"
    You fit on everything and test on everything; nothing is held out any more.
fitted_on_held_out: "inputs[is_train], targets[is_train]" -> "inputs[~is_train], targets[~is_train]"
    You fit and test on the held-out samples. Held out from what?
swapped: "held_out = inputs[~is_train]" -> "held_out = inputs[is_train]", "labels[~is_train]" -> "labels[is_train]",
  "lstsq(inputs[is_train], targets[is_train])" -> "lstsq(inputs[~is_train], targets[~is_train])"
    Honest, but the roles are swapped: you fit where `is_train` is False.
tested_on_everything: "inputs[~is_train]" -> "inputs", "labels[~is_train]" -> "labels"
    The fit is right now. The test mixes samples that it has seen with those that it has not.
no_constant: "len(hidden), 1," -> "len(hidden), 0,"
    The samples are right now, but the constant has gone, and the vectors are not centred.
number_as_target: "torch.nn.functional.one_hot(labels, n_labels)" -> "labels[:, None]",
  ".argmax(dim=-1) ==" -> "[:, 0].round() =="
    You fit the label's number. Label 1 then lies between 0 and 2, which means nothing.
over_all_samples: "double().mean().item()" -> "sum().item() / len(labels)"
    You divide by the number of all samples, and you tested only some.
share_wrong: "== labels" -> "!= labels"
    This is the share of wrong answers.
commonest_label: "(held_out @ solved).argmax(dim=-1)" -> "labels[is_train].bincount().argmax()"
    This is what the commonest label reaches: the baseline, without a look at the vectors.
""")


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
