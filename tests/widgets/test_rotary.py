"""Rotary positions: the score is Python's, it stays while both move, and goes when one does."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Page

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, slide
from ttutor.positions import RotaryPositions
from ttutor.widgets import RotaryExplorer


def specimen() -> RotaryExplorer:
    """The figure as the gallery shows it."""
    return RotaryExplorer()


def hostile() -> RotaryExplorer:
    return RotaryExplorer(HOSTILE, query_position=1, key_position=0)


def extremes() -> list[RotaryExplorer]:
    long = [f"Donaudampfschiff{i}" for i in range(16)]
    return [RotaryExplorer(long, query_position=15), RotaryExplorer(["a", "b"], query_position=1, key_position=0)]


def test_the_score_stays_while_both_move() -> None:
    made = RotaryExplorer(query_position=8, key_position=5)
    np.testing.assert_allclose([made.score_at(8 + by, 5 + by) for by in range(50)], made.score, atol=1e-12)
    assert abs(made.score_at(9, 5) - made.score) > 0.1
    q, k = (RotaryPositions(8)(torch.tensor([[p]]))(torch.eye(8).double()[None, None, :1]) for p in (8, 5))
    made.query = made.key = [1, 0]
    np.testing.assert_allclose(made.score, float((q * k).sum()), atol=1e-12)


def places(page: Page) -> list[str]:
    """Where the key and the query stand."""
    return [
        page.locator(f'[data-key="{one}_position"]').get_attribute("aria-valuenow") or "" for one in ("key", "query")
    ]


def score(page: Page) -> float:
    return float(numbers(page, "circle")[0])


@in_browser
def test_the_score_on_screen_stays_while_both_move_and_goes_when_one_does(show: Show) -> None:
    made = RotaryExplorer()
    page = show(made)
    assert score(page) == pytest.approx(made.score, abs=1e-6)
    slide(page, "Move both", "End")
    assert score(page) == pytest.approx(made.score, abs=1e-6)
    assert places(page) == ["5", "8"]
    found = page.locator(".tt-found").inner_text()
    assert found.replace("\xa0", " ") == (
        "Each word of distance changes the wedge by 57°; moving both only turns it. "
        "So 3 words after, the score is always −0.91."
    )
    slide(page, "Move both", "ArrowLeft")
    assert page.locator(".tt-found").inner_text() == found
    slide(page, "Move both", "Home")  # neither leaves the sentence
    assert places(page) == ["0", "3"]
    slide(page, "Move both", "ArrowRight")  # every step of the control moves both
    assert places(page) == ["1", "4"]
    assert page.locator('[data-key="name"]').text_content() == f"score {made.score:.2f}".replace("-", "\u2212")
    slide(page, "Move both", "ArrowLeft")
    page.locator('[data-key="query_position"]').press("ArrowRight")
    assert score(page) == pytest.approx(made.score_at(4, 0), abs=1e-6)
    page.get_by_label("6°", exact=True).check()
    made.pair = 1
    assert score(page) == pytest.approx(made.score_at(4, 0), abs=1e-6)


def ends(page: Page, part: str) -> np.ndarray:
    """The angles, in radians, of both ends of the wedge or of a ring, as seen from the middle of the circle."""
    middle = page.locator('[data-key="circle"]').evaluate("e => [+e.getAttribute('cx'), -e.getAttribute('cy')]")
    bend = re.split("[ML]", page.locator(f'[data-key="{part}"]').get_attribute("d") or "")[-1]
    numbers = [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", bend)]
    tips = np.array([numbers[:2], numbers[-2:]]) * [1, -1] - middle
    return np.arctan2(tips[:, 1], tips[:, 0])


@in_browser
def test_the_wedge_leaves_rings_of_its_own_angle_where_it_was(show: Show) -> None:
    made = specimen()
    page = show(made)
    rings = page.locator(".ring")
    assert rings.count() == 0
    own = np.array([np.arctan2(*made.key[::-1]), np.arctan2(*made.query[::-1])])
    passed = []
    for place in (6, 7, 8, 7):
        passed = [p for p in [made.query_position, *passed] if p != place]
        made.query_position = place  # only noted: the page has no kernel
        slide(page, "Move both", "ArrowRight" if place > passed[0] else "ArrowLeft")
        assert rings.evaluate_all("all => all.map((one) => one.dataset.key)") == [f"ring{p}" for p in passed]
        for part, at in [("wedge", place), *((f"ring{p}", p) for p in passed)]:
            np.testing.assert_allclose(np.exp(1j * ends(page, part)), np.exp(1j * (own + [at - 3, at])), atol=0.01)
    page.locator('[data-key="key_position"]').press("ArrowLeft")  # another angle has no rings yet
    assert rings.count() == 0
    slide(page, "Move both", "ArrowLeft")
    assert rings.count() == 1
    page.get_by_text("Reset", exact=True).click()
    assert rings.count() == 0


@in_browser
def test_no_key_is_lost_while_the_arrows_turn(show: Show) -> None:
    page = show(specimen(), motion=True)
    for _ in range(3):
        page.locator('[data-key="query_position"]').press("ArrowLeft")
    assert places(page) == ["2", "2"]
    found = page.locator(".tt-found").inner_text()
    assert f"So at the same place, the score is always {specimen().score_at(2, 2):.2f}." in found


@in_browser
def test_the_finding_says_what_the_distance_does_and_where_arrows_hardly_turn(show: Show) -> None:
    made = specimen()
    page = show(made)
    found, query = page.locator(".tt-found"), page.locator('[data-key="query_position"]')
    for place, side in ((4, "2 words after"), (3, "1 word after"), (2, "at the same place"), (1, "1 word before")):
        query.press("ArrowLeft")
        score = f"{made.score_at(place, 2):.2f}".replace("-", "−")
        assert found.inner_text().replace("\xa0", " ").endswith(f"So {side}, the score is always {score}.")
    assert "comes round" not in found.inner_text()
    page.get_by_label("0.6°").check(force=True)
    assert "changes the wedge by 0.6°" in found.inner_text()
    assert "comes round after 628 words, so here it hardly turns" in found.inner_text()
