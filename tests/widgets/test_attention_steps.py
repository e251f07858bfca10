"""Attention step by step: its matrices in Python and on the page, its steps, its fallback and what it refuses."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import (
    HOSTILE,
    cell,
    in_browser,
    press,
    spoken,
)
from ttutor.masks import causal_mask
from ttutor.widgets import AttentionStepsExplorer
from ttutor.widgets.attention_steps import STEPS

TOKENS = "I love ML !".split()


def specimen() -> AttentionStepsExplorer:
    """The figure as the gallery shows it."""
    return AttentionStepsExplorer(TOKENS, step="scores")


def hostile() -> AttentionStepsExplorer:
    return AttentionStepsExplorer(HOSTILE, step="scores", note=HOSTILE[0])


def extremes() -> list[AttentionStepsExplorer]:
    rng = np.random.default_rng(0)
    words, wide = [f"Donaudampfschiff{i}" for i in range(8)], [rng.uniform(-9, 9, size=(8, 16)) for _ in range(4)]
    return [AttentionStepsExplorer(words, *wide, causal=True, step=step) for step in STEPS]


TAP = ('[data-part="QK"] [data-row="3"][data-column="1"]', "dot product of “!” for “love”")


def random_numbers(*shape: int, seed: int) -> torch.Tensor:
    """As in chapter 2."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_numbers_are_those_of_the_chapters_worked_example() -> None:
    made = AttentionStepsExplorer(TOKENS)
    assert made.embeddings == random_numbers(4, 4, seed=11).round(decimals=1).tolist()
    for name, seed in (("w_query", 21), ("w_key", 22), ("w_value", 23)):
        assert getattr(made, name) == random_numbers(3, 4, seed=seed).round(decimals=1).tolist()


@pytest.mark.parametrize("causal", [False, True])
def test_every_matrix_follows_from_the_ones_before(causal: bool) -> None:
    made = AttentionStepsExplorer(TOKENS, causal=causal)
    found = made.trace()
    x, w_query, w_key, w_value = (np.array(one) for one in (made.embeddings, made.w_query, made.w_key, made.w_value))
    np.testing.assert_allclose(found["Q"], x @ w_query.T)
    np.testing.assert_allclose(found["QK"], (x @ w_query.T) @ (x @ w_key.T).T)
    np.testing.assert_allclose(found["S"], found["QK"] / np.sqrt(3))
    allowed = causal_mask(4, 4).numpy() if causal else np.ones((4, 4), bool)
    powers = np.where(allowed, np.exp(found["S"]), 0.0)
    np.testing.assert_allclose(found["A"], powers / powers.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found["AV"], found["A"] @ (x @ w_value.T))
    assert ("M" in found) == causal


