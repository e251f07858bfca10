"""The map of the course and the explorer on the first page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from book._tools.first_page import NAMES, NEEDS, PLACES, draw, in_words, pages
from book._tools.notebook_io import read

ROOT = Path(__file__).resolve().parents[2]
PAGES = pages(ROOT)
# Chapters that "You need" names and that can be done without: a box or a sentence there says what is needed of them.
HELPFUL = {2: {1}, 5: {4}, 6: {5}, 8: {7}, 10: {4}, 11: {1}, 12: {5}}


def all_needed(number: int) -> set[int]:
    """What a chapter stands on, and what that stands on."""
    return {number}.union(*(all_needed(other) for other in NEEDS[number]))


def test_chapters_stand_on_earlier_ones_only() -> None:
    assert list(NEEDS) == list(range(1, 13))
    assert [number for number, needed in NEEDS.items() if any(other >= number for other in needed)] == []


def test_no_two_boxes_stand_in_one_place() -> None:
    assert set(PLACES) == set(NEEDS)
    assert len(set(PLACES.values())) == len(PLACES)


def test_the_map_links_to_every_page_and_says_itself_in_words() -> None:
    picture = draw(PAGES)
    assert re.findall(r'href="([^"]+)"', picture) == list(PAGES.values())
    assert picture.count('class="arrow"') == sum(map(len, NEEDS.values()))
    assert "7 Transformer stands on 4, 5 and 6." in picture
    assert [line.split()[0] for line in in_words().splitlines()] == [str(number) for number in NAMES]


@pytest.mark.parametrize("number", NEEDS)
def test_a_chapter_asks_for_no_chapter_that_the_map_leaves_out(number: int) -> None:
    path = ROOT / "book" / PAGES[number].replace(".html", ".ipynb")
    opening = read(path.read_text(encoding="utf-8")).cells[0].source
    asked = next(line for line in opening.splitlines() if line.startswith("**You need**"))
    named = {int(found) for found in re.findall(r"<(\d\d)-", asked)}
    assert named <= all_needed(number) | HELPFUL.get(number, set())
