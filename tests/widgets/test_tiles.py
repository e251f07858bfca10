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
    made = TilesExplorer()
    with pytest.raises(ValueError, match="there were 16 scores, and now 4; make a new TilesExplorer"):
        made.scores = [1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"scores\[0\] is nan; every entry has to be a finite number"):
        made.scores = [np.nan] * 16


def width(page: Page, key: str) -> float:
    return float(page.locator(f'[data-key="{key}"]').get_attribute("width") or 0)


@in_browser
def test_the_sum_on_screen_is_pythons_and_only_one_tile_exists(show: Show) -> None:
    page = show(TilesExplorer(step=0))
    held = page.locator('[data-key="held"]')
    assert held.text_content() == "held: 0 of 16"
    for step in range(1, N_STEPS + 1):
        slide(page, "Tile", "ArrowRight")
        assert numbers(page, "rect") == pytest.approx([TilesExplorer(step=step).running()[1]])
        assert page.locator("[data-key^=bar].power").count() == 4
        assert page.locator("[data-key^=bar].gone").count() == 4 * (step - 1)
        assert page.locator("[data-key^=score]").count() == 4
        assert held.text_content() == "held: 4 + 2 of 16"


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
    assert page.locator('[data-key="one"]').text_content() == "old bars × 0.37"
    assert page.locator('[data-key="kept"]').text_content() == "old sum × e3 − 4 = 0.37"
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


def set_score(page: Page, place: int, *keys: str) -> None:
    for key in keys:
        page.get_by_label(f"score {place + 1}", exact=True).press(key)


@in_browser
def test_a_score_that_is_set_changes_factor_and_sum_as_python_has_them(show: Show) -> None:
    page = show(TilesExplorer(step=2))
    made = TilesExplorer(step=2)
    for place, keys, score in ((4, ["ArrowUp", "ArrowUp"], 6), (5, ["Home"], 0), (4, ["ArrowDown"], 5)):
        set_score(page, place, *keys)
        made.scores = [*made.scores[:place], score, *made.scores[place + 1 :]]
        assert page.locator(f'[data-key="knob{place - 4}"]').get_attribute("aria-valuenow") == str(score)
        assert numbers(page, "rect") == pytest.approx([made.running()[1]])
        factor = np.exp(made.running(1)[0] - made.running(2)[0])
        written = f"{factor:.3f}" if factor < 0.1 else f"{factor:.2f}"
        kept = page.locator('[data-key="kept"]').text_content()
        assert kept == f"old sum × e3 − {made.running()[0]:g} = {written}"
    set_score(page, 4, "End", "ArrowUp")
    assert page.locator('[data-key="score0"]').text_content() == "6", "there is no higher score"


@in_browser
@pytest.mark.parametrize("key", ["Home", "End"])
def test_the_sum_ends_on_its_mark_whatever_the_scores(show: Show, key: str) -> None:
    page = show(TilesExplorer(step=0))
    for step in range(1, N_STEPS + 1):
        slide(page, "Tile", "ArrowRight")
        for place in range(4 * step - 4, 4 * step - (step % 2)):
            set_score(page, place, key)
        ends = [page.locator(f'[data-key="part{place}"]').bounding_box() for place in range(4)]
        mark, picture = (page.locator(one).bounding_box() for one in ('[data-key="mark"]', ".tt-picture > svg"))
        reached = max(box["x"] + box["width"] for box in ends)
        assert reached <= mark["x"] + mark["width"] / 2 + 1.5
        if "l" not in page.locator('[data-key="mark"]').get_attribute("d"):  # an arrow: beyond the edge
            assert mark["x"] + mark["width"] <= picture["x"] + picture["width"] + 3
    assert reached == pytest.approx(mark["x"] + mark["width"] / 2, abs=1.5)
    assert "It ends on its mark" in page.locator(".tt-found").inner_text()


@in_browser
def test_a_score_follows_the_pointer_to_whole_numbers_and_fingers_have_room(show: Show) -> None:
    page = show(TilesExplorer(), width=360)
    knobs = [page.locator(f'[data-key="knob{place}"]').bounding_box() for place in range(4)]
    middles = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in knobs]
    assert min(np.diff([x for x, _ in middles])) >= 32
    x, y = middles[1]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 200, steps=5)  # beyond the tile
    page.mouse.up()
    assert page.locator('[data-key="score1"]').text_content() == "6"
    assert page.locator('[data-key="one"]').text_content() == "the largest so far, 6, counts 1"


@in_browser
def test_it_opens_with_one_score_there_and_back(show: Show) -> None:
    page = show(TilesExplorer(), motion=True)
    for score in ("5", "2"):
        expect(page.locator('[data-key="score3"]')).to_have_text(score, timeout=30_000)
