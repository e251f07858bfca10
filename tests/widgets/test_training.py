"""The training explorer in Python: its numbers are those of the trainer's own functions."""

from __future__ import annotations

import math

import pytest
import torch

from ttutor.widgets import TrainingExplorer


def specimen() -> TrainingExplorer:
    """The figure as the gallery shows it."""
    return TrainingExplorer(["le", "chat", "noir", "dort"])


@pytest.mark.parametrize(("epsilon", "size"), [(0.0, 2), (0.1, 37_000), (0.3, 10), (0.9, 2)])
def test_the_floor_is_the_smallest_loss_that_there_is(epsilon: float, size: int) -> None:
    made = TrainingExplorer(epsilon=epsilon, vocab_size=size)
    right, other = made.target
    assert math.isclose(right + (size - 1) * other, 1)
    losses = [made.loss_at(p) for p in torch.linspace(0.01, 0.9999, 400).tolist()]
    assert min(losses) >= made.floor - 1e-9
    if epsilon:
        assert math.isclose(made.loss_at(right), made.floor, abs_tol=1e-9)


def test_all_schedules_with_a_warm_up_share_the_peak() -> None:
    made = TrainingExplorer(d_model=256, warmup=500, factor=2, steps=4000)
    at_peak = made.rates(500)
    assert math.isclose(at_peak["paper"], 2 * (256 * 500) ** -0.5)
    assert math.isclose(at_peak["paper"], at_peak["trapezoid"])
    assert math.isclose(at_peak["paper"], at_peak["paper, then to zero"])
    assert made.rates(4000)["trapezoid"] == made.rates(4000)["paper, then to zero"] == 0
    assert made.rates(4000)["paper"] > 0


def test_the_shift() -> None:
    made = TrainingExplorer(["un", "chat"])
    assert list(zip(made.decoder_input, made.labels, strict=True)) == [("<s>", "un"), ("un", "chat"), ("chat", "</s>")]
    made.shifted = False
    assert made.decoder_input == made.labels


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tokens": "le chat"}, TypeError, "not one string"),
        ({"tokens": []}, ValueError, "empty"),
        ({"tokens": ["a"] * 25}, ValueError, "at most 24"),
        ({"warmup": 0}, ValueError, "warmup has to be a finite number above 0"),
        ({"factor": float("nan")}, ValueError, "factor has to be"),
        ({"factor": 1e9}, ValueError, "at most 100"),
        ({"epsilon": 1.0}, ValueError, "expected 0 to 0.9"),
        ({"confidence": 1.0}, ValueError, "expected 0.001 to 0.9999"),
        ({"vocab_size": 1}, ValueError, "expected 2 to"),
    ],
)
def test_bad_input_is_refused_with_a_reason(options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        TrainingExplorer(**options)


def test_a_position_outside_the_sentence_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 0 to 4"):
        specimen().position = 5


def test_the_fallback_has_all_three() -> None:
    page = TrainingExplorer(["<b>"]).fallback_html()
    assert "6.99e-04" in page
    assert "&lt;b&gt;" in page
    assert "1.377 nats" in page
