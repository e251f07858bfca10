"""Softmax and scale, in Python: the draws, what they measure, and what is refused."""

import math

import numpy as np
import pytest
import torch

from ttutor.widgets import SoftmaxScaleExplorer
from ttutor.widgets.softmax_scale import DEAD, N_KEYS, WIDTHS, measure, normal_numbers, running_products, weigh


def specimen() -> SoftmaxScaleExplorer:
    """The figure as the gallery shows it."""
    return SoftmaxScaleExplorer(width=64)


# ---------------------------------------------------------------- draws


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


def test_the_numbers_are_normal() -> None:
    numbers = normal_numbers(0, 200_000)
    assert abs(numbers.mean()) < 0.01
    assert abs(numbers.std() - 1) < 0.01
    assert abs((numbers**4).mean() - 3) < 0.1
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.01


def test_raw_scores_spread_as_the_root_of_the_width() -> None:
    products = np.stack([running_products(draw) for draw in range(100)])
    np.testing.assert_allclose(np.sqrt((products**2).mean(axis=(0, 2))), np.sqrt(WIDTHS), rtol=0.2)


def test_a_wider_head_adds_to_the_same_products() -> None:
    numbers = normal_numbers(3, 1024 * 65).reshape(1024, 65)
    np.testing.assert_allclose(running_products(3)[2], numbers[:4, 0] @ numbers[:4, 1:])


# ---------------------------------------------------------------- what is measured


def test_entropy_and_gradient_are_the_definitions() -> None:
    rng = np.random.default_rng(0)
    weights = weigh(3 * rng.normal(size=(5, 8)), 1.0)
    found = measure(weights)
    for i, row in enumerate(weights):
        assert found["gradient"][i] == pytest.approx(np.linalg.norm(np.diag(row) - np.outer(row, row)), abs=1e-12)
        assert found["entropy"][i] == pytest.approx(-(row * np.log2(row)).sum(), abs=1e-12)
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), torch.tensor(np.log(weights[0])))
    assert found["gradient"][0] == pytest.approx(jacobian.norm().item(), abs=1e-12)


def test_extremes() -> None:
    even, sharp = np.full(4, 0.25), np.array([1.0, 0, 0, 0])
    assert measure(even)["entropy"] == pytest.approx(2.0)
    assert measure(sharp)["entropy"] == measure(sharp)["gradient"] == 0.0
    assert measure(np.array([0.5, 0.5]))["gradient"] == pytest.approx(0.5)  # the most there is


def test_a_temperature_of_the_root_is_the_scale() -> None:
    scaled = SoftmaxScaleExplorer(width=256, scaled=True)
    warm = SoftmaxScaleExplorer(width=256, temperature=16)
    np.testing.assert_allclose(scaled.weights, warm.weights, atol=1e-12)
    assert scaled.entropy > 2 * SoftmaxScaleExplorer(width=256).entropy


@pytest.mark.parametrize("n_keys", N_KEYS)
def test_the_lesson_of_the_lines(n_keys: int) -> None:
    lines = specimen().curves[str(n_keys)]
    raw, scaled = np.array(lines["entropy"])
    assert raw[-1] < 0.1 * raw[0]
    assert np.ptp(scaled) < 0.2 * math.log2(n_keys)
    assert lines["dead"][0][-1] > 0.5
    assert max(lines["dead"][1]) < 0.06
    assert lines["gradient"][0][-1] < 0.4 * lines["gradient"][1][-1]


def test_among_many_keys_the_mean_gradient_first_grows() -> None:
    raw, scaled = specimen().curves["64"]["gradient"]
    assert max(raw) > 1.4 * raw[0]
    assert max(scaled) < 1.1 * scaled[0]


def test_the_lines_are_means_of_single_draws() -> None:
    found = [SoftmaxScaleExplorer(width=64, draw=draw) for draw in range(3)]
    assert found[0].gradient != found[1].gradient
    weights = np.stack([weigh(running_products(draw)[6, :16], 1.0) for draw in range(200)])
    gradient = measure(weights)["gradient"]
    assert specimen().curves["16"]["gradient"][0][6] == pytest.approx(gradient.mean(), abs=6e-4)
    assert specimen().curves["16"]["dead"][0][6] == pytest.approx((gradient < DEAD).mean(), abs=6e-4)


# ---------------------------------------------------------------- what is refused, what is stored


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 3}, "width has to be one of 1, 2, 4"),
        ({"width": 2048}, "width has to be one of"),
        ({"n_keys": 0}, "n_keys has to be one of 4, 8"),
        ({"quantity": "joy"}, "quantity has to be one of entropy, gradient, dead"),
        ({"temperature": 0}, "temperature has to be a finite number above 0"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": 1e-9}, "between 0.001"),
        ({"draw": -1}, "draw has to be a number from 0"),
    ],
)
def test_bad_settings_are_refused_with_a_reason(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SoftmaxScaleExplorer(**options)


def test_the_fallback_is_the_table_of_the_lines() -> None:
    made = specimen()
    table = made.fallback_html()
    assert table.count("<tr>") == 1 + len(WIDTHS)
    assert f"<td>{made.curves['16']['entropy'][0][6]:.2f}</td>" in table
    assert "log₂ 16 = 4 bits" in table
    assert repr(made) == "SoftmaxScaleExplorer(width 64, 16 keys, not scaled, temperature 1.0, draw 0)"
