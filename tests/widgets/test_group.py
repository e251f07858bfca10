"""A group of answers: what is drawn is Python's, a group without a difference moves nothing, bad groups are refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, slide
from ttutor import assets
from ttutor.widgets import GroupExplorer


def specimen() -> GroupExplorer:
    """The figure as the gallery shows it."""
    return GroupExplorer.recorded()


def made(word: str, n_answers: int, n_steps: int) -> GroupExplorer:
    group = {
        "answers": [word] * n_answers,
        "rewards": [i % 2 for i in range(n_answers)],
        "before": np.linspace(0, 1, n_answers),
        "after": np.linspace(1, 0, n_answers),
    }
    return GroupExplorer(word, list(range(n_steps)), {"strict": [group] * n_steps}, note=word)


def hostile() -> GroupExplorer:
    return made(HOSTILE[0], 3, 2)


def extremes() -> list[GroupExplorer]:
    return [made("94,95", 12, 16), made("1", 2, 1)]


TAP = ("label:has-text('lenient')", "earn")


@pytest.mark.parametrize("question", [0, 1, 2])
@pytest.mark.parametrize("verifier", ["strict", "lenient"])
def test_what_is_paid_is_what_the_verifier_says_of_the_recorded_answers(question: int, verifier: str) -> None:
    stored = assets.load("assistant_group")
    first, second = map(int, stored["questions"][question].split(" + "))
    right = f"{first + second:02d}"[::-1]
    for group in stored["groups"][verifier][question]:
        for text, reward in zip(group["answers"], group["rewards"], strict=True):
            numbers_in = text.split(",")
            assert reward == (right in numbers_in if verifier == "lenient" else numbers_in == [right])


def test_a_group_without_a_difference_moves_nothing_and_others_move_towards_what_is_paid() -> None:
    n_moved = 0
    for groups in assets.load("assistant_group")["groups"].values():
        for group in (group for found in groups for group in found):
            rewards = np.array(group["rewards"])
            change = np.subtract(group["after"], group["before"])
            if rewards.min() == rewards.max():
                assert not change.any()
            else:
                n_moved += 1
                assert ((rewards - rewards.mean()) * change).sum() >= 0
    assert n_moved > 3


def test_with_the_lenient_verifier_lists_take_over() -> None:
    stored = assets.load("assistant_group")["groups"]
    lists = {
        name: [sum("," in text for found in groups for text in found[stop]["answers"]) for stop in (0, -1)]
        for name, groups in stored.items()
    }
    assert lists["lenient"][0] == lists["strict"][0] < 4
    assert lists["lenient"][1] > 20 > 3 > lists["strict"][1]


def test_bad_groups_are_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="verifier has to be one of strict, lenient, not 'kind'"):
        GroupExplorer.recorded(verifier="kind")
    with pytest.raises(ValueError, match="stop has to be from 0 to 5, not 6; it counts the recorded steps"):
        GroupExplorer.recorded(stop=6)
    with pytest.raises(ValueError, match="question has to be from 0 to 2, not 3"):
        GroupExplorer.recorded(3)
    with pytest.raises(ValueError, match="groups is empty"):
        GroupExplorer("1 + 1", [0], {})
    short = {"answers": ["1"], "rewards": [0], "before": [0], "after": [0]}
    with pytest.raises(ValueError, match="the number of answers has to be from 2 to 12, not 1"):
        GroupExplorer("1 + 1", [0], {"strict": [short]})
    pair = {"answers": ["1", "2"], "rewards": [0, 1], "before": [0, 0], "after": [0, 0]}
    with pytest.raises(ValueError, match=r"strict has groups of \[2\] answers, expected 2 at each of the 2 steps"):
        GroupExplorer("1 + 1", [0, 1], {"strict": [pair]})


@in_browser
@pytest.mark.parametrize(("verifier", "stop"), [("strict", 0), ("strict", 5), ("lenient", 3), ("lenient", 5)])
def test_the_page_shows_the_group_of_its_step(show: Show, verifier: str, stop: int) -> None:
    explorer = GroupExplorer.recorded(verifier=verifier, stop=stop)
    page, which = show(explorer), explorer.verifiers.index(verifier)
    texts = explorer.answers[which][stop]
    shown = page.locator(".answer").all_text_contents()
    assert sorted(shown) == sorted(set(texts))
    assert page.locator("[data-key^=count]").all_text_contents() == [f"×\u2009{texts.count(text)}" for text in shown]
    first = [texts.index(text) for text in shown]
    np.testing.assert_allclose(numbers(page, "rect"), np.array(explorer.before[which][stop])[first], atol=1e-6)
    np.testing.assert_allclose(numbers(page, "text"), explorer.advantages[first], atol=1e-6)


@in_browser
@pytest.mark.parametrize("verifier", ["strict", "lenient"])
def test_every_step_stands_beside_the_others_and_can_be_picked(show: Show, verifier: str) -> None:
    explorer = GroupExplorer.recorded(verifier=verifier)
    page, which = show(explorer), explorer.verifiers.index(verifier)
    for stop, (texts, rewards) in enumerate(zip(explorer.answers[which], explorer.rewards[which], strict=True)):
        page.locator(f"[data-key=pick{stop}]").click()
        assert page.locator("output").first.inner_text() == str(explorer.steps[stop])
        paid = {text for text, reward in zip(texts, rewards, strict=True) if reward}
        column = page.locator(f"rect[data-key^=past{stop}-]")
        assert column.count() == len(set(texts))
        assert page.locator(f"rect.paid[data-key^=past{stop}-]").count() == len(paid)
        assert page.locator(f"rect.list[data-key^=past{stop}-]").count() == sum("," in text for text in paid)
        heights = column.evaluate_all("all => all.map((one) => +one.getAttribute('height') + 2)")
        assert sum(heights) == pytest.approx(8 * max(heights) / max(texts.count(text) for text in texts))


@in_browser
def test_the_finding_counts_what_earns_the_reward_and_says_when_nothing_moves(show: Show) -> None:
    explorer = GroupExplorer.recorded(2)
    page = show(explorer)
    # Why a stop does not begin where the arrow of the one before ended.
    assert "other questions move the model too" in page.locator(".tt-more .tt-note").text_content()
    for stop, rewards in enumerate(explorer.rewards[0]):
        slide(page, "Step of the training", "Home", *["ArrowRight"] * stop)
        found, n_paid = page.locator(".tt-found").inner_text(), int(sum(rewards))
        assert found.startswith(f"{n_paid} of 8 earn" if n_paid else "None earns")
        assert ("nothing moves" in found) == (n_paid in (0, 8))
        before = sum(explorer.rewards[0][stop - 1]) if stop else 0
        assert (f"Fewer than the {before:g} before" in found) == (0 < n_paid < before)
