"""All words become equal: the recorded places and spreads, in Python and on the page."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from playwright.sync_api import Page

from experiments.encoder_collapse import RUNS as SETTINGS
from experiments.encoder_collapse import planes, spread, through, words
from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers, slide
from ttutor import assets
from ttutor.widgets import CollapseExplorer
from ttutor.widgets.collapse import RUNS

N_LAYERS = 8
MODES = [(skips, networks) for networks in (False, True) for skips in (False, True)]


def specimen() -> CollapseExplorer:
    """The figure as the gallery shows it."""
    return CollapseExplorer()


def extremes() -> list[CollapseExplorer]:
    return [CollapseExplorer(depth=N_LAYERS), CollapseExplorer(depth=N_LAYERS, skips=True, networks=True)]


TAP = ("button:has-text('Play')", "their spread is")


@pytest.fixture(autouse=True)
def double() -> None:
    """The recording was made in double precision."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("skips", "networks"), MODES)
def test_what_is_recorded_is_what_the_layers_do(skips: bool, networks: bool) -> None:
    made = CollapseExplorer(skips=skips, networks=networks)
    assert SETTINGS[made.run] == (skips, networks)
    tokens, hidden = words()
    states = through(hidden, 0, skips=skips, networks=networks)
    assert made.tokens == tokens
    np.testing.assert_allclose(made.spreads[made.run], [spread(state) for state in states], atol=2e-3)
    apart = [torch.linalg.matrix_norm(place).item() for place in planes(states)]
    np.testing.assert_allclose(np.linalg.norm(made.places[made.run], axis=(1, 2)), apart, atol=0.02)


def test_without_skips_all_words_are_one_and_with_them_they_stay_apart_under_every_seed() -> None:
    runs = assets.load("encoder_collapse")["runs"]
    for name, (skips, _) in SETTINGS.items():
        ends = np.array(runs[name]["ends"])
        assert len(ends) == 5
        assert (ends > 0.5).all() if skips else (ends < 0.001).all(), name


def test_a_depth_beyond_the_stack_is_refused() -> None:
    with pytest.raises(ValueError, match="depth has to be from 0 to 8, not 9; it counts the layers"):
        CollapseExplorer(depth=9)


def assert_shown(page: Page, made: CollapseExplorer) -> None:
    distances = np.linalg.norm(made.places[made.run][made.depth], axis=1)
    np.testing.assert_allclose(numbers(page, "circle"), distances, atol=1e-6)
    assert f"the spread is {made.spread:.2f}" in page.locator(".tt-found").inner_text()


@in_browser
def test_the_dots_are_where_python_has_them_at_every_depth_of_every_stack(show: Show) -> None:
    page = show(specimen())
    assert page.locator("circle[data-value]").count() == len(specimen().tokens)
    for skips, networks in MODES:
        page.get_by_label("skips", exact=True).set_checked(skips)
        page.get_by_label("feed-forward networks").set_checked(networks)
        slide(page, "Layers", "Home")
        for depth in range(1, N_LAYERS + 1):
            slide(page, "Layers", "ArrowRight")
            assert_shown(page, CollapseExplorer(depth=depth, skips=skips, networks=networks))
    slide(page, "Layers", "Home")
    page.get_by_label("skips", exact=True).set_checked(False)
    slide(page, "Layers", "End")
    assert "all words are one vector, because" in page.locator(".tt-found").inner_text()


def overlap(one: dict, other: dict) -> float:
    """How deep two boxes lie in one another, in pixels."""
    sides = (("x", "width"), ("y", "height"))
    ends = [min(one[at] + one[size], other[at] + other[size]) - max(one[at], other[at]) for at, size in sides]
    return min(ends)


@in_browser
@pytest.mark.parametrize("width", [360, 900])
@pytest.mark.parametrize(("skips", "networks"), MODES)
def test_no_two_names_lie_on_one_another_and_none_leaves_the_plane(
    show: Show, width: int, skips: bool, networks: bool
) -> None:
    for depth in (0, 1, 2, N_LAYERS):
        page = show(CollapseExplorer(depth=depth, skips=skips, networks=networks), width=width)
        room = page.locator('[data-key="room"]').bounding_box()
        names = [name.bounding_box() for name in page.locator("text[data-key^=name]").all()]
        for i, name in enumerate(names):
            assert all(overlap(name, other) < 7 for other in names[:i]), depth  # the box of a line is higher than it
            assert overlap(name, room) > min(name["height"], name["width"]) - 4, depth
        curves = [name.bounding_box() for name in page.locator("[data-key^=called]").all()]
        assert len(curves) == (4 if depth else 0), "the curves are named as far as the reader has gone"
        assert all(overlap(one, other) < 7 for i, one in enumerate(curves) for other in curves[:i])


@in_browser
def test_each_word_leaves_the_way_it_came_and_goes_it_back(show: Show) -> None:
    page = show(specimen())
    ways = "all => all.map((e) => new Set(e.getAttribute('d').slice(1).split('L')).size)"
    for depth, key in enumerate(["Home", "ArrowRight", "ArrowRight", "ArrowRight"]):
        slide(page, "Layers", key)
        assert page.locator("[data-key^=trail]").evaluate_all(ways) == [depth + 1] * len(specimen().tokens)
    ends = "e => e.getAttribute('d').split('L').at(-1).split(' ').map(Number)"
    dot = page.locator('[data-key="dot0"]').evaluate("e => ['cx', 'cy'].map((name) => +e.getAttribute(name))")
    assert page.locator('[data-key="trail0"]').evaluate(ends) == pytest.approx(dot, abs=0.1)
    slide(page, "Layers", "ArrowLeft")
    assert page.locator("[data-key^=trail]").evaluate_all(ways) == [3] * len(specimen().tokens)


def test_every_run_is_stored() -> None:
    assert set(RUNS) == set(SETTINGS) == set(specimen().places)
