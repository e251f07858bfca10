"""Rotary positions: the score is Python's, it stays while both move, and goes when one does."""

from __future__ import annotations

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
    query, key = np.array(made.query), np.array(made.key)
    own = np.degrees(np.arctan2(query[1], query[0]) - np.arctan2(key[1], key[0]))
    added = np.degrees(3 * [1, 0.1, 0.01][made.pair])
    shown = [f"{value:.0f}°".replace("-", "−") for value in (own, added, own + added)]
    begins = (
        f"At one place the query's arrow is {shown[0]} ahead of the key's. 3 words after add {shown[1]}: {shown[2]}"
    )
    assert found.replace("\xa0", " ").startswith(begins)
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


@in_browser
def test_the_finding_says_how_far_one_arrow_is_ahead_of_the_other_and_where_they_hardly_turn(show: Show) -> None:
    made = specimen()
    page = show(made)
    found, query = page.locator(".tt-found"), page.locator('[data-key="query_position"]')
    for place in (4, 3, 2, 1):
        query.press("ArrowLeft")
        own = np.arctan2(*made.query[::-1]) - np.arctan2(*made.key[::-1])
        ahead = own + (place - 2) * [1, 0.1, 0.01][made.pair]
        assert np.cos(ahead) == pytest.approx(made.score_at(place, 2) / np.hypot(*made.query) / np.hypot(*made.key))
        assert f": {np.degrees(ahead):.0f}°.".replace("-", "−") in found.inner_text()
    page.get_by_label("0.6°").check(force=True)
    assert "comes round after 628 words, so here it hardly turns" in found.inner_text()
