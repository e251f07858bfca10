"""The moving tile: its running maxima and sums are those of the whole row, in Python and on the page."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers, slide
from ttutor.widgets import TilesExplorer


def specimen() -> TilesExplorer:
    """The figure as the gallery shows it."""
    return TilesExplorer()


N_STEPS = 4


def extremes() -> list[TilesExplorer]:
    return [TilesExplorer([-100.0, 0, 0, 0, 900, 1, 2, 3], step=2)]


@pytest.mark.parametrize("step", range(N_STEPS + 1))
def test_what_was_corrected_tile_by_tile_is_what_the_whole_row_gives(step: int) -> None:
    made = TilesExplorer(step=step)
    maximum, total = made.running()
    seen = np.array(made.scores)[: 4 * step]
    assert maximum == (seen.max() if step else -np.inf)
    assert total == pytest.approx(np.exp(seen - maximum).sum() if step else 0)


def test_bad_settings_are_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="step has to be from 0 to 4, not 10; it counts the tiles"):
        TilesExplorer(step=10)
    with pytest.raises(ValueError, match=r"scores has shape \(3,\), expected \(keys,\)"):
        TilesExplorer([1, 2, 3])


def width(page: Page, key: str) -> float:
    return float(page.locator(f'[data-key="{key}"]').get_attribute("width") or 0)


@in_browser
def test_the_sum_on_screen_is_pythons_and_only_one_tile_exists(show: Show) -> None:
    page = show(TilesExplorer(step=0))
    held = page.locator('[data-key="held"]')
    assert held.text_content() == "held: 0 of 16 numbers"
    for step in range(1, N_STEPS + 1):
        slide(page, "Tile", "ArrowRight")
        assert numbers(page, "rect") == pytest.approx([TilesExplorer(step=step).running()[1]])
        assert page.locator("[data-key^=bar].power").count() == 4
        assert page.locator("[data-key^=bar].gone").count() == 4 * (step - 1)
        assert page.locator("[data-key^=score]").count() == 4
        assert held.text_content() == "held: 4 + 2 of 16 numbers"


@in_browser
def test_when_a_larger_score_comes_every_old_bar_and_the_old_sum_shrink_by_one_factor(show: Show) -> None:
    page = show(TilesExplorer(step=1))
    bars = page.locator("[data-key^=bar]")
    heights = "all => all.map((bar) => Number(bar.getAttribute('height')))"
    before, whole = bars.evaluate_all(heights), sum(width(page, f"part{place}") for place in range(4))
    slide(page, "Tile", "ArrowRight")
    after = bars.evaluate_all(heights)[:4]
    np.testing.assert_allclose(np.divide(after, before), np.exp(3 - 4), rtol=2e-3)
    assert width(page, "sum") / whole == pytest.approx(np.exp(3 - 4), rel=2e-3)
    assert page.locator('[data-key="one"]').text_content() == "all old bars × 0.37"
    assert "1 more is subtracted" in page.locator(".tt-found").inner_text()
    slide(page, "Tile", "ArrowRight")
    assert "No larger number came" in page.locator(".tt-found").inner_text()
    assert page.locator('[data-key="kept"]').text_content() == "sum so far"


@in_browser
def test_nothing_is_said_while_the_bars_are_on_their_way(show: Show) -> None:
    page = show(TilesExplorer(step=3), motion=True)
    slide(page, "Tile", "ArrowRight")
    assert page.locator(".tt-found").inner_text() == ""
    expect(page.locator(".tt-found")).to_contain_text("It ends on its mark")
    mark = page.locator('[data-key="mark"]').bounding_box()
    last = page.locator('[data-key="part3"]').bounding_box()
    assert last["x"] + last["width"] == pytest.approx(mark["x"] + mark["width"] / 2, abs=1.5)


@in_browser
def test_the_mark_is_the_whole_row_in_the_unit_of_the_bars_so_that_no_part_passes_it(show: Show) -> None:
    page = show(TilesExplorer(step=1))
    for step in range(1, N_STEPS + 1):
        ends = [page.locator(f'[data-key="part{place}"]').bounding_box() for place in range(4)]
        mark = page.locator('[data-key="mark"]').bounding_box()
        reached, whole = max(box["x"] + box["width"] for box in ends), mark["x"] + mark["width"] / 2
        assert reached <= whole + 1.5
        start = page.locator('[data-key="sum"]').bounding_box()["x"]
        top, total = TilesExplorer(step=step).running()
        if step == 1:
            assert page.locator('[data-key="mark"]').get_attribute("d").count("l") == 2, "an arrow: beyond the edge"
        else:
            share = total / np.exp(np.array(TilesExplorer().scores) - top).sum()
            assert (reached - start) / (whole - start) == pytest.approx(share, abs=0.02)
        slide(page, "Tile", "ArrowRight")
    assert reached == pytest.approx(whole, abs=1.5)
