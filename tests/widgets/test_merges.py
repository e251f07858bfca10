"""Type and merge: the tokens on the page are those of the byte-pair tokeniser, for whatever is typed."""

from __future__ import annotations

from itertools import accumulate, pairwise

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


def test_two_neighbours_are_counted_in_the_corpus_as_it_is_cut_when_the_next_merge_is_chosen() -> None:
    made = MergesExplorer("aab", corpus="aab aab ab", n_merges=2)
    assert made.merges == [["a", "b"], ["a", "ab"]]
    made.text = "aab ab"  # a blank belongs to the word after it
    assert made.tokens == ["a", "a", "b", "▁", "a", "b"]
    assert made.together == [2, 3, 0, 2, 3]
    made.step = 1
    assert (made.tokens, made.together) == (["a", "ab", "▁", "ab"], [2, 0, 1])
    made.step = 2
    assert (made.tokens, made.together) == (["aab", "▁", "ab"], [0, 1])


def test_the_commonest_pair_joins_first_wherever_a_text_is() -> None:
    made = MergesExplorer()
    for step in range(len(made.occurring)):
        made.step = step
        left, right = (part.replace(" ", "▁") for part in made.merges[made.occurring[step]])
        counts = [
            times
            for (one, other), times in zip(pairwise(made.tokens), made.together, strict=True)
            if (one, other) == (left, right)
        ]
        assert set(counts) == {max(made.together)}


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="the number of letters has to be from 0 to 48, not 49"):
        MergesExplorer("a" * 49)


def shown(page: Page) -> list[str]:
    return page.locator(".box").evaluate_all("all => all.map((e) => e.dataset.token)")


def joints(page: Page) -> list[int | None]:
    """What stands over each two neighbours."""
    counts = page.locator(".count").evaluate_all("all => all.map((e) => [e.dataset.key, e.textContent])")
    over = {int(key.removeprefix("count")): int(times) for key, times in counts}
    ends = page.locator(".box").evaluate_all("all => all.map((e) => [...e.dataset.token].length)")
    return [over.get(end - 1) for end in accumulate(ends)][:-1]


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
        # Over the end of a word stands nothing: there the next token begins another piece.
        ends = [i for i in range(len(made.tokens) - 1) if joints(page)[i] is None]
        assert [times or 0 for times in joints(page)] == made.together
        assert all(made.together[i] == 0 for i in ends)
        slide(page, "Merges", "ArrowRight")
    assert page.locator("section.tt img").count() == 0


@in_browser
def test_the_finding_says_how_often_the_pair_stood_together(show: Show) -> None:
    made = MergesExplorer(step=12)
    page = show(made)
    slide(page, "Merges", "ArrowLeft")
    made.step = 10
    assert f"stood together {max(made.together)} times" in page.locator(".tt-found").inner_text()


@in_browser
def test_a_tap_joins_the_commonest_pair_and_compares_another_with_it(show: Show) -> None:
    page = show(MergesExplorer())
    made, found = MergesExplorer(), page.locator(".tt-found")
    page.get_by_role("button", name="▁ and l, together 15 times", exact=True).click()
    assert found.inner_text() == "▁ and l stood together 15 times, t and h 28 times: these join first."
    assert shown(page) == made.tokens
    assert page.locator(".bar.most").count() == made.together.count(28) == 3
    page.get_by_role("button", name="t and h, together 28 times").last.press("Enter")
    made.step = 1
    assert shown(page) == made.tokens
    assert "t and h join: they stood together 28 times" in found.inner_text()
    focused = page.locator(".hit:focus").get_attribute("aria-label")
    assert focused == "th and o, together once"  # the keys go on beside what joined
    assert page.locator(".bar.most").count() == 0
    slide(page, "Merges", "End")
    page.get_by_role("button", name="th and e, together never").click()
    assert (
        found.inner_text()
        == "th and e stand together nowhere in the training text as it is cut now. Learning ended at 120 merges."
    )


@in_browser
def test_of_pairs_as_common_the_older_joins(show: Show) -> None:
    page = show(MergesExplorer("ab ba", corpus="ab ba", n_merges=2))
    assert MergesExplorer("ab ba", corpus="ab ba", n_merges=2).merges[0] == [" ", "b"]
    page.get_by_role("button", name="a and b").click()
    assert "of equals the pair with the older tokens joins first" in page.locator(".tt-found").inner_text()


@in_browser
def test_the_picture_is_as_high_for_every_text_and_step(show: Show) -> None:
    page = show(MergesExplorer(), width=390)
    height = page.locator(".tt-picture svg").get_attribute("height")
    for text in ("x", "", "the light of the lighthouse was the lowest light", "W" * 48):
        page.get_by_label("Your text").fill(text)
        for key in ("Home", "End"):
            slide(page, "Merges", key)
            assert page.locator(".tt-picture svg").get_attribute("height") == height, text


@in_browser
def test_an_emptied_field_has_no_tokens(show: Show) -> None:
    page = show(specimen())
    page.get_by_label("Your text").fill("")
    assert shown(page) == MergesExplorer("").tokens == []
    page.get_by_label("Your text").fill("the")
    assert shown(page) == MergesExplorer("the", step=12).tokens


@in_browser
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the the", "The pairs left here stand together nowhere in the training text."),
        (" the the", "No pair is left."),
        ("the keeper waits for the slowest lighthouse", "No pair left here stood together more than once."),
    ],
)
def test_the_finding_says_how_common_the_pairs_are_that_stay_apart(show: Show, text: str, told: str) -> None:
    page = show(specimen())
    page.get_by_label("Your text").fill(text)
    slide(page, "Merges", "End")
    assert told in page.locator(".tt-found").inner_text()
    made = MergesExplorer(text, step=99)
    assert ("more than once" in told) == (max(made.together) == 1)


@in_browser
def test_it_says_how_many_of_the_learned_merges_occur_in_the_text(show: Show) -> None:
    made = specimen()
    page = show(made)
    n_here = page.get_by_label("Merges", exact=True).get_attribute("max")
    assert (
        f"Of {len(made.merges)} learned merges {n_here} occur{'s' if n_here == 1 else ''} in this text."
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
    assert f"{n_tokens} tokens for 9 characters. " in page.locator(".tt-found").inner_text()


@in_browser
def test_a_tap_while_the_pieces_glide_is_of_what_they_become(show: Show) -> None:
    page = show(MergesExplorer(), motion=True)
    page.evaluate(
        """() => {
          const root = document.querySelector('.explorer > div').shadowRoot;
          const tap = (letter) => root.querySelector(`[data-key=hit${letter}]`).dispatchEvent(new MouseEvent('click'));
          tap(0); // t and h join,
          tap(0); // and are still on their way,
          tap(1); // while h and e have become th and e
        }"""
    )
    made, said = MergesExplorer(step=1), page.locator(".tt-found").inner_text()
    assert made.tokens[:2] == ["th", "e"]
    assert said.startswith(f"th and e stood together {made.together[0]} times, ▁ and th {max(made.together)} times")
