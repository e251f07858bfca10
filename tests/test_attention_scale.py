"""Chapter 2's experiment on the scale: that its arms are what they are called."""

from collections.abc import Iterator

import pytest
import torch

from experiments import attention_scale
from ttutor import assets


@pytest.fixture(autouse=True)
def short_and_exact(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(attention_scale, "STEPS", 40)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_small_start_and_short_steps_together_are_the_scale() -> None:
    both = attention_scale.run(0, 0.005, True, True)
    assert both == pytest.approx(attention_scale.run(0, 0.005, False, False, scaled=True), abs=1e-6)


@pytest.mark.parametrize(("small", "short"), [(True, False), (False, True), (False, False)])
def test_either_alone_is_not(small: bool, short: bool) -> None:
    both = attention_scale.run(0, 0.005, True, True)
    assert attention_scale.run(0, 0.005, small, short) != pytest.approx(both, abs=0.02)


def test_every_arm_has_its_best_rate_inside_the_grid() -> None:
    rates = attention_scale.RATES
    for arms in assets.load("attention_scale")["best rates"].values():
        assert all(rates[0] < rate < rates[-1] for rate, *_ in arms.values())
