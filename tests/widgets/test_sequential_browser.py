"""Sequential or parallel as a reader meets it: stepping, playing, sizes, modes, and numbers held to Python's."""

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.book.browser import OVERFLOW
from tests.widgets.test_sequential import SENTENCE, facts, specimen
from ttutor.widgets import SequentialExplorer

pytestmark = pytest.mark.browser
Open = Callable[..., Page]
HOSTILE = ['<img src=x onerror="window.hacked=1">', "</script><script>window.hacked=1</script>", "&lt;b&gt;"]


def shown_ticks(page: Page, lane: int) -> list[int]:
    """The tick of every cell of a lane, token by token and then layer by layer."""
    return page.locator("svg").nth(lane).locator("rect").evaluate_all("all => all.map((e) => Number(e.dataset.due))")


def lit(page: Page, lane: int, state: str = "now") -> list[int]:
    """Which cells of a lane are lit, in the same order."""
    cells = page.locator("svg").nth(lane).locator("rect")
    return [
        i
        for i, name in enumerate(cells.evaluate_all("all => all.map((e) => e.getAttribute('class'))"))
        if name == state
    ]


def shown_facts(page: Page) -> np.ndarray:
    rows = page.locator("tr:has(td[data-value])")
    return np.array(
        rows.evaluate_all("all => all.map((r) => [...r.querySelectorAll('td')].map((c) => Number(c.dataset.value)))")
    )


