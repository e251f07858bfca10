"""The attention map: its state, its numbers in Python and on the page, its fallback and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, Table, cell, in_browser, numbers, slide, spoken, state_of
from ttutor.widgets import AttentionExplorer, AttentionStepsExplorer
from ttutor.widgets.attention import MAX_TOKENS


def specimen() -> AttentionExplorer:
    """The figure as the gallery shows it."""
    scores = 2 * np.random.default_rng(0).normal(size=(6, 6))
    return AttentionExplorer(["the", "cat", "sat", "on", "the", "mat"], scores, d_head=64)


def hostile() -> AttentionExplorer:
    return AttentionExplorer(HOSTILE, np.eye(3))


def extremes() -> list[AttentionExplorer]:
    def words(n_tokens: int) -> list[str]:
        return [f"Donaudampfschiff{i}" if i % 3 == 0 else f"t{i}" for i in range(n_tokens)]

    full = AttentionExplorer(words(48), 10 * np.random.default_rng(0).normal(size=(48, 48)), causal=True)
    return [full, *(AttentionExplorer(words(n), np.zeros((n, n))) for n in (1, 16, 200))]


WORDS = ["the", "cat", "sat", "on", "the", "mat"]
TAP = ('[data-row="3"][data-column="2"]', "“on” gives 0.")
TOKENS = ["the", "cat", "sat"]
SCORES = [[0.12345, -1.5, 2.0], [0.0, 0.5, 1.0], [3.0, -0.00001, 0.25]]


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_weights_are_the_softmax_of_the_rounded_scores_divided_by_the_root_of_d_head_while_scaled() -> None:
    explorer = AttentionExplorer(TOKENS, SCORES, d_head=16, temperature=2.5)
    np.testing.assert_allclose(explorer.weights, softmax(np.round(SCORES, 3) / 10), atol=1e-12)
    explorer.scaled = False
    np.testing.assert_allclose(explorer.weights, softmax(np.round(SCORES, 3) / 2.5), atol=1e-12)


def test_padding_hides_keys_while_its_mask_is_on() -> None:
    explorer = AttentionExplorer(TOKENS, SCORES, padding=np.array([False, False, True]))
    without = softmax(np.round(SCORES, 3)[:, :2])
    np.testing.assert_allclose(explorer.weights, np.pad(without, ((0, 0), (0, 1))), atol=1e-12)
    explorer.padding_masked = False
    np.testing.assert_allclose(explorer.weights, softmax(np.round(SCORES, 3)), atol=1e-12)


def test_padding_causal_and_given_masks_work_together_and_empty_rows_are_said() -> None:
    mask = [[True] * 3, [True, True, True], [True, False, True]]
    explorer = AttentionExplorer(TOKENS, SCORES, mask=mask, causal=True, padding=[True, False, False])
    expected = [[0, 0, 0], [0, 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(explorer.weights, expected, atol=1e-12)
    assert "A row of – alone may attend to nothing: its weights are all 0." in explorer.fallback_html()
    assert (AttentionExplorer(TOKENS, SCORES, padding=[True] * 3).weights == 0).all()


def test_minus_infinity_is_read_as_masked() -> None:
    scores = torch.tensor(SCORES).masked_fill(~torch.ones(3, 3).tril().bool(), -torch.inf)
    explorer = AttentionExplorer(TOKENS, scores)
    np.testing.assert_allclose(explorer.weights, torch.softmax(scores, -1).numpy(), atol=1e-3)
    assert explorer.mask == [[True, False, False], [True, True, False], [True, True, True]]
    state_of(explorer)  # JSON has no infinity


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scores": np.zeros((1, 4, 3, 3))}, ValueError, r"one sentence and one head, such as scores\[0, 0\]"),
        ({"mask": np.ones((3, 3))}, TypeError, "expected bool with True = may attend"),
        ({"mask": np.ones((2, 3), bool)}, ValueError, "mask has shape"),
        ({"arrows": (np.ones((3, 2)), np.ones((3, 3)))}, ValueError, r"arrows\[1\] has shape"),
        ({"padding": [True]}, ValueError, "padding has 1 entries for 3 keys"),
    ],
)
def test_bad_input_is_refused_with_a_reason(options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        AttentionExplorer(**{"tokens": TOKENS, "scores": SCORES, **options})


def test_too_many_tokens_are_cut_and_it_is_said() -> None:
    n = 1000
    tokens = [f"t{i}" for i in range(n)]
    with pytest.warns(UserWarning, match="1000 queries and 60 keys .* first 48"):
        explorer = AttentionExplorer(tokens, np.ones((n, 60)), key_tokens=tokens[:60])
    assert np.shape(explorer.scores) == (MAX_TOKENS, MAX_TOKENS)
    np.testing.assert_allclose(explorer.weights, 1 / MAX_TOKENS)
    assert explorer.total == [n, 60]
    assert "The first 16 of 1000 queries and 16 of 60 keys." in explorer.fallback_html()


def test_the_fallback_is_a_table_of_the_weights() -> None:
    explorer = AttentionExplorer(TOKENS, SCORES, causal=True)
    table = Table(explorer.fallback_html())
    assert table.cells["th"] == TOKENS + TOKENS
    shown = [cell for cell in table.cells["td"] if cell]
    weights = explorer.weights
    expected = [f"{weights[i, j]:.2f}" if j <= i else "–" for i in range(3) for j in range(3)]
    assert shown == expected
    assert "temperature 1.0" in table.cells["caption"][0]


def distinct(place: int) -> str:
    """A word as a list in another order names it."""
    return ["the₁", "cat", "sat", "on", "the₅", "mat"][place]


def explorer(**options: object) -> AttentionExplorer:
    scores = 2 * np.random.default_rng(0).normal(size=(6, 6))
    return AttentionExplorer(WORDS, scores, **options)


def assert_shown(page: Page, made: AttentionExplorer) -> None:
    """The weights on the page are those of Python."""
    np.testing.assert_allclose(numbers(page), made.weights.ravel(), atol=1e-6)


def finding(page: Page) -> str:
    return page.locator(".tt-found").inner_text()


def panel(page: Page) -> str:
    return finding(page) + "\n" + page.locator(".panel").inner_text()


@in_browser
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"causal": True},
        {"temperature": 0.037},
        {"d_head": 64, "scaled": False, "causal": True},
        {"padding": [True, False, True, False, False, False], "causal": True, "mask": np.arange(36).reshape(6, 6) > 5},
        {"padding": [True] * 6},
    ],
    ids=str,
)
def test_numbers_on_screen_are_pythons(show: Show, options: dict) -> None:
    made = explorer(**options)
    page = show(made)
    assert_shown(page, made)


@in_browser
def test_cross_attention_with_other_keys_than_queries(show: Show) -> None:
    made = AttentionExplorer(["la", "voiture"], [[2.0, 0.1, 0.3], [0.2, 0.1, 1.9]], key_tokens=["the", "red", "car"])
    page = show(made)
    assert_shown(page, made)
    expect(page.get_by_label("causal mask")).to_be_hidden()
    cell(page, 1, -1).click()
    told = f"“voiture” gives {made.weights[1, 2]:.3f} of its attention to “car”: here the order stays."
    assert finding(page) == f"{told} Its row adds up to 1.000."
    widths = page.locator(".line").evaluate_all("all => all.map((one) => +one.getAttribute('stroke-width'))")
    np.testing.assert_allclose(widths, 14 * made.weights.ravel(), atol=0.006)


@in_browser
def test_where_two_neighbours_look_past_one_another_the_order_crosses(show: Show) -> None:
    made = AttentionExplorer(["a", "b", "c"], 5 * np.eye(3)[[0, 2, 1]], key_tokens=["x", "y", "z"])
    page = show(made)
    for row, end in enumerate(["here the order stays", "“c” looks at “y”: they cross", "“b” looks at “z”: they cross"]):
        cell(page, row, -1).click()
        assert finding(page).endswith(f"{end}. Its row adds up to 1.000.")


@in_browser
def test_pointing_at_a_cell_a_query_or_a_key(show: Show) -> None:
    made = explorer()
    page = show(made)
    cell(page, 2, 1).click()
    assert panel(page).startswith(f"“sat” gives {made.weights[2, 1]:.3f} of its attention to “cat”")
    expect(cell(page, 2, -1)).to_have_class("row-on")
    expect(cell(page, -1, 1)).to_have_class("column-on")
    cell(page, 1, -1).click()
    listed = page.locator(".panel li").evaluate_all(
        "items => items.map((li) => [...li.children].map((c) => c.textContent))"
    )
    expected = [(distinct(j), f"{made.weights[1, j]:.3f}") for j in np.argsort(-made.weights[1])]
    assert [(token, number) for token, _, number in listed] == expected
    cell(page, -1, 5).click()
    heaviest = made.weights[:, 5].argmax()
    expect(cell(page, heaviest, -1)).to_have_class("row-on")
    assert panel(page).startswith(
        f"“{made.tokens[heaviest]}” gives {made.weights[heaviest, 5]:.3f} of its attention to “mat”"
    )


@in_browser
def test_nothing_shifts_below_a_finger(show: Show) -> None:
    page = show(explorer(selected=[2, -1]), width=390)
    top = cell(page, 3, 3).bounding_box()
    assert panel(page).startswith("“sat” gives")
    cell(page, 3, 3).click()
    assert cell(page, 3, 3).bounding_box() == top
    assert panel(page).startswith("“on” gives")


@in_browser
def test_masked_cells_are_hatched_and_say_so(show: Show) -> None:
    page = show(explorer(causal=True))
    expect(cell(page, 0, 3)).to_have_attribute("aria-label", "the attends to on: masked")
    assert "repeating-linear-gradient" in cell(page, 0, 3).evaluate("c => getComputedStyle(c).backgroundImage")
    assert cell(page, 3, 0).evaluate("c => getComputedStyle(c).backgroundImage") == "none"
    cell(page, 0, 3).click()
    assert "may not attend" in panel(page)


@in_browser
def test_a_disc_has_its_weight_as_area(show: Show) -> None:
    made = explorer()
    page = show(made)
    page.wait_for_timeout(400)
    widths = page.locator("td").evaluate_all(
        "all => all.map((td) => new DOMMatrix(getComputedStyle(td, '::before').transform).a)"
    )
    np.testing.assert_allclose(np.square(widths), made.weights.ravel(), atol=1e-3)


@in_browser
def test_arrows_are_the_query_of_the_row_and_the_key_that_it_attends_to_most(show: Show) -> None:
    steps = AttentionStepsExplorer()
    query, key, scores = (steps.trace()[name] for name in ("Q", "K", "QK"))
    page = show(AttentionExplorer(steps.tokens, scores, d_head=2, arrows=(query, key)))
    for row in range(8):
        cell(page, row, -1).click()
        page.mouse.move(0, 0)
        best = scores[row].argmax()
        expect(page.locator('[data-key="found"]')).to_have_text(steps.tokens[best])
        page.wait_for_timeout(400)
        for name, vector in (("query", query[row]), (f"arrow{best}", key[best])):
            drawn = page.locator(f'[data-key="{name}"]').get_attribute("d") or ""
            start, tip = (np.array([float(part) for part in at.split()]) for at in drawn[1:].split("L")[:2])
            across, up = (tip - start) * [1, -1]
            assert abs(across * vector[1] - up * vector[0]) < 0.02 * np.hypot(across, up) * np.hypot(*vector)


@in_browser
def test_the_whole_map_is_one_tab_stop_and_arrows_move_in_it(show: Show) -> None:
    made = explorer()
    page = show(made)
    page.get_by_role("button", name="Reset").focus()
    page.keyboard.press("Tab")
    expect(cell(page, 0, 0)).to_be_focused()
    for key, row, column in [
        ("ArrowRight", 0, 1), ("ArrowDown", 1, 1), ("End", 1, 5), ("ArrowRight", 1, 5), ("Home", 1, -1),
        ("ArrowUp", 0, -1), ("ArrowUp", 0, -1), ("Control+End", 5, 5), ("ArrowLeft", 5, 4),
    ]:  # fmt: skip
        page.keyboard.press(key)
        expect(cell(page, row, column)).to_be_focused()
    assert f"“mat” gives {made.weights[5, 4]:.3f} of its attention to “the”" in panel(page)
    assert page.locator('[data-row][tabindex="0"]').count() == 1


@in_browser
def test_screen_readers_hear_cells_words_and_changes(show: Show) -> None:
    made = explorer()
    page = show(made)
    expect(cell(page, 1, 2)).to_have_attribute("aria-label", f"cat attends to sat: {made.weights[1, 2]:.3f}")
    expect(page.get_by_role("grid")).to_have_attribute(
        "aria-label", "Attention weights. Rows are queries, columns are keys."
    )
    cell(page, 1, -1).focus()
    best = made.weights[1].argmax()
    assert panel(page).startswith(
        f"“cat” gives {made.weights[1, best]:.3f} of its attention to “{made.tokens[best]}”, because that key"
    )
    slide(page, "Temperature", "Home")
    expect(spoken(page)).to_contain_text("; cold widens the gaps")


@in_browser
def test_a_word_that_may_see_only_one_is_not_said_to_choose_it(show: Show) -> None:
    made = explorer()
    made.causal, made.selected = True, [0, -1]
    assert finding(show(made)).endswith("the only word that it may see. Its row adds up to 1.000.")


@in_browser
def test_pointing_shows_what_tapping_keeps(show: Show) -> None:
    made = specimen()
    page = show(made)
    before = finding(page)
    page.locator('[data-row="2"][data-column="1"]').hover()
    told = finding(page)
    assert told.startswith(f"“{made.tokens[2]}” gives {made.weights[2, 1]:.3f} of its attention to “{made.tokens[1]}”")
    assert told.endswith("Its row adds up to 1.000.")
    page.mouse.move(0, 0)
    assert finding(page) == before
    page.locator('[data-row="2"][data-column="1"]').click()
    page.mouse.move(0, 0)
    assert finding(page) == told
    page.locator('[data-row="2"][data-column="1"]').press("ArrowDown")
    assert finding(page).startswith(f"“{made.tokens[3]}” gives {made.weights[3, 1]:.3f}")
