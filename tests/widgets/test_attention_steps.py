"""One word looks up: its numbers in Python and on the page, the arrow that is pulled, the steps, what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, spoken
from ttutor.widgets import AttentionExplorer, AttentionStepsExplorer, SequentialExplorer
from ttutor.widgets.attention_steps import STEPS

EYE = np.eye(2)


def specimen() -> AttentionStepsExplorer:
    """The figure as the gallery shows it."""
    return AttentionStepsExplorer()


def head(tokens: list[str], d_model: int, d_head: int, d_value: int, **options: str) -> AttentionStepsExplorer:
    rng = np.random.default_rng(len(tokens))
    sizes = [(len(tokens), d_model), (d_head, d_model), (d_head, d_model), (d_value, d_model)]
    return AttentionStepsExplorer(tokens, *(rng.normal(size=size) / d_model**0.5 for size in sizes), **options)


def hostile() -> AttentionStepsExplorer:
    return head(HOSTILE, 3, 2, 2, note=HOSTILE[0])


def extremes() -> list[AttentionStepsExplorer]:
    words = [f"Donaudampfschiff{i}" for i in range(8)]
    return [head(words, 16, size, size, step=step) for step in STEPS for size in (2, 8)] + [head(["a"], 1, 1, 1)]


TAP = ('[data-key="ask1"]', "gives 0.")


def test_the_sentence_made_by_hand_teaches_what_it_says() -> None:
    made = specimen()
    weights = made.trace()["A"]
    heaviest = {made.tokens[i]: made.tokens[weights[i].argmax()] for i in range(8)}
    assert [heaviest[word] for word in ("it", "read", "book", "liked")] == ["book", "girl", "girl", "girl"]
    assert weights[7].max() > 0.6
    made.pulled = [2.1, 0.2]
    assert made.tokens[made.trace()["A"][7].argmax()] == "girl"


def test_every_matrix_follows_from_the_ones_before() -> None:
    rng = np.random.default_rng(0)
    x, *matrices = (rng.normal(size=size) for size in ((5, 4), (3, 4), (3, 4), (6, 4)))
    found = AttentionStepsExplorer(list("abcde"), x, *matrices).trace()
    query, key, value = (x @ matrix.T for matrix in matrices)
    powers = np.exp(query @ key.T / np.sqrt(3))
    expected = {"Q": query, "S": query @ key.T / np.sqrt(3), "A": powers / powers.sum(axis=1, keepdims=True)}
    for name, table in (expected | {"AV": expected["A"] @ value}).items():
        np.testing.assert_allclose(found[name], table, atol=0.01)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["a"],), TypeError, "give tokens, embeddings, w_query, w_key and w_value together"),
        ((["a", "b"], EYE * 11, EYE, EYE, EYE), ValueError, "holds 11; it has to lie between -10 and 10"),
        ((["a", "b"], EYE, EYE, np.ones((3, 2)), EYE), ValueError, r"w_key has shape \(3, 2\), expected \(2, 2\)"),
        ((["a", "b"], EYE, np.ones((9, 2)), EYE, EYE), ValueError, "w_query has 9 rows, at most 8"),
    ],
)
def test_bad_input_is_refused_with_a_reason(arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        AttentionStepsExplorer(*arguments)


def finding(page: Page) -> str:
    return page.locator(".tt-found").inner_text()


def step_to(page: Page, name: str) -> None:
    page.get_by_label(name, exact=True).check()


@in_browser
@pytest.mark.parametrize("made", [specimen(), head(list("abcde"), 4, 3, 3)], ids=repr)
def test_numbers_on_screen_are_pythons_at_every_step(show: Show, made: AttentionStepsExplorer) -> None:
    page = show(made)
    expected, row = made.trace(), len(made.tokens) - 1
    for step, name in (("Compare", "QK"), ("Scale", "S"), ("Softmax", "A"), ("Blend", "A")):
        step_to(page, step)
        np.testing.assert_allclose(numbers(page, "rect"), expected[name][row], atol=1e-6)
    shown = re.search(r"= \(([^)]*)\)\.$", finding(page).replace("−", "-"))
    assert shown is not None
    np.testing.assert_allclose([float(part) for part in shown[1].split(",")], expected["AV"][row], atol=0.0051)


@in_browser
def test_pulling_the_query_turns_the_attention(show: Show) -> None:
    page = show(specimen())
    page.locator('[data-key="ask1"]').press("Enter")
    page.locator('[data-key="ask7"]').press("Enter")
    assert finding(page).startswith("“it” gives 0.69 of its attention to “book”")
    handle, axis = page.locator('[data-key="pull"]'), page.locator('[data-key="key1"]').bounding_box()
    handle.hover()
    page.mouse.down()
    page.mouse.move(axis["x"] + axis["width"], axis["y"] + axis["height"] / 2, steps=4)
    page.mouse.up()
    assert re.match(r"“it” gives 0.\d\d of its attention to “girl”", finding(page))
    assert "“girl”" in spoken(page).inner_text()
    for _ in range(40):
        handle.press("ArrowUp")
    assert "to “book”" in finding(page)
    page.get_by_role("button", name="Reset").click()
    assert finding(page).startswith("“it” gives 0.69")


@in_browser
def test_a_bar_tells_the_sum_behind_it(show: Show) -> None:
    page = show(specimen())
    step_to(page, "Compare")
    page.locator('[data-key="why1"]').click()
    assert finding(page).startswith("“it” · “girl” = 0.50·2.10 + 2.10·0.20 = 1.47")
    step_to(page, "Scale")
    assert finding(page).startswith("1.47 / √2 = 1.04")


@in_browser
def test_the_stage_keeps_its_height_and_the_finding_waits_for_the_reader(show: Show) -> None:
    page = show(specimen(), width=390)
    card = page.locator("section.tt")
    expect(page.locator(".tt-invite")).to_have_css("opacity", "1")
    expect(page.locator(".tt-found")).to_have_css("opacity", "0")
    heights = {card.bounding_box()["height"]}
    for name in ("Compare", "Scale", "Softmax", "Blend"):
        step_to(page, name)
        heights.add(card.bounding_box()["height"])
    expect(page.locator(".tt-found")).to_have_css("opacity", "1")
    assert max(heights) - min(heights) < 45  # a line of the finding, no more
    assert min(heights) <= 700


@in_browser
def test_the_finding_says_that_the_arrows_agree_only_where_they_do(show: Show) -> None:
    page = show(specimen())
    assert "points where that word’s key points" in finding(page)
    for _ in range(6):
        page.locator('[data-key="pull"]').press("ArrowRight")
    assert "fits that word’s key best" in finding(page)


@in_browser
@pytest.mark.parametrize(
    ("step", "said"), [("project", "No word wins: the largest share is 0."), ("blend", "becomes a mixture")]
)
def test_no_winner_is_named_where_none_wins(show: Show, step: str, said: str) -> None:
    made = AttentionStepsExplorer(step=step)
    made.pulled = [0.1, 0.1]
    assert said in finding(show(made))


@in_browser
def test_a_word_that_is_picked_is_picked_in_every_figure_of_its_sentence(show: Show) -> None:
    made = specimen()
    heard = SequentialExplorer(made.tokens, maps={"m": np.ones((8, 8))}, hearing=True)
    page = show(
        made, AttentionExplorer(made.tokens, made.trace()["QK"]), AttentionExplorer(list("abcdefgh"), np.eye(8)), heard
    )
    page.locator('[data-key="ask1"]').click()
    found = page.locator(".tt-found").all_text_contents()
    assert found[1].startswith(f"“{made.tokens[1]}” gives")
    assert found[2].startswith("“a” gives")  # another sentence
    assert f"“{made.tokens[1]}”" in found[3]
    page.locator('[data-row="4"][data-column="-1"]').first.click()
    assert page.locator(".tt-found").first.text_content().startswith(f"“{made.tokens[4]}”")


@in_browser
def test_pointing_at_a_word_lets_it_look_up_and_a_click_keeps_that(show: Show) -> None:
    page = show(specimen())
    found, made = page.locator(".tt-found"), specimen()
    before, other = found.text_content(), (made.selected + 2) % len(made.tokens)
    page.locator(f'[data-key="ask{other}"]').hover()
    told = found.text_content()
    assert f"“{made.tokens[other]}”" in told
    assert told != before
    page.mouse.move(0, 0)
    assert found.text_content() == before
    page.locator(f'[data-key="ask{other}"]').click()
    page.mouse.move(0, 0)
    assert found.text_content() == told