def click(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("generating", [False, True])
@pytest.mark.parametrize(("n_tokens", "n_layers", "d_model"), [(2, 1, 16), (2, 3, 7), (8, 2, 16), (13, 4, 64)])
def test_ticks_and_costs_on_screen_are_measured(
    open_saved: Open, n_tokens: int, n_layers: int, d_model: int, generating: bool
) -> None:
    made = SequentialExplorer(
        SENTENCE, n_tokens=n_tokens, n_layers=n_layers, d_model=d_model, generating=generating, tick=1
    )
    page = open_saved(made)
    lanes = list(made.measured().values())
    for i, lane in enumerate(lanes):
        assert shown_ticks(page, i) == lane.ticks.T.ravel().tolist()
    assert shown_facts(page).tolist() == np.transpose([facts(lane, generating) for lane in lanes]).tolist()
    scan = "(A linear recurrence could be computed as a scan, in"
    assert (scan in page.locator("section.tt").inner_text()) is not generating


def test_sliders_modes_and_widths_reach_every_number(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    for key, n_tokens in (("End", 64), ("Home", 2)):
        page.get_by_label("Tokens T").press(key)
        made.n_tokens = n_tokens
        assert shown_facts(page)[:, 0].tolist() == facts(made.measured()["rnn"], False)
        assert shown_facts(page)[:, 1].tolist() == facts(made.measured()["transformer"], False)
    page.get_by_label("Layers L").press("ArrowRight")
    page.get_by_label("Width d").select_option("64")
    page.get_by_label("generating").check()
    made.n_layers, made.d_model, made.generating = 3, 64, True
    assert shown_facts(page)[:, 1].tolist() == facts(made.measured()["transformer"], True)
    assert "Both need 6 ticks" in page.locator(".sum").inner_text()


def test_formulas_are_written_with_the_numbers_put_in(open_saved: Open) -> None:
    text = open_saved(specimen()).locator("table").inner_text()
    for written in (
        "T + L − 1",
        "8 + 2 − 1",
        "2 · T² · L · d",
        "2 · 8² · 2 · 16",
        "T · L · d²",
        "8 · 2 · 16²",
        "53\u202f248",
    ):
        assert written in text


# ---------------------------------------------------------------- stepping


def test_one_token_a_tick_against_all_tokens_at_once(open_saved: Open) -> None:
    page = open_saved(SequentialExplorer(SENTENCE, n_layers=1))
    for tick in range(1, 8):
        click(page, "Next")
        assert lit(page, 0) == [tick - 1]
        assert lit(page, 0, "done") == list(range(tick - 1))
        assert lit(page, 1) == (list(range(7)) if tick == 1 else [])
        assert lit(page, 1, "done") == ([] if tick == 1 else list(range(7)))
    assert page.locator("b").all_inner_texts()[:2] == ["RNN: tick 7 of 7", "Transformer: tick 1 of 1"]
    expect(page.get_by_role("button", name="Next")).to_have_attribute("aria-disabled", "true")
    click(page, "Back")
    assert lit(page, 0) == [5]


def test_generating_writes_the_words_one_by_one(open_saved: Open) -> None:
    page = open_saved(SequentialExplorer(SENTENCE, n_layers=2, generating=True, tick=4))
    words = page.locator("svg").nth(1).locator("text").all_text_contents()
    assert words[:7] == ["the", "cat", "sat", "…", "…", "…", "…"]
    assert lit(page, 0) == lit(page, 1) == [3]


def test_it_plays_to_the_end_and_stops(open_saved: Open) -> None:
    page = open_saved(SequentialExplorer(["a", "b"], n_layers=1))
    click(page, "Play")
    expect(page.locator("b").first).to_have_text("RNN: tick 2 of 2")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_reset_brings_the_first_view_back(open_saved: Open) -> None:
    page = open_saved(specimen())
    before = page.locator("section.tt").inner_text()
    page.get_by_label("Tokens T").press("End")
    page.get_by_label("generating").check()
    click(page, "Next")
    assert page.locator("section.tt").inner_text() != before
    click(page, "Reset")
    assert page.locator("section.tt").inner_text() == before
    assert page.get_by_label("training").is_checked()


def test_a_tick_behind_the_end_shows_all_done(open_saved: Open) -> None:
    page = open_saved(SequentialExplorer(SENTENCE, tick=300))
    assert page.locator("b").all_inner_texts()[:2] == ["RNN: tick 8 of 8", "Transformer: tick 2 of 2"]


# ---------------------------------------------------------------- keyboard, touch, screen reader, safety, size


def test_keyboard_and_words(open_saved: Open) -> None:
    page = open_saved(specimen())
    spoken = page.locator('[role="status"]')
    page.get_by_role("button", name="Next").press("Enter")
    expect(spoken).to_have_text("Tick 2. RNN: tick 2 of 9; Transformer: tick 2 of 2")
    page.get_by_label("Tokens T").press("ArrowRight")
    expect(spoken).to_contain_text("the RNN after 10, one more for each token.")
    expect(page.locator("svg").first).to_have_attribute("aria-label", "RNN: tick 0 of 10")


def test_taps_step_and_switch(open_saved: Open) -> None:
    page = open_saved(specimen(), width=360, touch=True)
    page.get_by_role("button", name="Next").tap()
    assert lit(page, 0) == [1, 2]
    page.get_by_label("generating").tap()
    assert "Both need 16 ticks" in page.locator(".sum").inner_text()


def test_hostile_words_stay_text(open_saved: Open) -> None:
    page = open_saved(SequentialExplorer(HOSTILE))
    click(page, "Next")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


@pytest.mark.filterwarnings("ignore:.*fit a screen")
@pytest.mark.parametrize("n_tokens", [2, 16, 64, 200])
def test_it_fits_a_phone_and_letters_stay_large(open_saved: Open, n_tokens: int) -> None:
    words = [f"Donau{i}" for i in range(n_tokens)]
    # Small, and then as large as a reader can make it: to measure it so large at once would take ten seconds.
    page = open_saved(SequentialExplorer(words, n_tokens=2, n_layers=1), width=360)
    page.get_by_label("Layers L").press("End")
    slider = page.get_by_label("Tokens T")
    slider.evaluate("(e, n) => { e.value = n; e.dispatchEvent(new Event('input', { bubbles: true })); }", n_tokens)
    assert len(shown_ticks(page, 0)) == 6 * min(n_tokens, 64)
    assert page.evaluate(OVERFLOW) == []
    scale = "s => s.getBoundingClientRect().width / s.viewBox.baseVal.width"
    assert page.locator("svg").first.evaluate(scale) * 12 >= 11
    assert ("first 64 of 200 tokens" in page.locator(".tt-note").inner_text()) == (n_tokens == 200)