EYE = np.eye(2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], EYE), r"embeddings has shape \(2, 2\), expected \(1, any\)"),
        ((["a", "b"], EYE * 11), "between -10 and 10"),
        ((["a", "b"], np.ones((2, 17))), "d_model = 17, at most 16"),
        ((["a", "b"], EYE, np.ones((2, 3))), r"w_query has shape \(2, 3\), expected \(any, 2\)"),
        ((["a", "b"], EYE, EYE, np.ones((3, 2))), r"w_key has shape \(3, 2\), expected \(2, 2\)"),
        ((["a", "b"], EYE, np.ones((9, 2))), "w_query has 9 rows, at most 8"),
    ],
)
def test_bad_input_is_refused_with_a_reason(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AttentionStepsExplorer(*arguments)


def test_the_fallback_has_every_step_and_every_number() -> None:
    made = AttentionStepsExplorer(TOKENS, causal=True)
    text = html.unescape(re.sub(r"<[^>]*>", " ", made.fallback_html()))
    assert made.fallback_html().count("<table>") == len(made.trace()) == 9
    assert made.fallback_html().count("<li>") == len(STEPS)
    for value in made.trace()["AV"].ravel():
        assert f"{value:.2f}".replace("-", "−") in text
    assert "−∞" in text


def part(page: Page, name: str) -> Locator:
    return page.locator(f'[data-part="{name}"]')


def matrix(page: Page, name: str) -> np.ndarray:
    rows = part(page, name).locator("tbody tr")
    read = "rows => rows.map((r) => [...r.querySelectorAll('td')].map((c) => c.dataset.value))"
    return np.array([[float(value) for value in row] for row in rows.evaluate_all(read)])


def shown(page: Page) -> list[str]:
    return page.locator("[data-part]").evaluate_all("all => all.map((e) => e.dataset.part)")


def place(page: Page, name: str, row: int, column: int) -> Locator:
    return cell(page, row, column, within=f'[data-part="{name}"]')


def panel(page: Page) -> str:
    return page.locator(".sum").inner_text()


def sum_in(text: str) -> float:
    """Work out the products that the panel shows, without looking at its result."""
    terms = text.split(" = ")[0].replace("−", "-").split("\n")[-1]
    pairs = re.findall(r"\(?(-?[\d.]+)\)?\s*·\s*\(?(-?[\d.]+)\)?", terms)
    return sum(float(a) * float(b) for a, b in pairs)


def head(n_tokens: int, d_model: int, d_head: int, d_value: int, causal: bool) -> AttentionStepsExplorer:
    rng = np.random.default_rng(n_tokens)
    sizes = [(n_tokens, d_model), (d_head, d_model), (d_head, d_model), (d_value, d_model)]
    tables = [rng.normal(size=size) for size in sizes]
    return AttentionStepsExplorer([f"t{i}" for i in range(n_tokens)], *tables, causal=causal, step="blend")


@in_browser
@pytest.mark.parametrize(
    "made",
    [
        AttentionStepsExplorer(TOKENS, step="blend"),
        AttentionStepsExplorer(TOKENS, step="blend", causal=True),
        head(1, 1, 1, 1, True),
        head(8, 16, 8, 5, False),
        head(5, 2, 7, 3, True),
        AttentionStepsExplorer(["a", "b"], 10 * np.eye(2), 10 * np.eye(2), 10 * np.eye(2), step="blend"),
    ],
    ids=repr,
)
def test_numbers_on_screen_are_pythons(show: Show, made: AttentionStepsExplorer) -> None:
    page = show(made)
    expected = made.trace()
    assert set(shown(page)) == set(expected)
    for name, table in expected.items():
        np.testing.assert_allclose(matrix(page, name), table, atol=1e-6)


@in_browser
@pytest.mark.parametrize(
    ("name", "step", "title"),
    [
        ("Q", "project", "query of “ML”, feature 1"),
        ("QK", "scores", "dot product of “ML” for “love”"),
        ("AV", "blend", "context of “ML”, feature 1"),
    ],
)
def test_pointing_at_a_number_writes_the_sum_that_made_it(show: Show, name: str, step: str, title: str) -> None:
    made = AttentionStepsExplorer(TOKENS, step=step)
    page = show(made)
    place(page, name, 2, 1).hover()
    text = panel(page)
    value = made.trace()[name][2, 1]
    assert text.startswith(title)
    assert sum_in(text) == pytest.approx(value, abs=0.02)
    assert float(text.split(" = ")[-1].replace("−", "-")) == pytest.approx(value, abs=5.1e-4)


@in_browser
def test_forward_and_back_through_all_steps_with_one_number_followed(show: Show) -> None:
    page = show(AttentionStepsExplorer(TOKENS))
    seen = [shown(page)[0]]
    for _ in range(5):
        press(page, "Next")
        seen.append(shown(page)[0])
    assert seen == ["X", "Q", "QK", "S", "A", "AV"]
    assert "step 6 of 6: Blend" in page.locator(".tt-player").inner_text()
    expect(page.get_by_role("button", name="Next")).to_have_attribute("aria-disabled", "true")
    press(page, "Back")
    assert shown(page)[0] == "A"
    assert "Each row of scores becomes shares" in spoken(page).inner_text()
    place(page, "A", 3, 2).hover()
    assert panel(page).startswith("weight of “!” for “ML”")
    press(page, "Back")
    assert panel(page).startswith("score of “!” for “ML”")


@in_browser
def test_the_mask_adds_a_step_and_hides_later_keys(show: Show) -> None:
    page = show(AttentionStepsExplorer(TOKENS, step="mask", causal=True))
    assert "step 5 of 7: Mask" in page.locator(".tt-player").inner_text()
    expect(place(page, "M", 0, 3)).to_have_text("−∞")
    expect(place(page, "M", 0, 3)).to_have_attribute("aria-label", "masked score of “I” for “!”: masked")
    expect(place(page, "M", 0, 3)).to_have_class(re.compile("tt-hatch"))
    place(page, "M", 0, 3).hover()
    assert "a later key = −∞" in panel(page)
    assert place(page, "M", 0, 3).evaluate("e => getComputedStyle(e).backgroundImage") == "none"  # digits stand on it
    names = page.locator("[data-part] .name").all_inner_texts()
    assert [name.split()[0] for name in names].count("S") == 1
    assert [name.split()[0] for name in names].count("Smasked") == 1
    press(page, "Next")
    assert "softmax(" in page.locator(".formula").inner_text()
    assert "masked" in page.locator(".formula").inner_text()
    press(page, "Back")
    page.get_by_label("causal mask").uncheck()
    assert "step 4 of 6: Scale" in page.locator(".tt-player").inner_text()
    assert "M" not in shown(page)
