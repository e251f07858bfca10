"""ALiBi: each word's share is Python's, for every head."""

from __future__ import annotations

import numpy as np

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, slide
from ttutor.positions import alibi_slopes
from ttutor.widgets import AlibiExplorer


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
        farthest = 1 + int(np.floor(np.log(10) / alibi_slopes(8)[head - 1].item()))
        if farthest > 46:
            assert f"head {head} would hear {farthest} words back, because" in said
            assert said.endswith("this text has only 46.")
        else:
            assert farthest == reach
            assert f"head {head} hears {reach} words back, because" in said
        assert f"takes {100 * (1 - weights[-2] / weights[-1]):.1f} % off" in said
        assert said.startswith("Yes") == heard[AlibiExplorer().tokens.index("lighthouse")]
        assert said.startswith("Yes, the first") == (head == 5)
        slide(page, "Head", "ArrowRight")
