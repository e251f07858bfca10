"""The causal mask as a reader without a kernel meets it: a token at a time, by pointer, keyboard and touch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.book.browser import OVERFLOW
from tests.widgets.test_causal_mask import HOSTILE, SCORES, TOKENS
from ttutor.widgets import CausalMaskExplorer

pytestmark = pytest.mark.browser

Open = Callable[..., Page]


def shown_weights(page: Page, causal: bool) -> np.ndarray:
    cells = page.locator("table").nth(0 if causal else 1).locator("td[data-value]")
    values = np.array(cells.evaluate_all("all => all.map((c) => Number(c.dataset.value))"))
    return values.reshape(int(len(values) ** 0.5), -1)


def press(page: Page, name: str, times: int = 1) -> None:
    for _ in range(times):
        page.get_by_role("button", name=name).click(force=True)


def assert_shown(page: Page, made: CausalMaskExplorer, n: int) -> None:
    for causal in (True, False):
        np.testing.assert_allclose(shown_weights(page, causal), made.weights(causal=causal, n_tokens=n), atol=1e-6)


def row_labels(page: Page, table: int) -> list[str]:
    return page.locator("table").nth(table).locator('th[scope="row"]').all_inner_texts()


def test_each_click_adds_a_row_and_a_column_with_pythons_numbers(open_saved: Open) -> None:
    made = CausalMaskExplorer(TOKENS, SCORES)
    page = open_saved(made)
    for n in range(1, 5):
        assert_shown(page, made, n)
        counts = page.locator(".count").all_inner_texts()
        old = f"old row{'s' if n > 2 else ''} changed."
        expected = ["", ""] if n == 1 else [f"Weights: 0 of {n - 1} {old}", f"Weights: {n - 1} of {n - 1} {old}"]
        assert counts == expected
        press(page, "Generate")
    assert_shown(page, made, 4)
    assert "The end mark <eos> has come" in page.locator(".text").inner_text()
    press(page, "Generate", 2)  # nothing comes after it
    assert_shown(page, made, 4)
    expect(page.get_by_role("button", name="Generate")).to_have_attribute("aria-disabled", "true")


def test_old_rows_are_marked_by_a_sign_and_the_sums_are_told(open_saved: Open) -> None:
    page = open_saved(CausalMaskExplorer(TOKENS, SCORES))
    press(page, "Generate", 2)
    assert row_labels(page, 0) == ["the =", "cat =", "sat"]
    assert row_labels(page, 1) == ["the ≠", "cat ≠", "sat"]
    assert "1 + 2 + 3 = 6. If all are computed anew: 1 + 4 + 9 = 14." in page.locator(".sums").inner_text()


def test_the_future_is_hatched_and_minus_infinity_before_the_softmax(open_saved: Open) -> None:
    page = open_saved(CausalMaskExplorer(TOKENS, SCORES, shown=3))
    cell = page.locator("table").first.locator('[data-row="0"][data-column="2"]')
    expect(cell).to_have_attribute("aria-label", "the to sat: masked")
    assert "repeating-linear-gradient" in cell.evaluate("c => getComputedStyle(c).backgroundImage")
    page.get_by_label("scores").check()
    cell = page.locator("table").first.locator('[data-row="0"][data-column="2"]')
    assert cell.inner_text() == "−∞"
    other = page.locator("table").first.locator('[data-row="2"][data-column="0"]')
    assert other.inner_text() == f"{SCORES[2, 0]:.1f}".replace("-", "−")


def test_new_scores_change_no_old_one_and_it_is_said(open_saved: Open) -> None:
    page = open_saved(CausalMaskExplorer(TOKENS, SCORES, shown=2, view="scores"))
    old = page.locator("table").nth(1).locator("td").all_inner_texts()
    press(page, "Generate")
    cells = page.locator("table").nth(1).locator("td").all_inner_texts()
    assert [cells[0], cells[1], cells[3], cells[4]] == old
    assert row_labels(page, 0) == row_labels(page, 1) == ["the =", "cat =", "sat"]
    added = "Scores: no old number changed, one column added; "
    assert page.locator(".count").all_inner_texts() == [
        added + "it is −∞ in old rows, so their weights stay.",
        added + "the softmax over it changes the weights of 2 of 2 old rows.",
    ]


@pytest.mark.parametrize("view", ["weights", "scores"])
@pytest.mark.parametrize(("n_tokens", "width", "is_beside"), [(7, 650, True), (12, 650, False), (12, 1100, True)])
def test_the_two_maps_stay_where_they_are(
    n_tokens: int, width: int, is_beside: bool, view: str, open_saved: Open
) -> None:
    made = CausalMaskExplorer(["the", "cat", "sat", "on", "mats"] * 2 + ["at", "six"], view=view)
    made = CausalMaskExplorer(made.tokens[:n_tokens], view=view)
    page = open_saved(made, width=width)
    for _ in range(n_tokens):
        one, two = (page.locator(".views > div").nth(i).bounding_box() for i in (0, 1))
        assert (one["y"] == two["y"]) == is_beside
        spare = "all => all.map((e) => e.clientWidth - e.scrollWidth)"
        assert page.locator(".tt-matrix").evaluate_all(spare) == [0, 0]
        press(page, "Generate")


def test_back_and_reset_and_their_ends(open_saved: Open) -> None:
    made = CausalMaskExplorer(TOKENS, SCORES, shown=2)
    page = open_saved(made)
    press(page, "Back", 3)
    assert_shown(page, made, 1)
    press(page, "Generate", 9)
    page.get_by_label("scores").check()
    press(page, "Reset")
    assert_shown(page, made, 2)
    assert page.get_by_label("weights").is_checked()


def test_keyboard_and_screen_reader(open_saved: Open) -> None:
    page = open_saved(CausalMaskExplorer(TOKENS, SCORES))
    page.get_by_role("button", name="Generate").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    spoken = page.locator('[role="status"]')
    expect(spoken).to_contain_text("the cat sat Weights: 0 of 2 old rows changed. Weights: 2 of 2 old rows changed.")
    page.locator("table").first.locator('[data-row="0"][data-column="0"]').focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("table").first.locator('[data-row="1"][data-column="0"]')).to_be_focused()


def test_a_tap_generates_on_a_phone(open_saved: Open) -> None:
    made = CausalMaskExplorer([f"Donaudampfschiff{i}" for i in range(12)])
    page = open_saved(made, width=360, touch=True)
    for _ in range(12):
        page.get_by_role("button", name="Generate").tap(force=True)
        assert page.evaluate(OVERFLOW) == []
    assert_shown(page, made, 12)


def test_hostile_tokens_stay_text(open_saved: Open) -> None:
    page = open_saved(CausalMaskExplorer(HOSTILE, end_mark=HOSTILE[0]))
    press(page, "Generate", 3)
    assert page.locator("img").count() == 0
    assert HOSTILE[1] in page.locator(".text").inner_text()


@pytest.mark.filterwarnings("ignore:.*more than fit a screen")
def test_a_cut_says_so_and_has_no_end(open_saved: Open) -> None:
    page = open_saved(CausalMaskExplorer([f"t{i}" for i in range(40)], shown=12))
    press(page, "Generate")
    assert "The first 12 of 40 tokens." in page.locator(".text").inner_text()
    assert "end mark" not in page.locator(".text").inner_text()
