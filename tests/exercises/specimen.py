"""A small exercise to test the judge with: twice the input, plus the index of the row."""

from __future__ import annotations

import torch
from torch import Tensor

from ttutor.exercises import Case, Exercise, Finding, Mistake, Property, Trial


def numbered_double(values: Tensor, scale: float) -> Tensor:
    """Scale the values and add to each row its index."""
    ...


def reference(values, scale):
    return values * scale + torch.arange(len(values))[:, None]


def forgets_rows(values, scale):
    return values * scale


def counts_from_one(values, scale):
    return reference(values, scale) + 1


def fails_on_zero(values, scale):
    return reference(values, scale) / (0.0 if scale == 0 else 1.0) if scale != 0 else values[len(values)]


def cut_off(values, scale):
    return reference(values, scale).clamp(max=1000.0)


def writes_into_input(values, scale):
    values += 1
    return reference(values - 1, scale)


def swapped_shape(values, scale):
    return reference(values, scale).T


def blind(values, scale):
    return reference(values, scale).detach()


def _no_gradient(trial: Trial) -> str | None:
    values, scale = trial.inputs
    return None if trial.run(values.requires_grad_(), scale).requires_grad else "Nothing comes back."


def _rows_alike(trial: Trial) -> Finding | None:
    moved = torch.eye(len(trial.value), dtype=torch.bool)
    gaps = (trial.value - trial.inputs[0] * trial.inputs[1]).round(decimals=3)
    return Finding("All rows get the same.", moved, ~moved) if bool((gaps == gaps[0]).all()) else None


def specimen(**changes) -> Exercise:
    """The exercise, with some fields replaced."""
    fields = {
        "id": "attention.numbered_double",
        "title": "Scale & number",
        "statement": "Scale, then add the index of the row.",
        "stub": numbered_double,
        "reference": reference,
        "cases": (
            Case(name="a scale of 2", inputs=lambda random: (torch.randn(3, 5, generator=random), 2.0), points=2),
            Case(name="a scale of 0", inputs=lambda random: (torch.randn(4, 2, generator=random), 0.0)),
            Case(name="large values", inputs=lambda random: (torch.rand(2, 7, generator=random) + 1e3, 2.0)),
        ),
        "hints": ("Think of `rows`.", "Use an arange.", "Add `torch.arange(len(values))` as a column."),
        "mistakes": [
            Mistake(id="forgets_rows", says="The index is missing.", answers=(forgets_rows,)),
            Mistake(id="counts_from_one", says="Rows count from 0.", answers=(counts_from_one,)),
            Mistake(id="fails_on_zero", says="Zero is a scale too.", answers=(fails_on_zero,)),
            Mistake(id="cut_off", says="Large values are cut off.", answers=(cut_off,)),
            Mistake(id="writes_into_input", says="Leave the input alone.", answers=(writes_into_input,)),
            Mistake(id="swapped_shape", says="Rows and columns are swapped.", answers=(swapped_shape,)),
            Mistake(id="blind", says="It leaves autograd.", answers=(blind,)),
        ],
        "properties": [
            Property(id="gradient", says="A gradient should come back.", broken=_no_gradient, always=True),
            Property(id="rows_differ", says="Rows should differ.", broken=_rows_alike),
        ],
        "forbids": ("addcmul",),
        "difficulty": 1,
        "minutes": 5,
        "section": "02-attention",
    }
    return Exercise(**(fields | changes))
