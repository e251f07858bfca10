"""Waves: what the picture and the clocks show is the sinusoidal encoding; which positions look alike."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import traitlets as t
from playwright.sync_api import Page

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers
from ttutor.positions import sinusoidal_encoding
from ttutor.widgets import WavesExplorer
from ttutor.widgets.positions import HANDS, PAIRS


def specimen() -> WavesExplorer:
    """The figure as the gallery shows it."""
    return WavesExplorer()


TAP = ("label:has-text('All')", "looks like no other")


def test_the_fastest_hand_is_ambiguous_the_slowest_tells_little_and_all_are_exact() -> None:
    assert WavesExplorer(10, "slow").candidates == list(range(64))
    assert WavesExplorer(10, "middle").candidates == list(range(7, 14))
    assert len(WavesExplorer(10, "fast").candidates) > 5
    assert [WavesExplorer(p, "all").candidates for p in range(64)] == [[p] for p in range(64)]


def name_of(pair: int) -> str:
    """What is read when the clock of one pair is framed."""
    (name,) = (name for name, pairs in PAIRS.items() if pairs == [pair])
    return name


@in_browser
@pytest.mark.parametrize("reads", PAIRS)
def test_the_marks_are_pythons_wherever_the_line_is(show: Show, reads: str) -> None:
    for position in (20, 0, 63):
        page = show(WavesExplorer(position, reads))
        assert numbers(page, "rect").tolist() == WavesExplorer(position, reads).candidates
    page.locator('[data-key="handle"]').press("ArrowUp")
    assert numbers(page, "rect").tolist() == WavesExplorer(62, reads).candidates


@in_browser
def test_a_second_line_shows_which_clocks_tell_two_places_apart(show: Show) -> None:
    page = show(WavesExplorer(10))
    line, found = page.locator('[data-key="handlesecond"]'), page.locator(".tt-found")
    for place in range(15, 17):
        line.press("ArrowDown")
        looks_alike = place in WavesExplorer(10, "fast").candidates
        assert ("The framed one is none of them" in found.inner_text()) == looks_alike
        # Every clock whose hands are apart there is filled, and they are counted.
        tells = [f"dial{i}" for i, pair in enumerate(HANDS) if place not in WavesExplorer(10, name_of(pair)).candidates]
        assert page.locator(".dial.tells").evaluate_all("all => all.map((one) => one.dataset.key)") == tells
        assert found.inner_text().startswith(f"{len(tells)} of the 8 clocks tell {place} from 10")
    both = [page.locator(f'[data-key="hand0{name}"]').get_attribute("d") for name in ("", "second")]
    assert both[0] != both[1]
    page.get_by_text("Reset", exact=True).click()
    assert int(line.get_attribute("aria-valuenow") or 0) < 16


@in_browser
def test_a_clock_that_is_tapped_is_the_framed_one_and_its_column_is_read(show: Show) -> None:
    page = show(WavesExplorer(10))
    assert_right(page, 10, 0)  # what is read at first is the framed clock's, too
    assert page.locator(".dial.read").count() == 1
    for i, pair in reversed(list(enumerate(HANDS))):
        page.locator(f'[data-key="dial{i}"]').click()
        name = name_of(pair)
        assert page.locator(".dial.read").get_attribute("data-key") == f"dial{i}"
        assert numbers(page, "rect").tolist() == WavesExplorer(10, name).candidates
        page.mouse.move(1, 1)
        assert_right(page, 10, 2 * pair)
        assert page.locator(":checked").count() == (pair in (0, 8, 31))


@in_browser
def test_one_colour_stands_for_the_line_alone(show: Show) -> None:
    page = show(WavesExplorer(10))
    colour = "(e, name) => getComputedStyle(e)[name]"
    line, frame = (page.locator(at).first.evaluate(colour, "stroke") for at in ("[data-key=reading0]", ".dial.read"))
    assert line == page.locator("[data-key=hand0]").evaluate(colour, "stroke") != frame
    assert frame == page.locator("[data-key=columns]").evaluate(colour, "stroke")
    assert frame == page.locator(".alike").first.evaluate(colour, "fill")


@in_browser
def test_a_line_that_is_pulled_near_a_mark_snaps_to_it(show: Show) -> None:
    page = show(WavesExplorer(10))
    line = page.locator('[data-key="handlesecond"]')
    row = page.locator("image").bounding_box()["height"] / 64
    for place, mark in ((17.6, 16), (18.9, 19), (27.3, 29), (9.7, 10), (58.2, 60)):
        box = line.bounding_box()
        at = int(line.get_attribute("aria-valuenow") or 0)
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 5, y + (place - at) * row)
        page.mouse.up()
        assert line.get_attribute("aria-valuenow") == str(mark)


@in_browser
def test_the_picture_and_the_hands_are_the_encoding(show: Show) -> None:
    page = show(WavesExplorer(13))
    grey = page.locator("image").evaluate(
        """async (e) => {
          const image = Object.assign(new Image(), { src: e.getAttribute('href') });
          await image.decode();
          const context = new OffscreenCanvas(64, 64).getContext('2d');
          context.drawImage(image, 0, 0);
          return [...context.getImageData(0, 0, 64, 64).data].filter((_, i) => i % 4 === 0);
        }"""
    )
    encoding = sinusoidal_encoding(64, 64).numpy()
    np.testing.assert_allclose((np.array(grey).reshape(64, 64) - 128) / 112, encoding, atol=0.006)
    hand = page.locator('[data-key="hand0"]').get_attribute("d") or ""
    start, tip = (np.array([float(number) for number in part.split()]) for part in hand[1:].split("L")[:2])
    radius = float(page.locator('[data-key="dial0"]').get_attribute("r") or 0)
    np.testing.assert_allclose((tip - start) / radius * [1, -1], encoding[13, :2], atol=0.01)


def test_the_cell_that_is_read_is_the_encodings() -> None:
    explorer = WavesExplorer(20, feature=7)
    assert explorer.value == sinusoidal_encoding(64, 64)[20, 7]
    assert explorer.wavelength == pytest.approx(2 * math.pi * 10000 ** (6 / 64))
    assert WavesExplorer(20, feature=6).wavelength == explorer.wavelength


def test_the_line_stands_among_the_positions_that_are_shown() -> None:
    assert WavesExplorer(10, "fast", shown=20).candidates == [4, 10, 16]
    with pytest.raises(t.TraitError, match="one of the 16 that are shown"):
        WavesExplorer(20, shown=16)


def told(page: Page) -> tuple[int, int, float, float]:
    """Position, feature, wavelength and value of the cell that the figure reads out."""
    words = page.locator('[data-key="rows"]').inner_html()
    found = re.fullmatch(r"position (\d+), feature (\d+): (?:sin|cos), (.+) a round, (\S+)", words)
    assert found, words
    wavelength, value = (float(re.sub(r"\s", "", part).replace("\u2212", "-")) for part in found.groups()[2:])
    return int(found[1]), int(found[2]), wavelength, value


def assert_right(page: Page, position: int, feature: int) -> None:
    at, column, wavelength, value = told(page)
    assert (at, column) == (position, feature)
    assert wavelength == pytest.approx(WavesExplorer(0, feature=feature).wavelength, rel=0.01)
    assert value == pytest.approx(sinusoidal_encoding(64, 64)[position, feature].item(), abs=6e-4)


@in_browser
def test_a_cell_is_read_by_key_by_pointer_and_by_tap(show: Show) -> None:
    page = show(WavesExplorer(20, feature=7))
    assert_right(page, 20, 7)
    line = page.locator('[data-key="handle"]')
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        line.press(key)
    assert_right(page, 21, 9)
    box = page.locator("image").bounding_box()
    for position, feature in ((0, 0), (40, 3), (63, 63)):
        x, y = box["x"] + (feature + 0.5) * box["width"] / 64, box["y"] + (position + 0.5) * box["height"] / 64
        page.mouse.move(x, y)
        assert_right(page, position, feature)
    page.mouse.move(box["x"] - 5, box["y"])
    assert_right(page, 21, 9)  # what was pointed at is not kept
    page.mouse.click(box["x"] + 40.5 * box["width"] / 64, box["y"] + 50.5 * box["height"] / 64)
    page.mouse.move(box["x"] - 5, box["y"])
    assert_right(page, 50, 40)  # what was tapped is


@in_browser
def test_the_slider_hides_positions_and_leaves_the_others_as_they_are(show: Show) -> None:
    page = show(WavesExplorer(10))
    picture = page.locator("image")
    before = picture.get_attribute("href"), picture.bounding_box()
    slider = page.get_by_role("slider", name="Positions")
    slider.fill("20")
    assert numbers(page, "rect").tolist() == WavesExplorer(10, shown=20).candidates
    assert (picture.get_attribute("href"), picture.bounding_box()) == before
    veil = page.locator('[data-key="veil"]')
    assert float(veil.get_attribute("y") or 0) == pytest.approx(before[1]["height"] * 20 / 64, abs=0.1)
    slider.fill("8")
    assert told(page)[0] == 7  # the line goes along
    page.get_by_text("Reset", exact=True).click()
    assert numbers(page, "rect").tolist() == WavesExplorer(10).candidates
