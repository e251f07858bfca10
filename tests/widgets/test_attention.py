"""One word looks up, and all words at once: numbers in Python and on the page, the arrow that is pulled, the steps,
the fallback, what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, Table, cell, in_browser, numbers, slide, spoken, state_of
from ttutor.widgets import AttentionExplorer, SequentialExplorer
from ttutor.widgets.attention import MAX_TOKENS, STEPS


def specimen() -> AttentionExplorer:
    """The figure as the gallery shows it."""
    return AttentionExplorer.by_hand()


def head(tokens: list[str], d_head: int, d_value: int, **options: str) -> AttentionExplorer:
    rng = np.random.default_rng(len(tokens))
    sizes = [(len(tokens), d_head), (len(tokens), d_head), (len(tokens), d_value)]
    return AttentionExplorer(tokens, vectors=[rng.normal(size=size) for size in sizes], **options)


def hostile() -> AttentionExplorer:
    return head(HOSTILE, 2, 2, note=HOSTILE[0], step="all")


def extremes() -> list[AttentionExplorer]:
    def words(n_tokens: int) -> list[str]:
        return [f"Donaudampfschiff{i}" if i % 3 == 0 else f"t{i}" for i in range(n_tokens)]

    full = AttentionExplorer(words(48), 10 * np.random.default_rng(0).normal(size=(48, 48)), causal=True)
    maps = [full, *(AttentionExplorer(words(n), np.zeros((n, n))) for n in (1, 16, 200))]
    return [*maps, *(head(words(8), size, size, step=step) for step in STEPS for size in (2, 8)), head(["a"], 1, 1)]


WORDS = ["the", "cat", "sat", "on", "the", "mat"]
TAP = ('[data-key="ask1"]', "gives 0.")
TOKENS = ["the", "cat", "sat"]
EYE = np.eye(3)
SCORES = [[0.12345, -1.5, 2.0], [0.0, 0.5, 1.0], [3.0, -0.00001, 0.25]]


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_weights_are_the_softmax_of_the_rounded_scores_divided_by_the_root_of_d_head_while_scaled() -> None:
    explorer = AttentionExplorer(TOKENS, SCORES, d_head=16)
    explorer.temperature = 2.5
    np.testing.assert_allclose(explorer.weights, softmax(np.round(SCORES, 3) / 10), atol=1e-12)
    explorer.scaled = False
    np.testing.assert_allclose(explorer.weights, softmax(np.round(SCORES, 3) / 2.5), atol=1e-12)


def test_causal_and_given_masks_work_together_and_empty_rows_are_said() -> None:
    mask = [[False, True, True], [False, True, True], [False, False, True]]
    explorer = AttentionExplorer(TOKENS, SCORES, mask=mask, causal=True)
    expected = [[0, 0, 0], [0, 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(explorer.weights, expected, atol=1e-12)
    assert "A row of – alone may attend to nothing: its weights are all 0." in explorer.fallback_html()
    assert (AttentionExplorer(TOKENS, SCORES, mask=np.zeros((3, 3), bool)).weights == 0).all()


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
        ({"scores": None}, TypeError, r"give scores \(queries keys\) or vectors"),
        ({"vectors": [EYE] * 3}, TypeError, "with vectors the scores are their products"),
        ({"scores": None, "vectors": [EYE] * 2}, ValueError, "vectors has 2 parts, expected 3"),
        ({"scores": None, "vectors": [EYE * 11] * 3}, ValueError, "query holds 11; it has to lie between -10 and 10"),
        ({"scores": None, "vectors": [EYE, EYE[:, :2], EYE]}, ValueError, r"key has shape \(3, 2\), expected \(3, 3\)"),
        ({"scores": None, "vectors": [np.ones((3, 9))] * 3}, ValueError, "the number of features of query"),
        ({"step": "blend"}, ValueError, "step 'blend' needs vectors"),
        ({"selected": 3}, ValueError, "selected has to be from 0 to 2"),
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
    """The map of six words; what only traits change is set as a reader would."""
    scores = 2 * np.random.default_rng(0).normal(size=(6, 6))
    given = {name: options.pop(name) for name in ("temperature", "scaled") if name in options}
    made = AttentionExplorer(WORDS, scores, **options)
    made.set_state(given)
    return made


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
        {"causal": True, "mask": np.arange(36).reshape(6, 6) % 5 > 1},
        {"mask": np.zeros((6, 6), bool)},
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
    told = f"“voiture” gives {made.weights[1, 2]:.3f} of its attention to “car”."
    assert finding(page) == f"{told} Its row adds up to 1.000."


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
    page = show(explorer(selected=2), width=390)
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
def test_beside_the_map_stand_the_query_of_the_row_and_the_key_that_it_attends_to_most(show: Show) -> None:
    made = AttentionExplorer.by_hand(step="all")
    query, key, scores = (made.trace()[name] for name in ("Q", "K", "QK"))
    page = show(made)
    for row in range(8):
        cell(page, row, -1).click()
        page.mouse.move(0, 0)
        best = scores[row].argmax()
        expect(page.locator('.panel text[font-weight="700"]')).to_have_text(made.tokens[best])
        for name, vector in (("query", query[row]), (f"key{best}", key[best])):
            drawn = page.locator(f'[data-key="{name}"]').get_attribute("d") or ""
            start, tip = (np.array([float(part) for part in at.split()]) for at in drawn[1:].split("L")[:2])
            across, up = (tip - start) * [1, -1]
            assert abs(across * vector[1] - up * vector[0]) < 0.02 * np.hypot(across, up) * np.hypot(*vector)


@in_browser
def test_the_arrow_is_pulled_beside_the_map_and_the_views_agree(show: Show) -> None:
    made = AttentionExplorer.by_hand(step="all")
    page = show(made)
    for _ in range(3):
        page.locator('[data-key="pull"]').press("ArrowRight")
    page.get_by_label("causal mask").check()
    slide(page, "Temperature", "PageUp")
    weights = numbers(page).reshape(8, 8)
    assert np.abs(weights[7] - made.weights[7]).max() > 0.05
    cell(page, 7, 2).click()
    assert finding(page).startswith(f"“it” gives {weights[7, 2]:.3f} of its attention to “read”")
    step_to(page, "Softmax")
    np.testing.assert_allclose(numbers(page, "rect"), weights[7], atol=1e-9)
    assert finding(page).startswith(f"“read” gets {weights[7, 2]:.2f} of the attention")
    step_to(page, "Scale")
    assert " / √2 / " in finding(page)
    step_to(page, "All")
    cell(page, 3, 5).click()
    assert finding(page) == "“a” may not attend to “and”."
    step_to(page, "Softmax")
    assert finding(page) == "“and” is masked: it gets nothing, whatever its score."


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
    made.causal, made.selected = True, 0
    assert finding(show(made)).endswith("the only word that it may see. Its row adds up to 1.000.")


@in_browser
def test_pointing_at_a_cell_shows_what_tapping_keeps(show: Show) -> None:
    made = explorer(d_head=64)
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


# ---------------------------------------------------------------- one word looks up


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
    query, key, value = (rng.normal(size=size).round(3) for size in ((5, 3), (5, 3), (5, 6)))
    found = AttentionExplorer(list("abcde"), vectors=(query, key, value)).trace()
    expected = {"Q": query, "S": query @ key.T / np.sqrt(3), "A": softmax(query @ key.T / np.sqrt(3))}
    for name, table in (expected | {"AV": expected["A"] @ value}).items():
        np.testing.assert_allclose(found[name], table, atol=1e-9)
    with pytest.raises(ValueError, match="scores alone"):
        AttentionExplorer(TOKENS, SCORES).trace()


def step_to(page: Page, name: str) -> None:
    page.get_by_label(name, exact=True).check()


@in_browser
@pytest.mark.parametrize("made", [specimen(), head(list("abcde"), 3, 3)], ids=repr)
def test_numbers_on_screen_are_pythons_at_every_step(show: Show, made: AttentionExplorer) -> None:
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
def test_the_map_is_a_step_like_the_others_under_one_question_and_nearly_as_tall(show: Show) -> None:
    page = show(specimen(), width=780)
    card, question = page.locator("section.tt"), page.locator(".tt-question")
    before = question.inner_text(), card.bounding_box()["height"]
    step_to(page, "All")
    assert question.inner_text() == before[0]
    assert card.bounding_box()["height"] - before[1] < 75  # the row of its own controls, and a line of the caption


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
    made = AttentionExplorer.by_hand(step=step)
    made.pulled = [0.1, 0.1]
    page = show(made)
    assert said in finding(page)
    assert page.locator('[data-key^="word"][font-weight="700"]').count() == 0
    assert page.locator('[data-key^="of"][font-weight="700"]').count() == (step != "project")  # the one looked at


@in_browser
def test_two_words_that_tie_are_both_named_and_both_bold(show: Show) -> None:
    keys = [[1, 0], [1, 0], [0, 1]]
    page = show(AttentionExplorer(list("abc"), vectors=([[3, 0]] * 3, keys, keys)))
    assert "attention each to “a” and “b”: they tie" in finding(page)
    assert page.locator('[data-key^="word"][font-weight="700"]').all_text_contents() == ["a", "b"]
    step_to(page, "All")
    assert "to “a”, as much as to “b”" in finding(page)


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
    assert found[2].startswith("“h” gives")  # another sentence
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
