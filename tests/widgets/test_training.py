"""The training explorer: its numbers are those of the trainer's own functions, in Python and on the page."""

from __future__ import annotations

import math
import re

import pytest
import torch
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import (
    HOSTILE,
    in_browser,
)
from ttutor.widgets import TrainingExplorer
from ttutor.widgets.training import VIEWS


def specimen() -> TrainingExplorer:
    """The figure as the gallery shows it."""
    return TrainingExplorer(["le", "chat", "noir", "dort"])


def hostile() -> TrainingExplorer:
    return TrainingExplorer(HOSTILE, view="shift")


def extremes() -> list[TrainingExplorer]:
    return [TrainingExplorer([f"token{i}" for i in range(24)], view=view) for view in VIEWS]


TAP = ("label:has-text('shifted input')", "reads “<s>”")


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
        ({"factor": 1e9}, ValueError, "from 0 to 100"),
        ({"epsilon": 1.0}, ValueError, "epsilon has to be from 0 to 0.9"),
        ({"confidence": 1.0}, ValueError, "from 0.001 to 0.9999"),
        ({"vocab_size": 1}, ValueError, "from 2 to 1,000,000"),
    ],
)
def test_bad_input_is_refused_with_a_reason(options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        TrainingExplorer(**options)


def value(page: Page, name: str) -> float:
    return float(page.locator(f'[data-name="{name}"]').get_attribute("data-value"))


@in_browser
@pytest.mark.parametrize(
    "options", [{}, {"d_model": 64, "warmup": 100, "factor": 4.0, "steps": 2000}, {"d_model": 4096, "warmup": 10_000}]
)
def test_rates_on_screen_are_pythons(show: Show, options: dict) -> None:
    made = TrainingExplorer(**options)
    page = show(made)
    assert math.isclose(value(page, "peak"), made.rates(made.warmup)["paper"], rel_tol=1e-9)
    picture = page.get_by_role("slider", name="Learning rate by step")
    picture.focus()
    for key, step in (("Home", 1), ("End", made.steps)):
        picture.press(key)
        spoken = picture.get_attribute("aria-valuetext").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        for name, rate in made.rates(step).items():
            shown = float(re.search(rf"(?:; |, |^){name}: ([\d.·-]+)", spoken)[1].replace("·10", "e"))
            assert math.isclose(shown, rate, rel_tol=6e-3, abs_tol=1e-12), (name, spoken)


@in_browser
def test_the_shift_is_walked_by_button_pointer_and_key(show: Show) -> None:
    page = show(specimen())
    page.get_by_label("shifted input").check()
    expect(page.locator(".facts:visible")).to_contain_text("reads “<s>” and has to say “le”, which it has not seen")
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".facts:visible")).to_contain_text("reads “<s> le” and has to say “chat”")
    page.locator('[data-row="1"][data-column="4"]').hover()
    expect(page.locator(".facts:visible")).to_contain_text("has to say “</s>”")
    page.locator('[data-row="1"][data-column="4"]').focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator('[data-row="1"][data-column="3"]')).to_be_focused()
    expect(page.locator(".facts:visible")).to_contain_text("has to say “dort”")


@in_browser
@pytest.mark.parametrize("options", [{}, {"epsilon": 0.0}, {"epsilon": 0.5, "vocab_size": 2}, {"confidence": 0.001}])
def test_losses_on_screen_are_pythons(show: Show, options: dict) -> None:
    made = TrainingExplorer(view="smoothing", **options)
    page = show(made)
    assert math.isclose(value(page, "loss"), made.loss_at(made.confidence), abs_tol=1e-6)
    assert math.isclose(value(page, "floor"), made.floor, abs_tol=1e-6)
    for label, key, trait, new in [
        ("smoothing ε", "End", "epsilon", 0.5),
        ("vocabulary", "Home", "vocab_size", 2),
        ("probability of the right token", "End", "confidence", 0.999),
    ]:
        page.get_by_label(label, exact=True).press(key)
        setattr(made, trait, new)
        assert math.isclose(value(page, "loss"), made.loss_at(made.confidence), abs_tol=1e-6)


@in_browser
@pytest.mark.parametrize("view", ["schedule", "smoothing"])
@pytest.mark.parametrize("width", [360, 900])
def test_no_tick_is_cut_at_the_right_edge(show: Show, view: str, width: int) -> None:
    page = show(TrainingExplorer(view=view), width=width)
    over = """charts => charts.flatMap((chart) => [...chart.querySelectorAll("text")]
      .filter((t) => t.getBoundingClientRect().right > chart.getBoundingClientRect().right)
      .map((t) => t.textContent))"""
    expect(page.locator(".tt-chart > svg:visible text").first).to_be_visible()
    assert page.locator(".tt-chart > svg:visible").evaluate_all(over) == []
