"""Probing: can a label be read off hidden vectors by a linear map, and does that say anything about the vectors?"""

import math
from dataclasses import dataclass

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.shapes import check_shapes


@dataclass(frozen=True)
class LinearProbe:
    """A linear map from hidden vectors to one score for each label; the largest score is the answer."""

    weight: Float[Tensor, "labels d_model"]
    bias: Float[Tensor, " labels"]

    def __call__(self, hidden: Float[Tensor, "... d_model"]) -> Int[Tensor, "..."]:
        """The label of each hidden vector."""
        scores = einsum(hidden, self.weight, "... d_model, labels d_model -> ... labels") + self.bias
        return scores.argmax(dim=-1)

    def accuracy(self, hidden: Float[Tensor, "samples d_model"], labels: Int[Tensor, " samples"]) -> float:
        """The share of hidden vectors whose label is right."""
        check_shapes(hidden=(hidden, "samples d_model"), labels=(labels, "samples"))
        return (self(hidden) == labels).double().mean().item()


def fit_probe(
    hidden: Float[Tensor, "samples d_model"], labels: Int[Tensor, " samples"], n_labels: int, *, ridge: float = 1e-3
) -> LinearProbe:
    r"""Fit a linear probe in closed form: ridge regression onto one-hot labels.

    $$\min_{W, b}\ \frac{1}{n} \sum_i \|W x_i + b - y_i\|^2 + \lambda \|W\|^2$$

    One solution, no training loop, no seed. The bias is not penalised.

    Args:
        hidden: the vectors, one for each sample.
        labels: 0 to ``n_labels - 1``.
        n_labels: how many labels there are.
        ridge: the $\lambda$, in units of the features' mean variance; more of it, less capacity. It also turns the
            direction: with hardly any, the difference of the labels' means is divided by the covariance, with much the
            direction is that difference itself. Accuracy does not tell which of them a model uses.

    Example:
        >>> hidden = torch.tensor([[0.0, 1.0], [0.2, 0.0], [1.0, 1.0], [0.9, 0.0]])
        >>> fit_probe(hidden, torch.tensor([0, 0, 1, 1]), n_labels=2).accuracy(hidden, torch.tensor([0, 0, 1, 1]))
        1.0
    """
    check_shapes(hidden=(hidden, "samples d_model"), labels=(labels, "samples"))
    if labels.min() < 0 or labels.max() >= n_labels:
        raise ValueError(f"labels must be 0 to {n_labels - 1}, but reach from {labels.min()} to {labels.max()}")
    if not 0 < ridge < math.inf:
        raise ValueError(f"ridge must be positive, but is {ridge}")
    if not hidden.isfinite().all():
        raise ValueError("hidden holds NaN or infinite values, from which nothing can be fitted")
    targets = torch.nn.functional.one_hot(labels, n_labels).to(hidden.dtype)
    centre, mean_target = (reduce(rows, "samples features -> features", "mean") for rows in (hidden, targets))
    inputs, targets = hidden - centre, targets - mean_target
    covariance = einsum(inputs, inputs, "samples left, samples right -> left right") / len(inputs)
    shrinkage = ridge * covariance.diagonal().mean() * torch.eye(len(centre), dtype=hidden.dtype, device=hidden.device)
    moment = einsum(inputs, targets, "samples d_model, samples labels -> d_model labels") / len(inputs)
    weight = rearrange(torch.linalg.solve(covariance + shrinkage, moment), "d_model labels -> labels d_model")
    return LinearProbe(weight, mean_target - weight @ centre)


def control_labels(
    types: Int[Tensor, " samples"], labels: Int[Tensor, " samples"], generator: torch.Generator
) -> Int[Tensor, " samples"]:
    """Labels that mean nothing: each type of token gets one at random, for all its occurrences.

    They can be learnt from the type alone, by memory; how well a probe does on them is how much it can memorise. Hewitt
    and Liang (2019), section 2: random labels follow the distribution of the real ones.

    Args:
        types: what each sample is an occurrence of, such as its token id.
        labels: the real labels, whose distribution the random ones follow.
        generator: where chance comes from.
    """
    check_shapes(types=(types, "samples"), labels=(labels, "samples"))
    distinct, which = types.unique(return_inverse=True)
    drawn = torch.randint(len(labels), (len(distinct),), generator=generator, device=generator.device)
    return labels[drawn.to(labels.device)][which]


@dataclass(frozen=True)
class ProbeResult:
    """What a probe reached on held-out samples.

    Args:
        accuracy: on the real labels.
        control_accuracy: on labels that mean nothing.
        majority: what saying the commonest training label would reach.
    """

    accuracy: float
    control_accuracy: float
    majority: float

    @property
    def selectivity(self) -> float:
        """How much better the probe reads the label than it memorises (Hewitt and Liang 2019)."""
        return self.accuracy - self.control_accuracy


def probe(
    hidden: Float[Tensor, "samples d_model"],
    labels: Int[Tensor, " samples"],
    types: Int[Tensor, " samples"],
    is_train: Bool[Tensor, " samples"],
    generator: torch.Generator,
) -> ProbeResult:
    """Probe hidden vectors for a label, and beside it for a control task; measure both on held-out samples.

    Args:
        hidden: one layer's vectors, one for each sample.
        labels: the label of each sample, 0, 1, 2, ...
        types: what each sample is an occurrence of, such as its token id. Types must occur in training and held-out
            samples alike, or nothing can be memorised and the control task controls nothing.
        is_train: which samples the probes are fitted on.
        generator: draws the control labels.
    """
    check_shapes(
        hidden=(hidden, "samples d_model"),
        labels=(labels, "samples"),
        types=(types, "samples"),
        is_train=(is_train, "samples"),
    )
    if is_train.dtype != torch.bool:
        raise TypeError(f"is_train must be a bool tensor, but came with dtype {is_train.dtype}; write is_train.bool()")
    if is_train.all() or not is_train.any():
        raise ValueError(
            f"training and held-out samples are needed, but {int(is_train.sum())} of {len(is_train)} are for training"
        )
    if not torch.isin(types[~is_train], types[is_train]).any():
        raise ValueError("no type of a held-out sample occurs in training, so the control task cannot be learnt")
    n_labels = int(labels.max()) + 1
    accuracy, control_accuracy = (
        fit_probe(hidden[is_train], wanted[is_train], n_labels).accuracy(hidden[~is_train], wanted[~is_train])
        for wanted in (labels, control_labels(types, labels, generator))
    )
    commonest = labels[is_train].bincount().argmax()
    return ProbeResult(accuracy, control_accuracy, (labels[~is_train] == commonest).double().mean().item())
