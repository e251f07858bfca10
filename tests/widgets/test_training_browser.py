"""The training explorer as a reader without a kernel meets it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.widgets.test_training import specimen
from ttutor.widgets import TrainingExplorer

pytestmark = pytest.mark.browser

Open = Callable[..., Page]


def value(page: Page, name: str) -> float:
    return float(page.locator(f'[data-name="{name}"]').get_attribute("data-value"))


@pytest.mark.parametrize(
    "options", [{}, {"d_model": 64, "warmup": 100, "factor": 4.0, "steps": 2000}, {"d_model": 4096, "warmup": 10_000}]
)
def test_rates_on_screen_are_pythons(open_saved: Open, options: dict) -> None:
    made = TrainingExplorer(**options)
    page = open_saved(made)
    assert math.isclose(value(page, "peak"), made.rates(made.warmup)["paper"], rel_tol=1e-9)
    picture = page.get_by_role("slider", name="Learning rate by step")
    picture.focus()
    for key, step in (("Home", 1), ("End", made.steps)):
        picture.press(key)
        spoken = picture.get_attribute("aria-valuetext").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        for name, rate in made.rates(step).items():
            shown = float(re.search(rf"(?:; |, |^){name}: ([\d.·-]+)", spoken)[1].replace("·10", "e"))
            assert math.isclose(shown, rate, rel_tol=6e-3, abs_tol=1e-12), (name, spoken)


def test_every_slider_of_the_schedule_moves_its_trait(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    for label, key, trait, new in [
        ("width d_model", "End", "d_model", 4096),
        ("warm-up", "Home", "warmup", 100),
        ("factor", "End", "factor", 4.0),
        ("length of the training", "Home", "steps", 2000),
    ]:
        page.get_by_label(label).press(key)
        setattr(made, trait, new)
        assert math.isclose(value(page, "peak"), made.rates(made.warmup)["paper"], rel_tol=1e-9)
    page.get_by_role("button", name="Reset all").click()
    assert math.isclose(value(page, "peak"), specimen().rates(4000)["paper"], rel_tol=1e-9)


def test_the_shift_is_walked_by_button_pointer_and_key(open_saved: Open) -> None:
    page = open_saved(specimen())
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


def test_without_the_shift_the_answer_is_in_the_input(open_saved: Open) -> None:
    page = open_saved(TrainingExplorer(["un", "chat"], view="shift"))
    page.get_by_label("shift the input by one").uncheck()
    expect(page.locator(".facts:visible")).to_contain_text("the answer is the last token that it reads")
    expect(page.locator("td.wrong")).to_have_text("un")
    expect(page.locator('[role="status"]')).to_contain_text("It learns to copy")


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.0}, {"epsilon": 0.5, "vocab_size": 2}, {"confidence": 0.001}])
def test_losses_on_screen_are_pythons(open_saved: Open, options: dict) -> None:
    made = TrainingExplorer(view="smoothing", **options)
    page = open_saved(made)
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


def test_a_tap_moves_the_position(open_saved: Open) -> None:
    page = open_saved(TrainingExplorer(["un", "chat"], view="shift"), width=360, touch=True)
    page.locator('[data-row="0"][data-column="2"]').tap()
    expect(page.locator(".facts:visible")).to_contain_text("reads “<s> un chat”")


@pytest.mark.parametrize("n_tokens", [4, 16])
def test_the_lanes_follow_the_position_on_a_phone(open_saved: Open, n_tokens: int) -> None:
    tokens = specimen().tokens if n_tokens == 4 else [f"token{i}" for i in range(n_tokens)]
    page = open_saved(TrainingExplorer(tokens, view="shift"), width=360)
    box = page.locator(".lanes").bounding_box()
    names = page.locator(".lanes th").first
    for press, places in (("Next", range(n_tokens + 1)), ("Back", range(n_tokens, -1, -1))):
        for place in places:
            cell = page.locator(f'[data-row="1"][data-column="{place}"]').bounding_box()
            assert cell["x"] + cell["width"] <= box["x"] + box["width"] + 0.5
            assert cell["x"] >= names.bounding_box()["x"] + names.bounding_box()["width"] - 0.5
            if place != places[-1]:
                page.get_by_role("button", name=press).click()
    assert page.evaluate("scrollX") == 0


@pytest.mark.parametrize("view", ["schedule", "smoothing"])
@pytest.mark.parametrize("width", [360, 900])
def test_no_tick_is_cut_at_the_right_edge(open_saved: Open, view: str, width: int) -> None:
    page = open_saved(TrainingExplorer(view=view), width=width)
    over = """all => all.filter((t) => t.getBoundingClientRect().right > t.closest("svg").getBoundingClientRect().right)
      .map((t) => t.textContent)"""
    assert page.locator(".tt-chart:visible text").evaluate_all(over) == []


def test_hostile_tokens_stay_text(open_saved: Open) -> None:
    page = open_saved(TrainingExplorer(['<img src=x onerror="window.hacked=1">'], view="shift"))
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
