"""The positions explorer as a reader without a kernel meets it: every view by pointer, keyboard and touch."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.book.browser import OVERFLOW
from tests.widgets.test_attention_browser import CONTRAST
from tests.widgets.test_positions import learned
from ttutor.widgets import PositionsExplorer

pytestmark = pytest.mark.browser
Open = Callable[..., Page]


def cell(page: Page, row: int, column: int) -> Locator:
    return page.locator(f'[data-row="{row}"][data-column="{column}"]')


def table(page: Page, rows: int, columns: int) -> np.ndarray:
    values = page.locator("td[data-value]").evaluate_all("cells => cells.map((c) => Number(c.dataset.value))")
    return np.array(values).reshape(rows, columns)


def results(page: Page) -> list[float]:
    """The numbers in bold, with all their digits."""
    return page.locator(".fact [data-value]").evaluate_all("all => all.map((e) => Number(e.dataset.value))")


def fact(page: Page) -> str:
    return page.locator(".fact").text_content() or ""


def alike(page: Page) -> list[int]:
    return [int(place) for place in page.locator(".alike").inner_text().split(", ")]


def slide(page: Page, label: str, *keys: str) -> None:
    for key in keys:
        page.get_by_label(label, exact=True).press(key)


# ---------------------------------------------------------------- the table


@pytest.mark.parametrize(("length", "width"), [(2, 4), (13, 12), (64, 64)])
def test_the_numbers_are_those_of_the_encoding(open_saved: Open, length: int, width: int) -> None:
    made = PositionsExplorer(length, width)
    np.testing.assert_allclose(table(open_saved(made), length, width), made.encoding, atol=1e-6)


def test_a_longer_table_keeps_its_old_cells_and_a_wider_one_does_not(open_saved: Open) -> None:
    page = open_saved(PositionsExplorer(8, 12))
    before = table(page, 8, 12)
    slide(page, "Length", "ArrowRight", "ArrowRight")
    np.testing.assert_array_equal(table(page, 10, 12)[:8], before)
    slide(page, "d_model", "ArrowRight")
    after = table(page, 10, 14)
    np.testing.assert_allclose(after, PositionsExplorer(10, 14).encoding, atol=1e-6)
    assert abs(after[:8, :12] - before).max() > 0.01


def test_a_cell_tells_position_feature_wavelength_and_formula(open_saved: Open) -> None:
    made = PositionsExplorer(16, 32)
    page = open_saved(made)
    cell(page, 5, 6).hover()
    assert fact(page).startswith("Position 5. Feature 6, wavelength 35.33 positions: sin(5 / 10000")
    assert page.locator(".fact sup").inner_text() == "6/32"
    assert f"sin({5 / 10000 ** (6 / 32):.4f}) = {made.encoding[5, 6]:.6f}" in fact(page)
    assert results(page) == [pytest.approx(made.encoding[5, 6], abs=1e-6)]
    cell(page, 5, 7).focus()
    assert "cos(5 / 10000" in fact(page)
    page.keyboard.press("ArrowDown")
    assert results(page) == [pytest.approx(made.encoding[6, 7], abs=1e-6)]
    cell(page, 3, -1).focus()
    assert fact(page) == "Position 3: squared length 16.000 = 32/2, as everywhere"
    expect(page.locator('[role="status"]')).to_contain_text("squared length 16.000")


def test_a_tap_selects_a_cell(open_saved: Open) -> None:
    page = open_saved(PositionsExplorer(16, 32), width=360, touch=True)
    cell(page, 4, 3).tap()
    assert "Position 4. Feature 3" in fact(page)


def test_sign_is_told_by_a_mark_and_in_words(open_saved: Open) -> None:
    made = PositionsExplorer(16, 32)
    page = open_saved(made)
    marks = page.locator("td[data-value]").evaluate_all("all => all.map((c) => c.textContent)")
    assert [mark == "−" for mark in marks] == (made.encoding < 0).flatten().tolist()
    expect(cell(page, 2, 1)).to_have_attribute("aria-label", f"position 2, feature 1: −{-made.encoding[2, 1]:.3f}")


@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_marks_and_digits_stay_readable(open_saved: Open, dark: bool, width: int) -> None:
    found = open_saved(PositionsExplorer(16, width), dark=dark).evaluate(CONTRAST)
    assert len(found) > 20
    assert min(found) >= 4.5


# ---------------------------------------------------------------- clock hands


def test_hands_point_where_the_features_say(open_saved: Open) -> None:
    made = PositionsExplorer(32, 8, "clocks", position=4)
    page = open_saved(made)
    for place in (4, 5):
        tips = page.locator(".dials line").evaluate_all(
            "all => all.flatMap((e) => [e.x2, e.y2].map((x) => x.baseVal.value))"
        )
        np.testing.assert_allclose(tips, made.encoding[place] * np.tile([1, -1], 4), atol=1e-6)  # y runs down
        page.get_by_role("button", name="Next", exact=True).click()


def test_which_positions_look_alike_by_each_hand(open_saved: Open) -> None:
    made = PositionsExplorer(32, 32, "clocks", position=4)
    page = open_saved(made)
    for name, reads in (("fastest hand", "fast"), ("first that does not", "turn"), ("slowest", "slow"), ("all", "all")):
        page.locator("label", has_text=name).first.click()
        made.reads = reads
        assert alike(page) == made.candidates
        assert page.locator(".dials .read").count() == (16 if reads == "all" else 1)
    made.tolerance = 1
    slide(page, "Tips look alike when closer than", "End")
    assert alike(page) == made.candidates == [3, 4, 5]
    expect(page.locator('[role="status"]')).to_contain_text("3, 4, 5")


def test_the_player_steps_to_the_end_and_stops(open_saved: Open) -> None:
    page = open_saved(PositionsExplorer(4, 8, "clocks", position=2))
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".fact")).to_contain_text("Hands at position 3", timeout=5000)
    expect(page.get_by_role("button", name="Play")).to_be_visible()


# ---------------------------------------------------------------- similarity


@pytest.mark.parametrize("projected", [False, True])
def test_products_are_pythons_and_their_spread_tells_the_rule(open_saved: Open, projected: bool) -> None:
    made = PositionsExplorer(20, 16, "similarity", position=3, offset=5)
    page = open_saved(made)
    if projected:
        page.get_by_label("after random").check()
        made.projected = True
    for place in (3, 4):
        along = np.diagonal(made.similarity, 5)
        # The encoding is float32 in Python, and a product sums its roundings.
        np.testing.assert_allclose(results(page), [made.similarity[place, place + 5], along.std()], atol=2e-6)
        slide(page, "Position p", "ArrowRight")
    assert ("standard deviation 0.00" in fact(page)) != projected


def test_the_cursor_of_the_chart_chooses_the_distance(open_saved: Open) -> None:
    made = PositionsExplorer(20, 16, "similarity", position=3)
    page = open_saved(made)
    curve = page.get_by_role("slider", name="Product by distance")
    curve.press("End")
    assert "k = 16:" in fact(page)
    curve.press("Home")
    assert "k = −3:" in fact(page)
    assert results(page)[0] == pytest.approx(made.similarity[3, 0], abs=2e-6)


# ---------------------------------------------------------------- rotary


def test_the_score_stays_while_both_move_and_goes_when_one_does(open_saved: Open) -> None:
    made = PositionsExplorer(view="rotary")
    page = open_saved(made)
    first = results(page)
    np.testing.assert_allclose(first, [made.score] * 2, atol=1e-6)
    page.get_by_role("button", name="both +1").click()
    page.get_by_role("button", name="both +1").click()
    expect(page.get_by_label("Query position m")).to_have_value("10")
    np.testing.assert_allclose(results(page), first, atol=1e-9)
    slide(page, "Key position n", "ArrowRight")
    np.testing.assert_allclose(results(page)[0], made.score_at(10, 8), atol=1e-6)
    assert "m − n = 2" in fact(page)
    page.get_by_label("0.01", exact=True).check()
    made.pair = 2
    np.testing.assert_allclose(results(page)[0], made.score_at(10, 8), atol=1e-6)


def test_neither_goes_below_position_0(open_saved: Open) -> None:
    page = open_saved(PositionsExplorer(view="rotary", query_position=3, key_position=0))
    page.get_by_role("button", name="both −1").click()
    expect(page.get_by_label("Query position m")).to_have_value("3")


# ---------------------------------------------------------------- ALiBi


@pytest.mark.parametrize("n_heads", [1, 8, 12])
def test_slopes_biases_and_weights_are_pythons(open_saved: Open, n_heads: int) -> None:
    made = PositionsExplorer(24, view="alibi", n_heads=n_heads, head=1, distance=7)
    page = open_saved(made)
    for head in sorted({1, n_heads}):
        slope = -made.bias[head - 1, 1]
        expected = [slope, made.bias[head - 1, 7], made.alibi_weights[head - 1, 7]]
        np.testing.assert_allclose(results(page), expected, atol=1e-6)
        slide(page, "Look at head", "End")
    assert ("No power of two" in fact(page)) == (n_heads == 12)
    names = page.locator(".tt-legend").first.inner_text()
    shown = [float(found) for found in re.findall(r"slope ([\d.]+)", names)]
    np.testing.assert_allclose(shown, -made.bias[:, 1], atol=5e-5)


# ---------------------------------------------------------------- one's own table, views, reset


def test_a_table_of_ones_own_has_two_views_and_ends_at_its_last_row(open_saved: Open) -> None:
    made = PositionsExplorer(6, table=learned(), position=2, offset=3)
    page = open_saved(made)
    np.testing.assert_allclose(table(page, 6, 6), made.encoding, atol=1e-6)
    assert page.get_by_role("radio").count() == 2
    expect(page.get_by_label("d_model")).to_be_hidden()
    slide(page, "Length", "End")
    made.length = 12
    np.testing.assert_allclose(table(page, 12, 6), made.encoding, atol=1e-6)
    cell(page, 1, 2).hover()
    assert results(page) == [pytest.approx(made.encoding[1, 2], abs=1e-9)]
    page.get_by_label("similarity").check()
    expected = [made.similarity[2, 5], np.diagonal(made.similarity, 3).std()]
    np.testing.assert_allclose(results(page), expected, atol=1e-9)
    expect(page.get_by_label("after random")).to_be_hidden()


@pytest.mark.filterwarnings("ignore:a table of")
def test_a_capped_table_says_so(open_saved: Open) -> None:
    page = open_saved(PositionsExplorer(48, table=learned(100, 64)), width=360)
    assert "First 48 of 100 positions, 32 of 64 features." in page.locator("section.tt").inner_text()
    assert page.evaluate(OVERFLOW) == []


def test_reset_brings_everything_back(open_saved: Open) -> None:
    page = open_saved(PositionsExplorer(8, 8))
    before = page.locator("section.tt").inner_text()
    cell(page, 2, 2).hover()
    slide(page, "d_model", "End")
    page.get_by_label("clock hands").check()
    slide(page, "Length", "Home")
    page.get_by_role("button", name="Reset all").click()
    assert page.locator("section.tt").inner_text() == before


def test_what_stands_nowhere_is_not_shown(open_saved: Open) -> None:
    made = PositionsExplorer(4, 8, selected=[60, 2], position=63, offset=-63, head=16, n_heads=3, distance=63)
    page = open_saved(made)
    assert fact(page) == "Point at, tap or move to a cell for its number."
    page.get_by_label("clock hands").check()
    assert "Hands at position 3." in fact(page)
    page.get_by_label("similarity").check()
    assert "p = 3, k = −3:" in fact(page)
    page.get_by_label("ALiBi").check()
    assert fact(page).startswith("Head 3, slope")


@pytest.mark.parametrize("view", ["clocks", "similarity", "rotary", "alibi"])
def test_each_view_fits_a_phone_at_its_largest(open_saved: Open, view: str) -> None:
    page = open_saved(PositionsExplorer(64, 64, view, n_heads=16, head=16, position=63), width=360)
    assert page.evaluate(OVERFLOW) == []
    assert page.locator(".fact").inner_text()
