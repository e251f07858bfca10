"""Decoding as a reader without a kernel meets it: step by step, by pointer, keyboard and touch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.book.browser import OVERFLOW
from tests.widgets.test_decoding import HOSTILE, made, specimen, translator
from ttutor.widgets import DecodingExplorer
from ttutor.widgets.decoding_trace import KEPT

pytestmark = pytest.mark.browser

Open = Callable[..., Page]


def go_on(page: Page, steps: int) -> None:
    for _ in range(steps):
        page.get_by_role("button", name="Next").click(force=True)


def node(page: Page, row: int, column: int):
    return page.locator(f'.node[data-row="{row}"][data-column="{column}"]')


def results(page: Page) -> list[tuple[str, list[float]]]:
    """What the table lists, greedy first: the translation, and its numbers."""
    return page.locator("tr:has([data-value])").evaluate_all(
        """rows => rows.map((row) => [row.children[1].textContent,
          [...row.querySelectorAll('[data-value]')].map((cell) => Number(cell.dataset.value))])"""
    )


def assert_results(page: Page, explorer: DecodingExplorer) -> None:
    (text, (total,)), *found = results(page)
    assert text == explorer.greedy()[0]
    assert total == pytest.approx(explorer.greedy()[1], abs=1e-6)
    assert [one[0] for one in found] == [one[0] for one in explorer.results()]
    for (_, numbers), (_, log_p, _, score, _) in zip(found, explorer.results(), strict=True):
        assert numbers == pytest.approx([log_p, score], abs=1e-6)


@pytest.mark.parametrize("sentence", range(4))
def test_the_end_of_every_sentence_is_pythons_under_every_penalty(sentence: int, open_saved: Open) -> None:
    explorer = specimen()
    explorer.sentence = sentence
    explorer.step = len(explorer.sentences[sentence]["next"]) - 1
    page = open_saved(explorer)
    assert_results(page, explorer)
    for key, alpha in (("Home", 0.0), ("End", 2.0)):
        page.get_by_label("Length penalty").press(key)
        explorer.alpha = alpha
        assert_results(page, explorer)
    same = explorer.results()[0][0] == explorer.greedy()[0]
    assert ("Both write the same" if same else "They differ") in page.locator("section.tt").inner_text()


def test_every_step_shows_its_candidates_weights_and_next_tokens(open_saved: Open) -> None:
    explorer = specimen()
    page = open_saved(explorer)
    one = explorer.sentences[0]
    for step, candidates in enumerate(one["candidates"]):
        newest = page.locator(f'.node[data-column="{step + 1}"]')
        shown = newest.evaluate_all("all => all.map((e) => Number(e.dataset.value))")
        assert sorted(shown) == pytest.approx(sorted(total for _, _, total, _ in candidates), abs=1e-6)
        kept = sum(fate == KEPT for *_, fate in candidates)
        assert page.locator(f'.node[data-column="{step + 1}"]:not(.dead):not(.ended)').count() == kept
        weights = page.locator(".word").evaluate_all("all => all.map((e) => Number(e.dataset.value))")
        assert weights == pytest.approx(one["attention"][step][0], abs=1e-6)
        numbers = page.locator(".tt-bars .number").all_inner_texts()
        assert numbers[:-1] == [f"{p:.3f}" for _, p in one["next"][step][0]]
        go_on(page, 1)
    assert page.locator("output").first.inner_text() == f"token {len(one['next'])} of {len(one['next'])}"


def test_choosing_another_beginning_shows_where_it_looks(open_saved: Open) -> None:
    explorer = specimen()
    page = open_saved(explorer)
    go_on(page, 5)
    node(page, 1, 5).click()
    weights = page.locator(".word").evaluate_all("all => all.map((e) => Number(e.dataset.value))")
    assert weights == pytest.approx(explorer.sentences[0]["attention"][5][1], abs=1e-6)
    expect(node(page, 1, 5)).to_have_attribute("aria-pressed", "true")
    node(page, 0, 2).click()  # back to an earlier step
    expect(page.locator("output").first).to_contain_text("token 3 of")


def test_reset_brings_everything_back(open_saved: Open) -> None:
    page = open_saved(specimen())
    before = page.locator("section.tt").inner_text()
    page.get_by_label("Sentence").select_option(index=2)
    go_on(page, len(specimen().sentences[2]["next"]))
    page.get_by_label("Length penalty").press("Home")
    expect(page.locator("output").last).to_have_text("0.0")
    page.get_by_role("button", name="Reset").click()
    assert page.locator("section.tt").inner_text() == before


def test_a_shorter_sentence_after_a_longer_one(open_saved: Open) -> None:
    page = open_saved(specimen())
    go_on(page, 8)
    page.get_by_label("Sentence").select_option(index=2)
    expect(page.locator("output").first).to_contain_text("token 1 of")


def test_the_tree_is_one_tab_stop_and_arrows_move_in_it(open_saved: Open) -> None:
    page = open_saved(specimen())
    go_on(page, 4)
    assert page.locator('.node[tabindex="0"]').count() == 1
    node(page, 0, 4).focus()
    page.keyboard.press("ArrowDown")
    expect(node(page, 1, 4)).to_be_focused()
    page.keyboard.press("Enter")
    expect(node(page, 1, 4)).to_have_attribute("aria-pressed", "true")
    expect(node(page, 1, 4)).to_be_focused()  # it was drawn anew
    page.keyboard.press("ArrowRight")
    expect(node(page, 1, 5)).to_be_focused()


def test_screen_readers_hear_nodes_and_steps(open_saved: Open) -> None:
    explorer = specimen()
    page = open_saved(explorer)
    go_on(page, 1)
    one = explorer.sentences[0]
    weights = one["attention"][1][0]
    top = one["source_tokens"][weights.index(max(weights))].replace("▁", "")
    expect(page.locator('[role="status"]')).to_contain_text(f"looks most at {top}, {max(weights):.2f}")
    dropped = page.locator(".node.dead").last
    assert dropped.get_attribute("aria-label").endswith("dropped")
    dropped.click()
    expect(page.locator('[role="status"]')).to_contain_text("dropped")


def test_a_tap_chooses_on_a_phone(open_saved: Open) -> None:
    page = open_saved(specimen(), width=360, touch=True)
    for _ in range(4):
        page.get_by_role("button", name="Next").tap()
        assert page.evaluate(OVERFLOW) == []
    node(page, 1, 4).tap()
    expect(node(page, 1, 4)).to_have_attribute("aria-pressed", "true")


def test_a_search_that_is_cut_off_and_greedy_alone(open_saved: Open) -> None:
    for beam in (1, 3):
        explorer = made(beam, 3)
        page = open_saved(explorer)
        go_on(page, 5)
        assert "token 3 of 3" in page.locator("output").first.inner_text()
        assert [one[1] for one in results(page)[1:]] == [
            pytest.approx([log_p, score], abs=1e-6) for _, log_p, _, score, _ in explorer.results()
        ]


def test_hostile_text_stays_text(open_saved: Open) -> None:
    page = open_saved(DecodingExplorer.from_model(translator(), HOSTILE, beam=2, max_new_tokens=3))
    go_on(page, 3)
    assert page.locator("img").count() == 0
    assert HOSTILE in page.get_by_label("Sentence").inner_text()


def test_how_far_the_model_was_trained_is_told(open_saved: Open) -> None:
    explorer = specimen()
    page = open_saved(explorer)
    for number, one in enumerate(explorer.sentences):
        page.get_by_label("Sentence").select_option(index=number)
        assert f"The model {one['model']} of training" in page.locator("section.tt").inner_text()


def test_the_best_extension_is_written_as_its_bar_is(open_saved: Open) -> None:
    explorer = specimen()
    for sentence, one in enumerate(explorer.sentences):
        explorer.sentence = sentence
        page = open_saved(explorer)
        for following in one["next"]:
            said = page.locator("p.tt-note", has_text="Best extension").inner_text()
            assert f"ln {following[0][0][1]:.3f} =" in said
            assert page.locator(".tt-bars .number").first.inner_text() == f"{following[0][0][1]:.3f}"
            go_on(page, 1)


def test_it_says_when_the_penalty_acts(open_saved: Open) -> None:
    page = open_saved(specimen())
    text = page.locator("section.tt")
    expect(text).to_contain_text("α acts once a translation is finished")
    expect(text).to_contain_text("Translations so far")
    expect(text).to_contain_text("“·” in front: continues the word")
    go_on(page, len(specimen().sentences[0]["next"]))
    expect(text).not_to_contain_text("α acts once")
