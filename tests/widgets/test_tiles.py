"""The moving tile: its running maxima and sums are those of the whole rows, in Python and on the page."""

from __future__ import annotations

import numpy as np
import pytest

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers, slide
from ttutor.widgets import TilesExplorer


def specimen() -> TilesExplorer:
    """The figure as the gallery shows it."""
    return TilesExplorer()


N_STEPS = 9


def extremes() -> list[TilesExplorer]:
    return [TilesExplorer([[-100.0, 0, 0, 0, 900, 1, 2, 3]], step=2)]


@pytest.mark.parametrize("step", range(N_STEPS + 1))
def test_what_was_corrected_tile_by_tile_is_what_whole_rows_give(step: int) -> None:
    made = TilesExplorer(step=step)
    maximum, total = made.running()
    for i, row in enumerate(np.array(made.scores)):
        seen = row[: 4 * int(np.clip(step - 3 * i, 0, 3))]
        assert maximum[i] == (seen.max() if len(seen) else -np.inf)
        assert total[i] == pytest.approx(np.exp(seen - maximum[i]).sum() if len(seen) else 0)


def test_bad_settings_are_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="step has to be from 0 to 9, not 10; it counts the tiles"):
        TilesExplorer(step=10)
    with pytest.raises(ValueError, match=r"scores has shape \(1, 3\), expected \(queries, keys\)"):
        TilesExplorer([[1, 2, 3]])


@in_browser
def test_sums_on_screen_are_pythons_and_only_one_tile_exists(show: Show) -> None:
    page = show(TilesExplorer(step=0))
    for step in range(1, N_STEPS + 1):
        slide(page, "Tile", "ArrowRight")
        _, total = TilesExplorer(step=step).running()
        np.testing.assert_allclose(numbers(page, "rect"), total[total > 0], atol=1e-6)
        assert page.locator("[data-key^=cell].power").count() == 4
        assert page.locator("[data-key^=score]").count() == 4


@in_browser
def test_a_correction_is_told_with_its_factor(show: Show) -> None:
    page = show(TilesExplorer(step=1))
    slide(page, "Tile", "ArrowRight")
    (before, _), (after, _) = (TilesExplorer(step=step).running() for step in (1, 2))
    found = page.locator(".tt-found").inner_text()
    assert f"{after[0]:.0f} is larger than {before[0]:.0f}" in found
    assert page.locator('[data-key="top0"]').text_content() == f"largest: {after[0]:.0f}"
    factor = np.exp(before[0] - after[0])
    assert page.locator('[data-key="factor0"]').text_content() == f"old sum × {factor:.2f}"
    slide(page, "Tile", "ArrowRight", "ArrowRight", "ArrowRight")
    assert "No larger number came" in page.locator(".tt-found").inner_text()
    assert page.locator('[data-key="factor1"]').text_content() == "sum so far"


@in_browser
def test_bars_end_on_the_marks_of_whole_rows(show: Show) -> None:
    for row in range(3):
        page = show(TilesExplorer(step=3 * row + 3))
        parts = [f'[data-key="{name}"]' for name in (f"sum{row}", *(f"part{row}-{place}" for place in range(8, 12)))]
        ends = [page.locator(part).bounding_box() for part in parts]
        mark = page.locator(f'[data-key="mark{row}"]').bounding_box()
        reached = max(box["x"] + box["width"] for box in ends)
        assert reached == pytest.approx(mark["x"] + mark["width"] / 2, abs=1.5)
