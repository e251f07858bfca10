"""Attention step by step as a reader without a kernel meets it: by pointer, keyboard and touch."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.book.browser import OVERFLOW
from tests.widgets.test_attention_browser import CONTRAST
from tests.widgets.test_attention_steps import HOSTILE, TOKENS
from ttutor.widgets import AttentionStepsExplorer
from ttutor.widgets.attention_steps import STEPS
from ttutor.widgets.static import module_source

pytestmark = pytest.mark.browser
Open = Callable[..., Page]


def part(page: Page, name: str) -> Locator:
    return page.locator(f'[data-part="{name}"]')


def cell(page: Page, name: str, row: int, column: int) -> Locator:
    return part(page, name).locator(f'[data-row="{row}"][data-column="{column}"]')


def numbers(page: Page, name: str) -> np.ndarray:
    rows = part(page, name).locator("tbody tr")
    read = "rows => rows.map((r) => [...r.querySelectorAll('td')].map((c) => c.dataset.value))"
    return np.array([[float(value) for value in row] for row in rows.evaluate_all(read)])


def shown(page: Page) -> list[str]:
    return page.locator("[data-part]").evaluate_all("all => all.map((e) => e.dataset.part)")


def panel(page: Page) -> str:
    return page.locator(".sum").inner_text()


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def sum_in(text: str) -> float:
    """Work out the products that the panel shows, without looking at its result."""
    terms = text.split(" = ")[0].replace("−", "-").split("\n")[-1]
    pairs = re.findall(r"\(?(-?[\d.]+)\)?\s*·\s*\(?(-?[\d.]+)\)?", terms)
    return sum(float(a) * float(b) for a, b in pairs)


# ---------------------------------------------------------------- numbers


def head(n_tokens: int, d_model: int, d_head: int, d_value: int, causal: bool) -> AttentionStepsExplorer:
    rng = np.random.default_rng(n_tokens)
    sizes = [(n_tokens, d_model), (d_head, d_model), (d_head, d_model), (d_value, d_model)]
    tables = [rng.normal(size=size) for size in sizes]
    return AttentionStepsExplorer([f"t{i}" for i in range(n_tokens)], *tables, causal=causal, step="blend")


@pytest.mark.parametrize(
    "made",
    [
        AttentionStepsExplorer(TOKENS, step="blend"),
        AttentionStepsExplorer(TOKENS, step="blend", causal=True),
        head(1, 1, 1, 1, True),
        head(8, 16, 8, 5, False),
        head(5, 2, 7, 3, True),
        AttentionStepsExplorer(["a", "b"], 10 * np.eye(2), 10 * np.eye(2), 10 * np.eye(2), step="blend"),
    ],
    ids=repr,
)
def test_numbers_on_screen_are_pythons(open_saved: Open, made: AttentionStepsExplorer) -> None:
    page = open_saved(made)
    expected = made.trace()
    assert set(shown(page)) == set(expected)
    for name, table in expected.items():
        np.testing.assert_allclose(numbers(page, name), table, atol=1e-6)


@pytest.mark.parametrize("name", ["Q", "K", "V"])
def test_the_learned_matrices_stand_below_what_they_make(open_saved: Open, name: str) -> None:
    made = AttentionStepsExplorer(TOKENS, step="project")
    page = open_saved(made)
    stored = {"Q": made.w_query, "K": made.w_key, "V": made.w_value}[name]
    np.testing.assert_allclose(numbers(page, f"W_{name}"), stored, atol=1e-9)
    assert shown(page) == ["Q", "W_Q", "K", "W_K", "V", "W_V", "X"]


# ---------------------------------------------------------------- the sum behind a number


@pytest.mark.parametrize(
    ("name", "step", "title"),
    [
        ("Q", "project", "query of “ML”, feature 1"),
        ("V", "project", "value of “ML”, feature 1"),
        ("QK", "scores", "dot product of “ML” for “love”"),
        ("AV", "blend", "context of “ML”, feature 1"),
    ],
)
def test_hovering_a_number_writes_the_sum_that_made_it(open_saved: Open, name: str, step: str, title: str) -> None:
    made = AttentionStepsExplorer(TOKENS, step=step)
    page = open_saved(made)
    cell(page, name, 2, 1).hover()
    text = panel(page)
    value = made.trace()[name][2, 1]
    assert text.startswith(title)
    assert sum_in(text) == pytest.approx(value, abs=0.02)
    assert float(text.split(" = ")[-1].replace("−", "-")) == pytest.approx(value, abs=5.1e-4)


def test_scale_and_softmax_are_written_out(open_saved: Open) -> None:
    made = AttentionStepsExplorer(TOKENS, step="softmax")
    page = open_saved(made)
    found = made.trace()
    cell(page, "S", 1, 0).hover()
    assert f"{found['QK'][1, 0]:.2f}" in panel(page)
    assert "/ √3 = " in panel(page)
    assert "/ 1.732 = 4.223" in panel(page)
    cell(page, "A", 1, 0).hover()
    powers = np.exp(found["S"][1])
    assert f"{powers[0]:.2f}" in panel(page)
    assert f"/ {powers.sum():.2f}"[:-1] in panel(page)
    assert panel(page).endswith("= 0.14")
    assert found["A"][1, 0] == pytest.approx(0.14, abs=5e-4)


def test_what_went_into_a_number_is_outlined(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(TOKENS, step="scores"))
    cell(page, "QK", 1, 2).hover()
    expect(cell(page, "QK", 1, 2)).to_have_class(re.compile(r"\bon\b"))
    for name, row in (("Q", 1), ("K", 2)):
        assert (
            part(page, name).locator("td.near").evaluate_all("all => all.map((c) => c.dataset.row)") == [str(row)] * 3
        )
    assert part(page, "V").locator("td.near").count() == 0


def test_large_scores_are_lowered_first(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(["a", "b"], 10 * np.eye(2), 9 * np.eye(2), 9 * np.eye(2), step="softmax"))
    cell(page, "A", 0, 1).hover()
    assert "largest score 5727.565 subtracted" in panel(page)
    assert panel(page).endswith("= 0")


# ---------------------------------------------------------------- steps


def test_forward_and_back_through_all_steps(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(TOKENS))
    seen = [shown(page)[0]]
    for _ in range(5):
        press(page, "Next")
        seen.append(shown(page)[0])
    assert seen == ["X", "Q", "QK", "S", "A", "AV"]
    assert "step 6 of 6: Blend" in page.locator(".tt-player").inner_text()
    expect(page.get_by_role("button", name="Next")).to_have_attribute("aria-disabled", "true")
    press(page, "Back")
    assert shown(page)[0] == "A"
    assert "weight of" in panel(page)
    assert "Each row of scores becomes shares" in page.locator("[role=status].tt-hidden").inner_text()


def test_one_number_is_followed_through_the_steps(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(TOKENS, step="scores"))
    cell(page, "QK", 3, 2).hover()
    press(page, "Next")
    assert panel(page).startswith("score of “!” for “ML”")
    press(page, "Next")
    assert panel(page).startswith("weight of “!” for “ML”")


def test_the_mask_adds_a_step_and_hides_later_keys(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(TOKENS, step="mask", causal=True))
    assert "step 5 of 7: Mask" in page.locator(".tt-player").inner_text()
    expect(cell(page, "M", 0, 3)).to_have_text("−∞")
    expect(cell(page, "M", 0, 3)).to_have_attribute("aria-label", "masked score of “I” for “!”: masked")
    expect(cell(page, "M", 0, 3)).to_have_class(re.compile("tt-hatch"))
    cell(page, "M", 0, 3).hover()
    assert "a later key = −∞" in panel(page)
    assert cell(page, "M", 0, 3).evaluate("e => getComputedStyle(e).backgroundImage") == "none"  # digits stand on it
    names = page.locator("[data-part] .name").all_inner_texts()
    assert [name.split()[0] for name in names].count("S") == 1
    assert [name.split()[0] for name in names].count("Smasked") == 1
    press(page, "Next")
    assert "softmax(" in page.locator(".formula").inner_text()
    assert "masked" in page.locator(".formula").inner_text()
    press(page, "Back")
    page.get_by_label("causal mask").uncheck()
    assert "step 4 of 6: Scale" in page.locator(".tt-player").inner_text()
    assert "M" not in shown(page)


def test_reset_restores_step_mask_and_number(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(TOKENS, step="scores"))
    first = panel(page)
    page.get_by_label("causal mask").check()
    press(page, "Next")
    press(page, "Next")
    press(page, "Reset")
    assert shown(page)[0] == "QK"
    assert not page.get_by_label("causal mask").is_checked()
    assert panel(page) == first


def test_play_goes_on_by_itself(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(TOKENS))
    press(page, "Play")
    expect(page.locator(".tt-player")).to_contain_text("step 2 of 6", timeout=10_000)
    press(page, "Pause")


# ---------------------------------------------------------------- keyboard, touch, screen reader


def test_each_matrix_is_one_tab_stop_and_arrows_move_in_it(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(TOKENS, step="scores"))
    page.get_by_label("causal mask").focus()
    page.keyboard.press("Tab")
    expect(cell(page, "QK", 0, 0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(cell(page, "QK", 1, 1)).to_be_focused()
    assert panel(page).startswith("dot product of “love” for “love”")
    assert page.locator("[role=status].tt-hidden").inner_text().startswith("dot product of “love” for “love”")
    page.keyboard.press("Tab")
    expect(cell(page, "Q", 0, 0)).to_be_focused()


def test_a_tap_is_enough(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(TOKENS, step="blend"), width=360, touch=True)
    cell(page, "AV", 3, 1).tap()
    assert panel(page).startswith("context of “!”, feature 1")


def test_the_sum_stays_in_view_on_a_phone(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(TOKENS, step="blend"), width=360, touch=True)
    cell(page, "Q", 3, 1).scroll_into_view_if_needed()
    cell(page, "Q", 3, 1).tap()
    box = page.locator(".sum").bounding_box()
    assert 0 <= box["y"] < 740 - box["height"]


def test_cells_have_words(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(TOKENS, step="project"))
    expect(cell(page, "Q", 1, 0)).to_have_attribute("aria-label", "query of “love”, feature 0: −0.290")
    expect(cell(page, "W_Q", 1, 0)).to_have_attribute("aria-label", "W_Q, row 1, column 0: −0.400")


# What Python does: traits are set from outside while the figure lives.
SET_FROM_OUTSIDE = """
async ([source, state, values]) => {
  const { default: module } = await import(`data:text/javascript;charset=utf-8,${encodeURIComponent(source)}`);
  const listeners = {};
  const model = { get: (name) => state[name], save_changes() {}, off() {},
    on: (event, run) => (listeners[event] ||= []).push(run),
    set(name, value) { state[name] = value; (listeners[`change:${name}`] || []).forEach((run) => run()); } };
  const el = document.createElement('div');
  document.querySelector('.explorer').replaceChildren(el);
  const stop = module.render({ model, el });
  for (const [name, value] of Object.entries(values)) model.set(name, value);
  window.stopped = stop;
}
"""


def test_traits_set_from_python_redraw(open_saved: Open) -> None:
    made = AttentionStepsExplorer(TOKENS)
    page = open_saved(made)
    other = AttentionStepsExplorer(TOKENS, w_query=-np.array(made.w_query), causal=True, step="softmax")
    values = {
        "w_query": other.w_query,
        "causal": True,
        "step": "softmax",
        "selected": ["A", 2, 0],
        "note": "from outside",
    }
    page.evaluate(SET_FROM_OUTSIDE, [module_source("attention_steps"), made.static_state(), values])
    np.testing.assert_allclose(numbers(page, "A"), other.trace()["A"], atol=1e-6)
    assert panel(page).startswith("weight of “ML” for “I”")
    assert "from outside" in page.locator("section.tt > .tt-note").inner_text()
    page.evaluate("window.stopped()")


# ---------------------------------------------------------------- robustness


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("width", [360, 900])
def test_nothing_is_wider_than_its_page(open_saved: Open, step: str, width: int) -> None:
    made = head(8, 16, 8, 8, True)
    made.tokens = [f"Donaudampfschiff{i}" for i in range(8)]
    made.step = step
    page = open_saved(made, width=width)
    assert page.evaluate(OVERFLOW) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("step", ["project", "blend"])
def test_digits_stay_readable(open_saved: Open, dark: bool, step: str) -> None:
    found = open_saved(AttentionStepsExplorer(TOKENS, step=step), dark=dark).evaluate(CONTRAST)
    assert len(found) > 60
    assert min(found) >= 4.5


def test_hostile_tokens_are_text(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer(HOSTILE, step="scores", note="<img src=x>"))
    cell(page, "QK", 0, 1).hover()
    assert panel(page).startswith(f"dot product of “{HOSTILE[0]}” for “{HOSTILE[1]}”")
    assert page.locator("img").count() == 0
    assert "<img src=x>" in page.locator("section.tt > .tt-note").inner_text()


@pytest.mark.filterwarnings("ignore:.*more than fit a screen")
def test_the_cut_is_said(open_saved: Open) -> None:
    page = open_saved(AttentionStepsExplorer([f"t{i}" for i in range(20)]))
    assert "The first 8 of 20 tokens" in page.locator("section.tt > .tt-note").inner_text()
