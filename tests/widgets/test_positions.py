"""The positions explorer: its numbers are those of ttutor.positions, in every view; what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import cell, in_browser, numbers, press, slide, spoken
from ttutor.positions import RotaryPositions, alibi_slopes, sinusoidal_encoding
from ttutor.widgets import PositionsExplorer
from ttutor.widgets.positions import VIEWS


def specimen() -> PositionsExplorer:
    """Half as long and as wide as in the gallery."""
    return PositionsExplorer(length=16, d_model=16)


def extremes() -> list[PositionsExplorer]:
    large = {"n_heads": 16, "head": 16, "position": 63}
    own = PositionsExplorer(48, table=learned(100, 64))
    assert "16 of 100 positions and 8 of 64 features" in own.fallback_html()
    return [own, *(PositionsExplorer(64, 64, view, **large) for view in VIEWS)]


TAP = ('[data-row="4"][data-column="3"]', "Position 4. Feature 3")


def learned(positions: int = 12, features: int = 6) -> np.ndarray:
    return 0.02 * np.random.default_rng(0).normal(size=(positions, features))


def test_the_table_is_the_encoding_and_grows_without_changing() -> None:
    short, long = PositionsExplorer(8, 16).encoding, PositionsExplorer(64, 16).encoding
    np.testing.assert_array_equal(short, sinusoidal_encoding(8, 16).numpy())
    np.testing.assert_array_equal(long[:8], short)


def test_the_fastest_hand_is_ambiguous_the_slowest_tells_little_and_all_are_exact() -> None:
    explorer = PositionsExplorer(32, 32, position=4, reads="fast")
    assert explorer.candidates == [4, 10, 23, 29]
    explorer.reads = "slow"
    assert explorer.candidates == list(range(32))
    explorer.reads = "turn"
    assert explorer.candidates == [3, 4, 5]
    explorer.reads = "all"
    assert [PositionsExplorer(32, 32, position=p).candidates for p in range(32)] == [[p] for p in range(32)]


@pytest.mark.parametrize("width", [4, 32, 64])
def test_products_depend_on_the_distance_alone_until_they_are_projected(width: int) -> None:
    explorer = PositionsExplorer(32, width)
    along = [np.diagonal(explorer.similarity, k) for k in range(-20, 21)]
    assert max(line.std() for line in along) < 1e-6
    assert along[20].mean() == pytest.approx(width / 2)
    explorer.projected = True
    assert np.mean([np.diagonal(explorer.similarity, k).std() for k in range(-20, 21)]) > 0.1


def test_the_rotary_score_stays_while_both_move() -> None:
    explorer = PositionsExplorer(query_position=8, key_position=5)
    scores = [explorer.score_at(8 + by, 5 + by) for by in range(50)]
    np.testing.assert_allclose(scores, explorer.score, atol=1e-12)
    assert abs(explorer.score_at(9, 5) - explorer.score) > 0.1
    q, k = (RotaryPositions(8)(torch.tensor([[p]]))(torch.eye(8).double()[None, None, :1]) for p in (8, 5))
    np.testing.assert_allclose(PositionsExplorer(query=[1, 0], key=[1, 0]).score, float((q * k).sum()), atol=1e-12)


@pytest.mark.parametrize("n_heads", [1, 8, 12, 16])
def test_alibi_takes_the_slope_times_the_distance(n_heads: int) -> None:
    explorer = PositionsExplorer(16, n_heads=n_heads)
    np.testing.assert_allclose(explorer.bias, -np.outer(alibi_slopes(n_heads), range(16)), atol=1e-6)
    powers = np.exp(explorer.bias)
    np.testing.assert_allclose(explorer.alibi_weights, powers / powers.sum(1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((2, 3, 4)), r"positions, features\); choose one"),
        ([[1e300] * 2] * 3, "products"),
    ],
)
def test_a_bad_table_is_refused_with_a_reason(table: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PositionsExplorer(table=table)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"length": 1}, ValueError, "length has to be from 2 to 64, not 1"),
        ({"d_model": 7}, ValueError, "even, since features come in pairs, not 7; try 8"),
        ({"heads": 3}, TypeError, "unknown setting heads; there are view, length"),
        ({"selected": [-1, -1]}, ValueError, r"selected has to be \[\] or \[position, feature\]"),
    ],
)
def test_bad_settings_are_refused_with_a_reason(settings: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PositionsExplorer(**settings)


def results(page: Page) -> np.ndarray:
    """The numbers in bold, with all their digits."""
    return numbers(page, ".fact strong")


def fact(page: Page) -> str:
    return page.locator(".fact").text_content() or ""


def alike(page: Page) -> list[int]:
    return [int(place) for place in page.locator(".alike").inner_text().split(", ")]


@in_browser
@pytest.mark.parametrize(("length", "width"), [(2, 4), (13, 12), (64, 64)])
def test_the_numbers_are_those_of_the_encoding(show: Show, length: int, width: int) -> None:
    made = PositionsExplorer(length, width)
    np.testing.assert_allclose(numbers(show(made)), made.encoding.ravel(), atol=1e-6)


@in_browser
def test_a_cell_tells_position_feature_wavelength_and_formula(show: Show) -> None:
    made = PositionsExplorer(16, 32)
    page = show(made)
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
    expect(spoken(page)).to_contain_text("squared length 16.000")


@in_browser
def test_which_positions_look_alike_by_each_hand(show: Show) -> None:
    made = PositionsExplorer(32, 32, "clocks", position=4)
    page = show(made)
    for name, reads in (("fastest hand", "fast"), ("first that does not", "turn"), ("slowest", "slow"), ("all", "all")):
        page.locator("label", has_text=name).first.click()
        made.reads = reads
        assert alike(page) == made.candidates
        assert page.locator(".dials .read").count() == (16 if reads == "all" else 1)
    made.tolerance = 1
    slide(page, "Tips look alike when closer than", "End")
    assert alike(page) == made.candidates == [3, 4, 5]
    expect(spoken(page)).to_contain_text("3, 4, 5")


@in_browser
@pytest.mark.parametrize("projected", [False, True])
def test_products_are_pythons_and_their_spread_tells_the_rule(show: Show, projected: bool) -> None:
    made = PositionsExplorer(20, 16, "similarity", position=3, offset=5)
    page = show(made)
    if projected:
        page.get_by_label("after random").check()
        made.projected = True
    for place in (3, 4):
        along = np.diagonal(made.similarity, 5)
        # The encoding is float32 in Python, and a product sums its roundings.
        np.testing.assert_allclose(results(page), [made.similarity[place, place + 5], along.std()], atol=2e-6)
        slide(page, "Position p", "ArrowRight")
    assert ("standard deviation 0.00" in fact(page)) != projected


@in_browser
def test_the_score_stays_while_both_move_and_goes_when_one_does(show: Show) -> None:
    made = PositionsExplorer(view="rotary")
    page = show(made)
    first = results(page)
    np.testing.assert_allclose(first, [made.score] * 2, atol=1e-6)
    press(page, "both +1", 2)
    expect(page.get_by_label("Query position m")).to_have_value("10")
    np.testing.assert_allclose(results(page), first, atol=1e-9)
    slide(page, "Key position n", "ArrowRight")
    np.testing.assert_allclose(results(page)[0], made.score_at(10, 8), atol=1e-6)
    assert "m − n = 2" in fact(page)
    page.get_by_label("0.01", exact=True).check()
    made.pair = 2
    np.testing.assert_allclose(results(page)[0], made.score_at(10, 8), atol=1e-6)
    slide(page, "Key position n", "Home")
    press(page, "both −1")  # no position is below 0
    expect(page.get_by_label("Query position m")).to_have_value("10")


@in_browser
@pytest.mark.parametrize("n_heads", [1, 8, 12])
def test_slopes_biases_and_weights_are_pythons(show: Show, n_heads: int) -> None:
    made = PositionsExplorer(24, view="alibi", n_heads=n_heads, head=1, distance=7)
    page = show(made)
    for head in sorted({1, n_heads}):
        slope = -made.bias[head - 1, 1]
        expected = [slope, made.bias[head - 1, 7], made.alibi_weights[head - 1, 7]]
        np.testing.assert_allclose(results(page), expected, atol=1e-6)
        slide(page, "Look at head", "End")
    assert ("No power of two" in fact(page)) == (n_heads == 12)
    names = page.locator(".tt-legend").first.inner_text()
    shown = [float(found) for found in re.findall(r"slope ([\d.]+)", names)]
    np.testing.assert_allclose(shown, -made.bias[:, 1], atol=5e-5)
