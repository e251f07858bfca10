"""Waves: what the picture and the clocks show is the sinusoidal encoding; which positions look alike."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
import traitlets as t
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers
from ttutor.positions import sinusoidal_encoding
from ttutor.widgets import WavesExplorer
from ttutor.widgets.positions import HANDS


def specimen() -> WavesExplorer:
    """The figure as the gallery shows it."""
    return WavesExplorer()


TAP = ('[data-key="dial2"]', "Only 10 is left")


def test_one_clock_confuses_nounand_every_other_rules_some_out_until_all_leave_one() -> None:
    assert WavesExplorer(10, [31]).candidates == list(range(64))
    assert WavesExplorer(10, [8]).candidates == list(range(7, 14))
    assert WavesExplorer(10, []).candidates == list(range(64))
    for place in range(64):
        left = [WavesExplorer(place, HANDS[:n]).candidates for n in range(9)]
        assert left[0] == list(range(64))
        assert len(left[1]) > 5
        assert all(set(after) <= set(before) for before, after in pairwise(left))
        assert left[8] == [place]


@pytest.mark.parametrize("reads", [[3], [0, 0], "fast", [-1]])
def test_what_is_read_are_different_clocks_of_the_eight(reads: Sequence[int]) -> None:
    with pytest.raises(
        ValueError, match=re.escape(f"different pairs of 0, 4, 8, 12, 16, 20, 24, 31, but is {reads!r}")
    ):
        WavesExplorer(10, reads)
    if reads != "fast":
        with pytest.raises(ValueError, match="different pairs"):
            WavesExplorer().reads = reads


def fewest(position: int, shown: int) -> int:
    """With how few of the clocks one position is left."""
    ways = (reads for n in range(1, 9) for reads in combinations(HANDS, n))
    return next(len(way) for way in ways if len(WavesExplorer(position, way, shown=shown).candidates) == 1)


def assert_says_so(page: Page, position: int, reads: list[int], shown: int = 64) -> None:
    """The marks, the count and the finding are what Python says of these clocks."""
    left = [WavesExplorer(position, reads[: n + 1], shown=shown).candidates for n in range(len(reads))]
    places = left[-1] if reads else list(range(shown))
    assert numbers(page, "rect").tolist() == places
    n_places = f"{len(places)} place{'s' if len(places) > 1 else ''} left"
    assert page.locator('[data-key="left"]').inner_html() == n_places
    assert page.locator(".veil").count() == shown - len(places)
    pressed = page.locator(".dial").evaluate_all("all => all.map((one) => one.getAttribute('aria-pressed') === 'true')")
    assert pressed == [pair in reads for pair in HANDS]
    # Each clock has a thin hand for every place that is left, and those that are read a frame in the picture.
    thin = page.locator(".others").evaluate_all("all => all.map((one) => one.getAttribute('d').split('M').length - 1)")
    assert thin == [len(places)] * 8
    assert page.locator(".column").count() == page.locator(".sector").count() == len(reads)
    said = page.locator(".tt-found").inner_text()
    if not reads:
        assert said == f"No clock is read: it could be any of the {shown} places."
        return
    first, *more = (len(one) - 1 for one in left)
    chain = "".join(f", with {n} like {count}" for n, count in enumerate(more, start=2))
    noun = "place" if first == 1 else "places"
    assert said.startswith(f"With one clock {position} looks like {first} other {noun}{chain}. ")
    assert ("Next, tap one whose thin hands point apart." in said) == (len(places) > 1)
    if len(places) == 1:
        least = fewest(position, shown)
        assert f"Only {position} is left" in said
        can = "one clock" if least == 1 else f"{least} clocks"
        assert (f", but {can} can do it: which?" in said) == (len(reads) > least)
        assert ("no fewer clocks would do" in said) == (len(reads) == least > 1)
        assert (f" among {shown} places, by one clock." in said) == (len(reads) == least == 1)


@in_browser
@pytest.mark.parametrize(("position", "shown"), [(10, 64), (0, 64), (63, 64), (3, 8)])
def test_each_clock_that_is_tapped_rules_nounout_as_python_says(show: Show, position: int, shown: int) -> None:
    page = show(WavesExplorer(position, shown=shown))
    assert_right(page, position, 0)  # what is read at first is the clock's, too
    assert_says_so(page, position, [0], shown)
    reads = [0]
    for pair in (4, 8, 0, 31, 8, 4, 31, *reversed(HANDS)):
        page.locator(f'[data-key="dial{HANDS.index(pair)}"]').click()
        page.mouse.move(1, 1)
        if pair in reads:
            reads.remove(pair)
        else:
            reads.append(pair)
            assert_right(page, position, 2 * pair)
        assert_says_so(page, position, reads, shown)
    page.get_by_text("Reset", exact=True).click()
    assert_says_so(page, position, [0], shown)


@in_browser
def test_a_clock_is_read_by_key_and_the_marks_follow_the_line(show: Show) -> None:
    page = show(WavesExplorer(20, [0, 4]))
    assert_says_so(page, 20, [0, 4])
    for place in (19, 18):
        page.locator('[data-key="handle"]').press("ArrowUp")
        assert_says_so(page, place, [0, 4])
    page.locator('[data-key="dial0"]').press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert_says_so(page, 18, [0, 4, 8])


@in_browser
def test_nounthat_are_ruled_out_fade(show: Show) -> None:
    page = show(WavesExplorer(10), motion=True)
    page.locator('[data-key="dial2"]').click()
    assert page.locator(".alike").count() > 1  # on their way out
    expect(page.locator(".alike")).to_have_count(1)
    page.locator('[data-key="dial2"]').click()
    expect(page.locator(".alike")).to_have_count(8)


@in_browser
def test_one_colour_stands_for_the_line_alone(show: Show) -> None:
    page = show(WavesExplorer(10))
    colour = "(e, name) => getComputedStyle(e)[name]"
    line, frame = (page.locator(at).first.evaluate(colour, "stroke") for at in ("[data-key=reading]", ".dial.read"))
    assert line == page.locator("[data-key=hand0]").evaluate(colour, "stroke") != frame
    assert frame == page.locator(".column").evaluate(colour, "stroke")
    assert frame == page.locator(".alike").first.evaluate(colour, "fill")


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
    assert WavesExplorer(10, shown=20).candidates == [4, 10, 16]
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
    before = picture.get_attribute("href")  # each cell stays as it is
    tall = picture.bounding_box()["height"]
    slider = page.get_by_role("slider", name="Positions")
    for shown in (20, 9):
        slider.fill(str(shown))
        assert_says_so(page, min(10, shown - 1), [0], shown)
        assert picture.get_attribute("href") == before
        # The rows grow: those that are shown fill the same room, and the others are cut off.
        assert picture.bounding_box()["height"] * shown / 64 == pytest.approx(tall, abs=0.1)
        cut = re.search(r"inset\(0(?:px)? 0(?:px)? ([\d.]+)%", picture.evaluate("e => e.style.clipPath"))
        assert float(cut[1]) == pytest.approx(100 - 100 * shown / 64, abs=0.01)
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    slider.fill("8")
    assert told(page)[0] == 7  # the line goes along
    box = picture.bounding_box()
    page.mouse.move(box["x"] + 5.5 * box["width"] / 64, box["y"] + 3.5 * tall / 8)
    assert_right(page, 3, 5)  # a larger cell is read, too
    page.mouse.move(1, 1)
    for shown in (9, 64):  # and comes back with its place
        slider.fill(str(shown))
        assert told(page)[0] == min(10, shown - 1)
    page.mouse.click(box["x"] + 99, box["y"] + tall - 1)
    slider.fill("20")
    slider.fill("64")
    assert told(page)[0] == 63  # also one that the reader has chosen since
    page.get_by_text("Reset", exact=True).click()
    assert_says_so(page, 10, [0])
