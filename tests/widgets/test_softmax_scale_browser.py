"""Softmax and scale as a reader without a kernel meets it: by pointer, keyboard and touch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.widgets.test_attention_steps_browser import SET_FROM_OUTSIDE
from ttutor.widgets import SoftmaxScaleExplorer
from ttutor.widgets.static import module_source

pytestmark = pytest.mark.browser
Open = Callable[..., Page]


def drawn(page: Page, selector: str) -> np.ndarray:
    return np.array(page.locator(f"{selector}[data-value]").evaluate_all("all => all.map((e) => +e.dataset.value)"))


def assert_pythons(page: Page, made: SoftmaxScaleExplorer) -> None:
    """What the figure draws and says is what Python computes."""
    np.testing.assert_allclose(drawn(page, "circle"), made.scores, atol=1e-6)
    np.testing.assert_allclose(drawn(page, "rect"), made.weights, atol=1e-6)
    text = page.locator("section.tt").inner_text()
    assert f"Standard deviation {made.scores.std():.2f};" in text
    assert f"{abs(made.entropy):.2f} of {np.log2(made.n_keys):.2f} bits" in text
    assert f"{made.gradient:.4f}" in text


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
def test_numbers_on_screen_are_pythons(open_saved: Open, options: dict) -> None:
    made = SoftmaxScaleExplorer(**options)
    assert_pythons(open_saved(made), made)


def test_sliders_and_switches(open_saved: Open) -> None:
    page, made = open_saved(SoftmaxScaleExplorer()), SoftmaxScaleExplorer()
    for key, width in (("Home", 1), ("End", 1024), ("ArrowLeft", 512)):
        page.get_by_label("Width d_head").press(key)
        made.width = width
        assert_pythons(page, made)
        expect(page.get_by_label("Width d_head")).to_have_attribute("aria-valuetext", str(width))
    for key, n_keys in (("Home", 4), ("End", 64), ("ArrowLeft", 32)):
        page.get_by_label("Keys", exact=True).press(key)
        made.n_keys = n_keys
        assert_pythons(page, made)
    for key, temperature in (("Home", 0.25), ("End", 32.0)):
        page.get_by_label("Temperature").press(key)
        made.temperature = temperature
        assert_pythons(page, made)
    page.get_by_label("divide by √d_head").check()
    made.scaled = True
    assert_pythons(page, made)


def test_another_draw_and_reset(open_saved: Open) -> None:
    page, made = open_saved(SoftmaxScaleExplorer(width=64)), SoftmaxScaleExplorer(width=64)
    page.get_by_role("button", name="Another draw").click()
    page.get_by_role("button", name="Another draw").click()
    made.draw = 2
    assert_pythons(page, made)
    page.get_by_label("divide by √d_head").check()
    page.get_by_label("share dead").check()
    page.get_by_label("Width d_head").press("Home")
    page.get_by_role("button", name="Reset").click()
    assert_pythons(page, SoftmaxScaleExplorer(width=64))
    assert page.get_by_label("entropy (bits)").is_checked()
    assert not page.get_by_label("divide by √d_head").is_checked()


def test_a_temperature_of_the_root_gives_the_weights_of_the_scale(open_saved: Open) -> None:
    page = open_saved(SoftmaxScaleExplorer(width=64, scaled=True))
    scaled = drawn(page, "rect")
    page.get_by_label("divide by √d_head").uncheck()
    for _ in range(6):
        page.get_by_label("Temperature").press("ArrowRight")
    np.testing.assert_allclose(drawn(page, "rect"), scaled, atol=1e-9)
    assert "q·k / 8.00" in page.locator("section.tt").inner_text()


@pytest.mark.parametrize("quantity", ["entropy", "gradient", "dead"])
def test_the_chart_shows_the_means_and_this_draw(open_saved: Open, quantity: str) -> None:
    made = SoftmaxScaleExplorer(width=64, n_keys=64, quantity=quantity)
    page = open_saved(made)
    chart = page.get_by_role("slider", name="Averages by width")
    chart.focus()
    chart.press("End")
    raw, scaled = made.curves["64"][quantity]
    words = chart.get_attribute("aria-valuetext")
    assert "width d_head 1024" in words
    assert f"not scaled: {raw[-1]:.2f}, scaled: {scaled[-1]:.2f}" in words
    assert chart.locator("circle").count() == 23


def test_a_dead_gradient_says_so(open_saved: Open) -> None:
    made = SoftmaxScaleExplorer(width=64)
    assert made.gradient < 0.01
    page = open_saved(made)
    assert ": dead" in page.locator(".tt-bars").inner_text()
    page.get_by_label("divide by √d_head").check()
    assert ": dead" not in page.locator(".tt-bars").inner_text()


def test_screen_readers_hear_what_changed(open_saved: Open) -> None:
    page = open_saved(SoftmaxScaleExplorer())
    page.get_by_label("Width d_head").press("End")
    heard = page.locator("[role=status].tt-hidden").inner_text()
    assert "expected √1024 / 1.00 = 32.00" in heard
    assert "entropy" in heard
    expect(page.get_by_role("img", name="Scores as dots, weights as bars")).to_be_visible()


def test_traits_set_from_python_redraw(open_saved: Open) -> None:
    made = SoftmaxScaleExplorer()
    page = open_saved(made)
    values = {"width": 512, "n_keys": 32, "scaled": True, "temperature": 0.5, "draw": 9, "quantity": "dead"}
    page.evaluate(SET_FROM_OUTSIDE, [module_source("softmax_scale"), made.static_state(), values])
    assert_pythons(page, SoftmaxScaleExplorer(**values))
    expect(page.get_by_label("Width d_head")).to_have_attribute("aria-valuetext", "512")
    assert page.get_by_label("share dead").is_checked()
    page.evaluate("window.stopped()")


def test_taps_work(open_saved: Open) -> None:
    page = open_saved(SoftmaxScaleExplorer(width=64), width=360, touch=True)
    page.get_by_label("divide by √d_head").tap()
    assert_pythons(page, SoftmaxScaleExplorer(width=64, scaled=True))
    page.get_by_text("gradient", exact=True).last.tap()
    assert page.get_by_label("gradient", exact=True).is_checked()


@pytest.mark.parametrize("width", [360, 900])
def test_all_dots_and_bars_are_in_the_picture(open_saved: Open, width: int) -> None:
    page = open_saved(SoftmaxScaleExplorer(width=1024, n_keys=64, draw=3), width=width)
    inside = """svg => { const box = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('circle, rect')].every((e) => { const b = e.getBoundingClientRect();
        return b.left >= box.left - 1 && b.right <= box.right + 1
        && b.top >= box.top - 1 && b.bottom <= box.bottom + 1; }) }"""
    assert page.get_by_role("img").evaluate(inside)


@pytest.mark.parametrize("width", [360, 620, 900])
def test_the_title_of_the_lines_fits_and_the_draws_key_is_a_dot(open_saved: Open, width: int) -> None:
    page = open_saved(SoftmaxScaleExplorer(), width=width)
    title = page.locator(".tt-chart > svg text", has_text="200 draws").bounding_box()
    frame = page.locator(".tt-chart > svg").bounding_box()
    assert title["x"] + title["width"] <= frame["x"] + frame["width"]
    key = page.locator(".tt-legend .key", has_text="this draw")
    assert key.inner_text().startswith("●")
    expect(key.locator("svg")).to_be_hidden()
