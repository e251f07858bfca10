"""Type and merge: the tokens on the page are those of the byte-pair tokeniser, for whatever is typed."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, slide
from ttutor.tokenization import BytePairTokenizer
from ttutor.widgets import MergesExplorer


def specimen() -> MergesExplorer:
    """The figure as the gallery shows it."""
    return MergesExplorer(step=12)


def extremes() -> list[MergesExplorer]:
    return [
        MergesExplorer("W" * 48),
        MergesExplorer("a"),
        MergesExplorer("the light of the lighthouse was the lowest light", step=99),
    ]


def test_after_all_merges_it_is_the_tokenizer_and_before_any_it_is_letters() -> None:
    made = MergesExplorer("the lowest lighthouse")
    assert made.tokens == ["▁" if letter == " " else letter for letter in made.text]
    made.step = len(made.occurring)
    whole = BytePairTokenizer([(left, right) for left, right in made.merges])
    assert made.tokens == whole.tokens(whole.encode(made.text))
    assert "▁light" in "".join(made.tokens)
    assert len(made.tokens) < 9


def test_a_merge_is_counted_where_it_joined_something_in_the_corpus() -> None:
    made = MergesExplorer("aab", corpus="aab aab ab", n_merges=2)
    assert [*zip(made.merges, made.counts, strict=True)] == [(["a", "b"], 3), (["a", "ab"], 2)]
    assert MergesExplorer().counts == sorted(MergesExplorer().counts, reverse=True)


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="the number of letters has to be from 0 to 48, not 49"):
        MergesExplorer("a" * 49)


def shown(page: Page) -> list[str]:
    return page.locator(".box").evaluate_all("all => all.map((e) => e.dataset.token)")


@in_browser
@pytest.mark.parametrize(
    "text", ["the slowest keeper is thinking", "Waiting, isn't it?  12 ships!", "llll lll aaa", "x", HOSTILE[0]]
)
def test_every_step_is_pythons_for_whatever_is_typed(show: Show, text: str) -> None:
    page = show(specimen())
    page.get_by_label("Your text").fill(text)
    slide(page, "Merges", "Home")
    made = MergesExplorer(text)
    for step in range(len(made.occurring) + 1):
        made.step = step
        assert shown(page) == made.tokens
        slide(page, "Merges", "ArrowRight")
    assert page.locator("section.tt img").count() == 0


@in_browser
def test_the_finding_says_how_often_the_pair_stood_together(show: Show) -> None:
    made = MergesExplorer(step=12)
    page = show(made)
    slide(page, "Merges", "ArrowLeft")
    assert f"stood together {made.counts[made.occurring[10]]} times" in page.locator(".tt-found").inner_text()


@in_browser
def test_an_emptied_field_has_no_tokens(show: Show) -> None:
    page = show(specimen())
    page.get_by_label("Your text").fill("")
    assert shown(page) == MergesExplorer("").tokens == []
    page.get_by_label("Your text").fill("the")
    assert shown(page) == MergesExplorer("the", step=12).tokens


@in_browser
@pytest.mark.parametrize(("text", "is_told"), [("the the", True), (" the the", False), ("x the", False)])
def test_the_finding_names_a_first_word_that_joins_less_without_its_blank(show: Show, text: str, is_told: bool) -> None:
    page = show(specimen())
    page.get_by_label("Your text").fill(text)
    slide(page, "Merges", "End")
    assert ("first word without ▁" in page.locator(".tt-found").inner_text()) == is_told


@in_browser
def test_it_says_how_many_of_the_learned_merges_occur_in_the_text(show: Show) -> None:
    made = specimen()
    page = show(made)
    n_here = page.get_by_label("Merges", exact=True).get_attribute("max")
    assert (
        f"Of {len(made.merges)} learned merges {n_here} occur in this text."
        in page.locator(".tt-card > .tt-note").inner_text()
    )
    page.get_by_label("Your text").fill("cat")
    assert page.get_by_label("Merges", exact=True).get_attribute("max") != n_here
    assert f"Of {len(made.merges)} learned merges" in page.locator(".tt-card > .tt-note").inner_text()


@in_browser
def test_a_text_in_which_nothing_joins_says_so_and_offers_no_slider(show: Show) -> None:
    made = MergesExplorer("QXZ")
    assert made.occurring == []
    page = show(made)
    slider, own = page.get_by_label("Merges", exact=True), page.get_by_label("Your text", exact=True)
    assert slider.is_disabled()
    assert "each character stays a token" in page.locator(".tt-found").inner_text()
    own.fill("the light")
    assert slider.is_enabled()
    assert "Each character is a token of its own." in page.locator(".tt-found").inner_text()
    slide(page, "Merges", "End")
    n_tokens = len(MergesExplorer("the light", step=99).tokens)
    assert f"{n_tokens} tokens for 9 characters: what the learned merges join" in page.locator(".tt-found").inner_text()
