"""The moving tile: its running maxima and sums are those of the whole rows, in Python and on the page."""

from __future__ import annotations

import numpy as np
import pytest

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers, slide
from ttutor.widgets import TilesExplorer
from ttutor.widgets.tiles import N_STEPS


def specimen() -> TilesExplorer:
    """The figure as the gallery shows it."""
    return TilesExplorer()


@pytest.mark.parametrize("step", range(N_STEPS + 1))
def test_what_was_corrected_tile_by_tile_is_what_whole_rows_give(step: int) -> None:
    made = TilesExplorer(step=step)
    maximum, total = made.running()
    for i, row in enumerate(np.array(made.scores)):
        seen = row[: 4 * int(np.clip(step - 3 * (i // 4), 0, 3))]
        assert maximum[i] == (seen.max() if len(seen) else -np.inf)
        assert total[i] == pytest.approx(np.exp(seen - maximum[i]).sum() if len(seen) else 0)


def test_bad_settings_are_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="step has to be from 0 to 9, not 10; it counts the tiles"):
        TilesExplorer(step=10)


@in_browser
def test_sums_on_screen_are_pythons_and_only_one_tile_exists(show: Show) -> None:
    page = show(TilesExplorer(step=0))
    for step in range(1, N_STEPS + 1):
        slide(page, "Tile", "ArrowRight")
        _, total = TilesExplorer(step=step).running()
        np.testing.assert_allclose(numbers(page, "rect"), total[total > 0], atol=1e-6)
        assert page.locator("[data-key^=cell].power").count() == 16


@in_browser
def test_a_correction_is_told_and_its_rows_are_bold(show: Show) -> None:
    page = show(TilesExplorer(step=1))
    slide(page, "Tile", "ArrowRight")
    (before, _), (after, _) = (TilesExplorer(step=step).running() for step in (1, 2))
    assert "A row met a larger score" in page.locator(".tt-found").inner_text()
    for row in range(4):
        largest = page.locator(f'[data-key="top{row}"]')
        assert float(largest.text_content().replace("−", "-")) == pytest.approx(after[row], abs=0.0051)
        assert largest.get_attribute("font-weight") == ("700" if after[row] > before[row] else "400")


@in_browser
def test_bars_end_on_the_marks_of_whole_rows(show: Show) -> None:
    page = show(TilesExplorer(step=N_STEPS))
    for row in range(12):
        ends = [page.locator(f'[data-key="{part}{row}"]').bounding_box() for part in ("sum", "added", "mark")]
        kept, added, mark = ends
        assert max(box["x"] + box["width"] for box in (kept, added)) == pytest.approx(
            mark["x"] + mark["width"] / 2, abs=1.5
        )
