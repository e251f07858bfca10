"""The patches of an image as a reader without a kernel meets them: by pointer, keyboard and touch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.book.browser import OVERFLOW
from tests.widgets.test_patches import HOSTILE, some_attention, specimen
from ttutor.widgets import PatchesExplorer

pytestmark = pytest.mark.browser
Open = Callable[..., Page]


def numbers(page: Page, kind: str) -> np.ndarray:
    return np.array(page.locator(f".{kind}").evaluate_all("all => all.map((e) => Number(e.dataset.value))"))


def cell(page: Page, place: int):
    return page.locator(f'.cell[data-place="{place}"]')


def tile(page: Page, place: int):
    return page.locator(f'.tile[data-place="{place}"]')


def side(page: Page) -> str:
    return page.locator(".side").inner_text()


def show(page: Page, view: str) -> None:
    page.get_by_label(view, exact=True).check()


def colours(page: Page, selector: str) -> np.ndarray:
    """The pixels that a canvas holds, as height, width and red, green, blue, alpha."""
    width, height, data = page.locator(selector).first.evaluate(
        """c => [c.width, c.height, [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]]"""
    )
    return np.array(data).reshape(height, width, 4)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("view", ["attention", "rollout", "position similarity"])
def test_numbers_on_screen_are_pythons(open_saved: Open, view: str) -> None:
    made = specimen()
    page = open_saved(made)
    show(page, view)
    made.view = {"position similarity": "positions"}.get(view, view)
    for layer in (1, 2):
        if view != "position similarity":
            page.get_by_label("Layer", exact=True).press("Home" if layer == 1 else "End")
            made.layer = layer
        for place in (0, 15, 36):
            tile(page, place).click()
            made.selected = place
            np.testing.assert_allclose(numbers(page, "tile"), made.weights, atol=1e-6)
            np.testing.assert_allclose(numbers(page, "cell"), made.weights[1:], atol=1e-6)
    order = np.argsort(-made.weights, kind="stable")[:8]
    listed = page.locator(".side .number").all_inner_texts()
    assert [text.replace("−", "-") for text in listed] == [f"{made.weights[i]:.3f}" for i in order]
    assert page.locator(".side .token").all_inner_texts() == [f"patch {i}" if i else "CLS" for i in order]


def test_rollout_through_three_layers_is_pythons(open_saved: Open) -> None:
    made = PatchesExplorer(np.zeros((6, 6)), 2, some_attention(3))
    page = open_saved(made)
    np.testing.assert_allclose(numbers(page, "tile"), made.weights, atol=1e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_drawn_are_the_pixels_of_image_and_patch(open_saved: Open, channels: int) -> None:
    image = np.random.default_rng(0).random((channels, 4, 6))
    page = open_saved(PatchesExplorer(image, 2))
    shown = np.rint(255 * np.broadcast_to(image, (3, 4, 6))).transpose(1, 2, 0)
    np.testing.assert_array_equal(colours(page, ".picture canvas")[..., :3], shown)
    np.testing.assert_array_equal(colours(page, '.tile[data-place="5"] canvas')[..., :3], shown[2:4, 2:4])
    cell(page, 5).click()
    found = page.locator(".numbers span").evaluate_all("all => all.map((e) => Number(e.dataset.value))")
    np.testing.assert_allclose(found, np.rint(255 * image)[:, 2:4, 2:4].ravel() / 255, atol=1e-6)
    assert f"2 × 2 × {channels} = {4 * channels} numbers" in side(page)


def test_every_patch_size_says_how_many_tokens_and_pairs(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    slider = page.get_by_label("Patch size")
    slider.press("Home")
    for size in (2, 3, 4, 6, 8, 12, 24):
        made.patch_size = size
        assert page.locator(".cell").count() == made.n_tokens - 1
        assert page.locator(".tile").count() == made.n_tokens
        row = page.locator(".cost li.on").inner_text()
        assert f"{size} × {size}: {made.n_tokens} tokens" in row
        assert f"{made.n_tokens**2:,}".replace(",", "\u202f") in row
        if size != 4:
            assert "The model reads patches of 4 × 4" in side(page)
        slider.press("ArrowRight")
    assert page.locator(".tile").count() == 2


def test_a_large_image_says_that_it_is_drawn_smaller(open_saved: Open) -> None:
    with pytest.warns(UserWarning, match="mean of 2"):
        made = PatchesExplorer(np.random.default_rng(0).random((96, 96)), 8)
    page = open_saved(made)
    assert "Each drawn pixel is the mean of 2 × 2." in page.locator(".cost").inner_text()
    assert "96 × 96 pixels: 12 × 12 = 144 patches" in page.locator(".cost").inner_text()
    cell(page, 144).click()
    assert "8 × 8 × 1 = 64 numbers" in side(page)


# ---------------------------------------------------------------- pointer, keyboard, touch, screen reader


def test_pointing_shows_a_patch_for_a_while_and_a_click_keeps_it(open_saved: Open) -> None:
    page = open_saved(specimen())
    assert "What CLS draws from through layers 1 to 2" in side(page)
    cell(page, 15).hover()
    assert "What patch 15 draws from" in side(page)
    page.get_by_role("heading").hover()
    assert "What CLS draws from" in side(page)
    cell(page, 15).click()
    page.get_by_role("heading").hover()
    assert "What patch 15 draws from" in side(page)
    assert "on" in tile(page, 15).get_attribute("class").split()


def test_the_selected_tile_is_scrolled_into_sight(open_saved: Open) -> None:
    page = open_saved(specimen(), width=360)
    cell(page, 33).click()
    outer, inner = page.locator(".strip").bounding_box(), tile(page, 33).bounding_box()
    assert outer["x"] <= inner["x"]
    assert inner["x"] + inner["width"] <= outer["x"] + outer["width"]
    assert page.evaluate(OVERFLOW) == []


def test_the_sequence_stays_where_it_is_while_one_points_in_it(open_saved: Open) -> None:
    page = open_saved(specimen(), width=360)
    tile(page, 6).hover()
    assert "What patch 6 draws from" in side(page)
    assert page.locator(".strip").evaluate("e => e.scrollLeft") == 0


def test_each_grid_is_one_tab_stop_and_arrows_move_in_it(open_saved: Open) -> None:
    page = open_saved(specimen())
    page.get_by_role("button", name="Reset").focus()
    page.keyboard.press("Tab")
    for key, place in [("ArrowRight", 2), ("ArrowDown", 8), ("End", 12), ("Control+End", 36), ("ArrowDown", 36)]:
        page.keyboard.press(key)
        expect(cell(page, place)).to_be_focused()
    assert "What patch 36 draws from" in side(page)
    page.keyboard.press("Tab")
    expect(tile(page, 0)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(tile(page, 1)).to_be_focused()
    assert page.locator('[data-place][tabindex="0"]').count() == 2


def test_a_tap_keeps_a_patch(open_saved: Open) -> None:
    page = open_saved(specimen(), width=360, touch=True)
    cell(page, 20).tap()
    assert "What patch 20 draws from" in side(page)
    tile(page, 18).tap()
    assert "What patch 18 draws from" in side(page)


def test_screen_readers_hear_places_weights_and_changes(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    spoken = page.locator('[role="status"]')
    expect(cell(page, 15)).to_have_attribute("aria-label", f"patch 15, row 3, column 3: {made.weights[15]:.3f}")
    expect(tile(page, 0)).to_have_attribute("aria-label", f"CLS: {made.weights[0]:.3f}")
    show(page, "image")
    expect(spoken).to_have_text("image. CLS")
    expect(cell(page, 15)).to_have_attribute("aria-label", "patch 15, row 3, column 3")
    page.get_by_label("Patch size").press("ArrowRight")
    expect(spoken).to_have_text("17 tokens. CLS")


def test_reset_brings_everything_back(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    page.get_by_label("Layer", exact=True).press("Home")
    show(page, "position similarity")
    cell(page, 8).click()
    page.get_by_label("Patch size").press("Home")
    cell(page, 144).click()
    page.get_by_role("button", name="Reset").click()
    np.testing.assert_allclose(numbers(page, "tile"), made.weights, atol=1e-6)
    assert "What CLS draws from through layers 1 to 2" in side(page)
    assert page.get_by_label("rollout", exact=True).is_checked()


# ---------------------------------------------------------------- honesty, safety, looks


def test_it_says_what_rollout_is_and_where_it_comes_from(open_saved: Open) -> None:
    page = open_saved(specimen())
    assert "one reading of attention, not an explanation" in side(page)
    assert "python experiments/vit_recording.py" in page.locator(".cost").inner_text()


def test_without_a_model_there_is_nothing_to_choose(open_saved: Open) -> None:
    page = open_saved(PatchesExplorer(np.eye(8), 4))
    expect(page.get_by_label("rollout", exact=True)).to_have_count(0)
    expect(page.get_by_label("Layer", exact=True)).to_be_hidden()
    assert "No pixels: a learnt vector" in side(page)


def test_hostile_names_stay_text(open_saved: Open) -> None:
    page = open_saved(PatchesExplorer(np.eye(4), 2, probabilities={HOSTILE: 1.0}, answer=HOSTILE))
    assert page.evaluate("window.hacked") is None
    assert HOSTILE in page.locator(".cost").inner_text()


@pytest.mark.parametrize("width", [360, 900])
@pytest.mark.parametrize(("size", "patch"), [((2, 2), 2), ((8, 64), 8), ((64, 8), 8), ((64, 64), 4)])
def test_nothing_is_wider_than_its_page(open_saved: Open, size: tuple, patch: int, width: int) -> None:
    page = open_saved(PatchesExplorer(np.random.default_rng(0).random((3, *size)), patch), width=width)
    cell(page, 1).click()
    assert page.evaluate(OVERFLOW) == []


def test_at_another_patch_size_the_views_of_the_model_are_off(open_saved: Open) -> None:
    page = open_saved(specimen())
    size, layer = page.get_by_label("Patch size"), page.get_by_label("Layer", exact=True)
    size.press("ArrowRight")
    assert "The model reads patches of 4 × 4: choose that size to see its attention." in side(page)
    expect(page.get_by_label("image", exact=True)).to_be_checked()
    for view in ("attention", "rollout", "position similarity"):
        expect(page.get_by_label(view, exact=True)).to_be_disabled()
    expect(layer).to_be_disabled()
    size.press("ArrowLeft")
    expect(page.get_by_label("rollout", exact=True)).to_be_checked()
    expect(page.get_by_label("rollout", exact=True)).to_be_enabled()
    expect(layer).to_be_enabled()
    assert "What CLS draws from" in side(page)
