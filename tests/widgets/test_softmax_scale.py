"""Softmax and scale: the draws and what they measure, in Python and on the page; what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from playwright.sync_api import Page

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers, press, slide, whole_text
from ttutor.widgets import SoftmaxScaleExplorer
from ttutor.widgets.softmax_scale import DEAD, N_KEYS, WIDTHS, measure, normal_numbers, running_products, weigh


def specimen() -> SoftmaxScaleExplorer:
    """The figure as the gallery shows it."""
    return SoftmaxScaleExplorer(width=64)


def extremes() -> list[SoftmaxScaleExplorer]:
    return [SoftmaxScaleExplorer(width=1024, n_keys=64, draw=3), SoftmaxScaleExplorer(width=1, n_keys=4)]


TAP = ("label:has-text('divide by √d_head')", "q·k / 8.00")


def mulberry(seed: int) -> float:
    """The first number of mulberry32, in plain integers."""
    a = (seed + 0x6D2B79F5) % 2**32
    b = (a ^ (a >> 15)) * (1 | a) % 2**32
    b = ((b + (b ^ (b >> 7)) * (61 | b)) % 2**32) ^ b
    return (b ^ (b >> 14)) / 2**32


@pytest.mark.parametrize("draw", [0, 1, 77])
def test_the_generator_is_mulberry32_with_box_muller(draw: int) -> None:
    seed = draw * 0x9E3779B9 % 2**32
    first, second = mulberry(seed), mulberry((seed + 0x6D2B79F5) % 2**32)
    expected = math.sqrt(-2 * math.log(1 - first)) * math.cos(2 * math.pi * second)
    assert normal_numbers(draw, 3)[0] == pytest.approx(expected, abs=1e-12)


def test_raw_scores_spread_as_the_root_of_the_width() -> None:
    products = np.stack([running_products(draw) for draw in range(100)])
    np.testing.assert_allclose(np.sqrt((products**2).mean(axis=(0, 2))), np.sqrt(WIDTHS), rtol=0.2)


def test_entropy_and_gradient_are_the_definitions() -> None:
    rng = np.random.default_rng(0)
    weights = weigh(3 * rng.normal(size=(5, 8)), 1.0)
    found = measure(weights)
    for i, row in enumerate(weights):
        assert found["gradient"][i] == pytest.approx(np.linalg.norm(np.diag(row) - np.outer(row, row)), abs=1e-12)
        assert found["entropy"][i] == pytest.approx(-(row * np.log2(row)).sum(), abs=1e-12)
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), torch.tensor(np.log(weights[0])))
    assert found["gradient"][0] == pytest.approx(jacobian.norm().item(), abs=1e-12)


@pytest.mark.parametrize("n_keys", N_KEYS)
def test_the_lesson_of_the_lines(n_keys: int) -> None:
    lines = specimen().curves[str(n_keys)]
    raw, scaled = np.array(lines["entropy"])
    assert raw[-1] < 0.1 * raw[0]
    assert np.ptp(scaled) < 0.2 * math.log2(n_keys)
    assert lines["dead"][0][-1] > 0.5
    assert max(lines["dead"][1]) < 0.06
    assert lines["gradient"][0][-1] < 0.4 * lines["gradient"][1][-1]


def test_the_lines_are_means_of_single_draws() -> None:
    found = [SoftmaxScaleExplorer(width=64, draw=draw) for draw in range(3)]
    assert found[0].gradient != found[1].gradient
    weights = np.stack([weigh(running_products(draw)[6, :16], 1.0) for draw in range(200)])
    gradient = measure(weights)["gradient"]
    assert specimen().curves["16"]["gradient"][0][6] == pytest.approx(gradient.mean(), abs=6e-4)
    assert specimen().curves["16"]["dead"][0][6] == pytest.approx((gradient < DEAD).mean(), abs=6e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 3}, "width has to be one of 1, 2, 4"),
        ({"width": 2048}, "width has to be one of"),
        ({"n_keys": 0}, "n_keys has to be one of 4, 8"),
        ({"quantity": "joy"}, "quantity has to be one of entropy, gradient, dead"),
        ({"temperature": 0}, "temperature has to be from 0.001 to 1,000,000"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": 1e-9}, "from 0.001 to 1,000,000, not 1e-09"),
        ({"draw": -1}, "draw has to be from 0"),
    ],
)
def test_bad_settings_are_refused_with_a_reason(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SoftmaxScaleExplorer(**options)


def assert_pythons(page: Page, made: SoftmaxScaleExplorer) -> None:
    """What the figure draws and says is what Python computes."""
    np.testing.assert_allclose(numbers(page, "circle"), made.scores, atol=1e-6)
    np.testing.assert_allclose(numbers(page, "rect"), made.weights, atol=1e-6)
    text = whole_text(page)
    assert f"Standard deviation {made.scores.std():.2f};" in text
    assert f"{abs(made.entropy):.2f} of {np.log2(made.n_keys):.2f} bits" in text
    assert f"{made.gradient:.4f}" in text


@in_browser
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"width": 1, "n_keys": 4},
        {"width": 1024, "n_keys": 64, "draw": 5},
        {"width": 256, "scaled": True, "draw": 1_048_575},
        {"width": 1024, "n_keys": 4, "temperature": 0.25, "draw": 2},
        {"width": 8, "temperature": 1000.0, "n_keys": 32},
    ],
    ids=str,
)
def test_numbers_on_screen_are_pythons(show: Show, options: dict) -> None:
    made = SoftmaxScaleExplorer(**options)
    assert_pythons(show(made), made)


@in_browser
def test_sliders_switches_and_another_draw(show: Show) -> None:
    page, made = show(SoftmaxScaleExplorer()), SoftmaxScaleExplorer()
    for label, key, trait, value in [
        ("Width d_head", "Home", "width", 1), ("Width d_head", "End", "width", 1024),
        ("Width d_head", "ArrowLeft", "width", 512), ("Keys", "Home", "n_keys", 4), ("Keys", "ArrowRight", "n_keys", 8),
        ("Temperature", "Home", "temperature", 0.25), ("Temperature", "End", "temperature", 32.0),
    ]:  # fmt: skip
        slide(page, label, key)
        setattr(made, trait, value)
        assert_pythons(page, made)
    page.get_by_label("divide by √d_head").check()
    press(page, "Another draw", 2)
    made.scaled, made.draw = True, 2
    assert_pythons(page, made)
