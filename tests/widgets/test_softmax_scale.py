"""Softmax and scale: the draws and what they measure, in Python and on the page; what is refused."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers, press, slide
from ttutor.widgets import SoftmaxScaleExplorer
from ttutor.widgets.softmax_scale import N_KEYS, average_curves, measure, normal_numbers, running_products, weigh


def specimen() -> SoftmaxScaleExplorer:
    """The figure as the gallery shows it."""
    return SoftmaxScaleExplorer()


def extremes() -> list[SoftmaxScaleExplorer]:
    return [SoftmaxScaleExplorer(width=1024, draw=2**20 - 1), SoftmaxScaleExplorer(width=1)]


TAP = ("button:has-text('Other keys')", "divided by")


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


def test_entropy_and_gradient_are_the_definitions() -> None:
    rng = np.random.default_rng(0)
    weights = weigh(3 * rng.normal(size=(5, 8)), 1.0)
    found = measure(weights)
    for i, row in enumerate(weights):
        assert found["gradient"][i] == pytest.approx(np.linalg.norm(np.diag(row) - np.outer(row, row)), abs=1e-12)
        assert found["entropy"][i] == pytest.approx(-(row * np.log2(row)).sum(), abs=1e-12)
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), torch.tensor(np.log(weights[0])))
    assert found["gradient"][0] == pytest.approx(jacobian.norm().item(), abs=1e-12)


@pytest.mark.parametrize("n_keys", [8, 64])
def test_the_lesson_of_the_averages(n_keys: int) -> None:
    lines = average_curves(n_keys)
    raw, scaled = np.array(lines["entropy"])
    assert raw[-1] < 0.1 * raw[0]
    assert np.ptp(scaled) < 0.2 * math.log2(n_keys)
    assert lines["dead"][0][-1] > 0.5
    assert max(lines["dead"][1]) < 0.06
    assert lines["gradient"][0][-1] < 0.4 * lines["gradient"][1][-1]


def test_what_is_left_falls_with_the_width_and_never_revives() -> None:
    raw, scaled = np.array(specimen().gradients)
    assert (np.diff(raw) <= 0).all()
    assert raw[-1] < 0.15 < 0.9 < scaled.min()
    weights = np.stack([weigh(running_products(draw, N_KEYS)[63], 1.0) for draw in range(200)])
    most = max(average_curves(N_KEYS)["gradient"][1])
    assert raw[6] == pytest.approx(measure(weights)["gradient"].mean() / most, abs=2e-3)


@in_browser
def test_what_is_drawn_and_said_is_pythons(show: Show) -> None:
    page = show(SoftmaxScaleExplorer())
    for keys, width, draw in (([], 4, 3), (["End"], 1024, 3), (["PageDown"], 512, 3)):
        slide(page, "Width d", *keys)
        made = SoftmaxScaleExplorer(width=width, draw=draw)
        np.testing.assert_allclose(numbers(page, "circle"), made.scores.ravel(), atol=1e-6)
        np.testing.assert_allclose(numbers(page, "rect"), made.weights.ravel(), atol=1e-6)
    press(page, "Other keys")
    made.draw = 4
    np.testing.assert_allclose(numbers(page, "circle"), made.scores.ravel(), atol=1e-6)
    said = [int(found) for found in re.findall(r"(\d+)\s%", page.locator(".tt-found").inner_text())]
    raw_top, scaled_top = 100 * made.weights.max(axis=1)
    np.testing.assert_allclose(said, [raw_top, scaled_top, *100 * np.array(made.gradients)[:, 9]], atol=0.51)
    bars = page.locator(".left").evaluate_all("all => all.map((one) => Number(one.getAttribute('width')))")
    left = np.array(made.gradients)[:, 9]
    assert bars[0] / bars[1] == pytest.approx(left[0] / left[1], abs=0.01)


@in_browser
def test_where_the_width_is_small_the_finding_says_that_the_sides_look_alike(show: Show) -> None:
    page = show(SoftmaxScaleExplorer(width=2))
    slide(page, "Width d", "Home")
    assert "hardly differ: 15\u00a0% and 15\u00a0%." in page.locator(".tt-found").inner_text()
    slide(page, "Width d", *["ArrowRight"] * 8)
    assert "hardly differ" in page.locator(".tt-found").inner_text()
    page.get_by_text("Other keys").click()  # moves the shares, not the meter: that is said where it stands
    assert page.locator('[data-key="draws"]').text_content() == "mean of 200 draws"


@in_browser
def test_it_moves_once_by_itself_where_motion_is_wanted_and_the_reader_stops_it(show: Show) -> None:
    page = show(SoftmaxScaleExplorer())
    width = page.get_by_label("Width d", exact=True)
    page.wait_for_timeout(300)
    assert width.get_attribute("aria-valuetext") == "4"  # this reader asked for less movement
    page = show(SoftmaxScaleExplorer(), motion=True)
    expect(page.get_by_label("Width d", exact=True)).not_to_have_attribute("aria-valuetext", "4")
    press(page, "Reset")
    page.wait_for_timeout(300)
    expect(page.get_by_label("Width d", exact=True)).to_have_attribute("aria-valuetext", "4")
