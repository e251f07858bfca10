"""ALiBi: each word's share is Python's, for every head."""

from __future__ import annotations

import numpy as np

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, slide
from ttutor.positions import alibi_slopes
from ttutor.widgets import AlibiExplorer

LIGHTHOUSE = AlibiExplorer().tokens.index("lighthouse")


def specimen() -> AlibiExplorer:
    """The figure as the gallery shows it."""
    return AlibiExplorer()


def hostile() -> AlibiExplorer:
    return AlibiExplorer(HOSTILE)


def extremes() -> list[AlibiExplorer]:
    return [AlibiExplorer(["Donaudampfschiff"] * 64, head=8), AlibiExplorer(["a", "b"])]


def test_distance_takes_the_slope_times_the_distance() -> None:
    for head, slope in enumerate(alibi_slopes(8).tolist(), start=1):
        powers = np.exp(-slope * np.arange(47)[::-1])
        np.testing.assert_allclose(AlibiExplorer(head=head).weights, powers / powers.sum(), atol=1e-7)


@in_browser
def test_the_shares_on_screen_are_pythons_for_every_head(show: Show) -> None:
    page = show(AlibiExplorer())
    assert "Guess" not in page.locator(".tt-invite").inner_text()  # there is no place for one
    for head in range(1, 9):
        weights = AlibiExplorer(head=head).weights
        np.testing.assert_allclose(numbers(page, ".word"), weights, atol=1e-6)
        heard = weights[:-1] >= 0.1 * weights[-2]
        reach = int(heard.sum())
        edges = page.locator(".word").evaluate_all("all => all.map((one) => one.classList.contains('edge'))")
        assert edges == [0 < place == 46 - reach for place in range(47)]
        said = page.locator(".tt-found").inner_text().replace("\xa0", " ")
        assert f"Head {head} hears {'the whole text' if reach == 46 else f'{reach} words back'}, because" in said
        assert f"takes {100 * (1 - weights[-2] / weights[-1]):.1f} % off" in said
        assert said.endswith(f"nearest word gets {100 * weights[-2]:.1f} %, the farthest {100 * weights[0]:.1f} %.")
        verdict = "yes, this is the first." if head == 5 else "yes, but head 5 was the first."
        assert said.startswith(f"“lighthouse”: {verdict if heard[LIGHTHOUSE] else 'not yet.'}")
        slide(page, "Head", "ArrowRight")


@in_browser
def test_colour_is_the_share_itself_so_a_head_that_hears_everything_hears_each_word_faintly(show: Show) -> None:
    page = show(AlibiExplorer())
    nearest = []
    for head in range(1, 9):
        weights = AlibiExplorer(head=head).weights
        levels = page.locator(".word").evaluate_all("all => all.map((one) => +one.style.getPropertyValue('--w'))")
        np.testing.assert_allclose(levels, np.minimum(2 * np.sqrt(weights), 1), atol=1e-4)
        nearest.append(levels[-2])
        slide(page, "Head", "ArrowRight")
    assert nearest == sorted(nearest, reverse=True)
    assert nearest[0] > 0.9
    assert nearest[-1] < 0.35


@in_browser
def test_a_word_that_is_tapped_or_reached_by_an_arrow_is_the_one_to_be_heard(show: Show) -> None:
    page = show(AlibiExplorer(head=4))
    marked, found = page.locator(".word.mark"), page.locator(".tt-found")
    page.locator(".word").nth(44).click()
    assert marked.inner_text() == AlibiExplorer().tokens[44]
    assert found.inner_text().startswith(
        f"“{marked.inner_text()}”: yes, but head 1 was the first. Head 4 hears 37 words"
    )
    page.keyboard.press("ArrowRight")
    assert marked.inner_text() == AlibiExplorer().tokens[45]
    page.locator(".word").last.click()  # the word that hears is none of those that are heard
    assert marked.inner_text() == AlibiExplorer().tokens[45]
    page.locator(".word").nth(45).focus()
    page.keyboard.press("Home")
    assert marked.inner_text() == AlibiExplorer().tokens[0]
    assert found.inner_text().startswith(f"“{marked.inner_text()}”: not yet.")
    page.get_by_role("button", name="Reset").click()
    assert marked.inner_text() == "lighthouse"
