"""The attention map as a reader without a kernel meets it: from disk, offline, by pointer, keyboard and touch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.book.browser import OVERFLOW
from ttutor.widgets import AttentionExplorer

pytestmark = pytest.mark.browser

TOKENS = ["the", "cat", "sat", "on", "the", "mat"]
HOSTILE = ['<img src=x onerror="window.hacked=1">', "</script><script>window.hacked=1</script>", "&lt;b&gt;"]
Open = Callable[..., Page]
# The contrast of each cell's digits with the cell's colour, laid over the page's.
CONTRAST = """
() => {
  const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const over = (...colours) => {
    paint.clearRect(0, 0, 1, 1);
    for (const colour of colours) { paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1); }
    return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3).map((c) => c / 255);
  };
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const root = document.querySelector('.explorer > div').shadowRoot;
  const page = getComputedStyle(document.body).backgroundColor;
  return [...root.querySelectorAll('td')].filter((cell) => cell.textContent).map((cell) => {
    const style = getComputedStyle(cell);
    const [fill, text] = [luminance(over(page, style.backgroundColor)), luminance(over(style.color))];
    return (Math.max(fill, text) + 0.05) / (Math.min(fill, text) + 0.05);
  });
}
"""


def explorer(**options: object) -> AttentionExplorer:
    scores = 2 * np.random.default_rng(0).normal(size=(6, 6))
    return AttentionExplorer(TOKENS, scores, **options)


def cell(page: Page, row: int, column: int):
    """A cell, or a word: row -1 is the keys' line, column -1 the queries' column."""
    return page.locator(f'[data-row="{row}"][data-column="{column}"]')


def shown_weights(page: Page, n_rows: int, n_columns: int) -> np.ndarray:
    values = page.locator("td[data-value]").evaluate_all("cells => cells.map((c) => Number(c.dataset.value))")
    return np.array(values).reshape(n_rows, n_columns)


def panel(page: Page) -> str:
    return page.locator(".title").inner_text() + "\n" + page.locator(".panel").inner_text()


def slide(page: Page, key: str) -> None:
    page.get_by_label("Temperature").press(key)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"causal": True},
        {"temperature": 0.1},
        {"temperature": 5.0},
        {"temperature": 0.037},
        {"d_head": 64},
        {"d_head": 64, "scaled": False, "causal": True},
        {"mask": np.eye(6, dtype=bool) | (np.arange(6) > 3)},
        {"mask": np.arange(36).reshape(6, 6) > 5},
        {"padding": 2},
        {"padding": [True, False, True, False, False, False], "causal": True, "mask": np.arange(36).reshape(6, 6) > 5},
        {"padding": 6},
        {"padding": 3, "padding_masked": False},
    ],
    ids=str,
)
def test_numbers_on_screen_are_pythons(open_saved: Open, options: dict) -> None:
    made = explorer(**options)
    page = open_saved(made)
    np.testing.assert_allclose(shown_weights(page, 6, 6), made.weights, atol=1e-6)


def test_cross_attention_with_other_keys_than_queries(open_saved: Open) -> None:
    made = AttentionExplorer(["la", "voiture"], [[2.0, 0.1, 0.3], [0.2, 0.1, 1.9]], key_tokens=["the", "red", "car"])
    page = open_saved(made)
    np.testing.assert_allclose(shown_weights(page, 2, 3), made.weights, atol=1e-6)
    expect(page.get_by_label("causal mask")).to_be_hidden()
    cell(page, 1, -1).hover()
    assert "What “voiture” attends to" in panel(page)
    assert page.locator(".panel li .token").all_inner_texts() == ["car", "the", "red"]


def test_causal_with_fewer_queries_than_keys_aligns_the_last(open_saved: Open) -> None:
    made = AttentionExplorer(["c", "d"], np.zeros((2, 4)), key_tokens=list("abcd"), causal=True)
    page = open_saved(made)
    np.testing.assert_allclose(shown_weights(page, 2, 4), [[1 / 3] * 3 + [0], [1 / 4] * 4], atol=1e-6)
    np.testing.assert_allclose(shown_weights(page, 2, 4), made.weights, atol=1e-6)


# ---------------------------------------------------------------- pointer


def test_hovering_a_cell_gives_query_key_and_weight(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made)
    cell(page, 2, 1).hover()
    assert f"“sat” → “cat”: weight {made.weights[2, 1]:.3f}" in panel(page)
    expect(cell(page, 2, -1)).to_have_class("row-on")
    expect(cell(page, -1, 1)).to_have_class("column-on")


def test_hovering_a_row_label_lists_what_the_word_attends_to(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made)
    cell(page, 1, -1).hover()
    listed = page.locator(".panel li").evaluate_all(
        "items => items.map((li) => [...li.children].map((c) => c.textContent))"
    )
    order = np.argsort(-made.weights[1])
    assert [(token, number) for token, _, number in listed] == [(TOKENS[j], f"{made.weights[1, j]:.3f}") for j in order]
    assert "Sum of the row: 1.000" in panel(page)


def test_hovering_a_key_lists_who_attends_to_it(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made)
    cell(page, -1, 5).hover()
    assert "Who attends to “mat”" in panel(page)
    assert f"Sum of the column: {made.weights[:, 5].sum():.3f}" in panel(page)


def test_masked_cells_are_hatched_and_say_so(open_saved: Open) -> None:
    page = open_saved(explorer(causal=True))
    expect(cell(page, 0, 3)).to_have_attribute("aria-label", "the attends to on: masked")
    assert "repeating-linear-gradient" in cell(page, 0, 3).evaluate("c => getComputedStyle(c).backgroundImage")
    assert cell(page, 3, 0).evaluate("c => getComputedStyle(c).backgroundImage") == "none"
    cell(page, 0, 3).hover()
    assert "may not attend" in panel(page)
    assert "5 masked" in panel(page)


def test_the_temperature_slider_reaches_both_ends(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made)
    cell(page, 2, 1).hover()
    for key, temperature in (("Home", 0.1), ("End", 5.0)):
        slide(page, key)
        made.temperature = temperature
        np.testing.assert_allclose(shown_weights(page, 6, 6), made.weights, atol=1e-6)
        expect(page.get_by_label("Temperature")).to_have_attribute("aria-valuetext", f"{temperature:.1f}")
        assert f"weight {made.weights[2, 1]:.3f}" in panel(page)


def test_switches_and_reset(open_saved: Open) -> None:
    made = explorer(d_head=64)
    page = open_saved(made)
    page.get_by_label("divide by √d_head").uncheck()
    page.get_by_label("causal mask").check()
    slide(page, "Home")
    made.scaled, made.causal, made.temperature = False, True, 0.1
    np.testing.assert_allclose(shown_weights(page, 6, 6), made.weights, atol=1e-6)
    page.get_by_role("button", name="Reset").click()
    np.testing.assert_allclose(shown_weights(page, 6, 6), explorer(d_head=64).weights, atol=1e-6)
    assert page.get_by_label("divide by √d_head").is_checked()
    assert not page.get_by_label("causal mask").is_checked()


def test_the_padding_switch_hides_and_shows_keys_and_reset_brings_it_back(open_saved: Open) -> None:
    made = explorer(padding=2, causal=True)
    page = open_saved(made)
    switch = page.get_by_label("padding mask")
    assert switch.is_checked()
    expect(cell(page, 5, 5)).to_have_attribute("aria-label", "mat attends to mat: masked")
    switch.press("Space")
    expect(page.locator('[role="status"]')).to_contain_text("Padding mask off")
    made.padding_masked = False
    np.testing.assert_allclose(shown_weights(page, 6, 6), made.weights, atol=1e-6)
    page.get_by_role("button", name="Reset").click()
    assert switch.is_checked()
    made.padding_masked = True
    np.testing.assert_allclose(shown_weights(page, 6, 6), made.weights, atol=1e-6)


def test_a_row_that_may_attend_to_nothing_says_so(open_saved: Open) -> None:
    page = open_saved(explorer(padding=[True, True, False, False, False, False], causal=True))
    cell(page, 1, -1).hover()
    assert "“cat” may attend to no key (all masked): its weights are all 0" in panel(page)
    assert "Sum of the row: 0.000" in panel(page)
    cell(page, 2, -1).hover()
    assert "What “sat” attends to" in panel(page)


def test_the_padding_switch_is_there_only_with_padding(open_saved: Open) -> None:
    expect(open_saved(explorer()).get_by_label("padding mask")).to_be_hidden()


def test_the_scale_switch_is_there_only_with_raw_products(open_saved: Open) -> None:
    expect(open_saved(explorer()).get_by_label("divide by √d_head")).to_be_hidden()
    expect(open_saved(explorer(d_head=8)).get_by_label("divide by √d_head")).to_be_visible()


# ---------------------------------------------------------------- keyboard, touch, screen reader


def test_the_whole_map_is_one_tab_stop_and_arrows_move_in_it(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made)
    page.get_by_role("button", name="Reset").focus()
    page.keyboard.press("Tab")
    expect(cell(page, 0, 0)).to_be_focused()
    for key, row, column in [
        ("ArrowRight", 0, 1), ("ArrowDown", 1, 1), ("End", 1, 5), ("ArrowRight", 1, 5), ("Home", 1, -1),
        ("ArrowUp", 0, -1), ("ArrowUp", 0, -1), ("Control+End", 5, 5), ("ArrowLeft", 5, 4),
    ]:  # fmt: skip
        page.keyboard.press(key)
        expect(cell(page, row, column)).to_be_focused()
    assert f"“mat” → “the”: weight {made.weights[5, 4]:.3f}" in panel(page)
    assert page.locator('[data-row][tabindex="0"]').count() == 1


def test_screen_readers_hear_cells_words_and_changes(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made)
    spoken = page.locator('[role="status"]')
    expect(cell(page, 1, 2)).to_have_attribute("aria-label", f"cat attends to sat: {made.weights[1, 2]:.3f}")
    expect(page.get_by_role("grid")).to_have_attribute(
        "aria-label", "Attention weights. Rows are queries, columns are keys."
    )
    cell(page, 1, -1).focus()
    expect(spoken).to_contain_text(
        f"What “cat” attends to: {TOKENS[made.weights[1].argmax()]} {made.weights[1].max():.3f}"
    )
    slide(page, "Home")
    expect(spoken).to_contain_text("Temperature 0.1. What “cat” attends to")


def test_a_tap_selects(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made, width=360, touch=True)
    cell(page, 3, 2).tap()
    assert f"“on” → “sat”: weight {made.weights[3, 2]:.3f}" in panel(page)
    cell(page, 4, -1).tap()
    assert "What “the” attends to" in panel(page)


# ---------------------------------------------------------------- safety, size, looks


def test_hostile_tokens_stay_text(open_saved: Open) -> None:
    page = open_saved(AttentionExplorer(HOSTILE, np.eye(3)))
    cell(page, 0, -1).hover()
    cell(page, 1, 2).hover()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert cell(page, 1, -1).inner_text() == HOSTILE[1]


@pytest.mark.filterwarnings("ignore:.*more than fit a screen")
@pytest.mark.parametrize("n_tokens", [1, 6, 16, 48, 200])
@pytest.mark.parametrize("width", [360, 900])
def test_nothing_is_wider_than_its_page(open_saved: Open, n_tokens: int, width: int) -> None:
    tokens = [f"Donaudampfschiff{i}" if i % 3 == 0 else f"t{i}" for i in range(n_tokens)]
    page = open_saved(AttentionExplorer(tokens, np.zeros((n_tokens, n_tokens))), width=width)
    page.locator('[data-row="0"][data-column="0"]').hover()
    assert page.evaluate(OVERFLOW) == []
    capped = page.locator(".capped")
    assert capped.count() == (1 if n_tokens == 200 else 0)
    if n_tokens == 200:
        assert "first 48 of 200 queries" in capped.inner_text()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_follow_the_page_also_when_it_changes(open_saved: Open, dark: bool) -> None:
    page = open_saved(explorer(), dark=dark)
    root = page.locator("section.tt")
    expect(root).to_have_attribute("data-mode", "dark" if dark else "light")
    page.emulate_media(color_scheme="light" if dark else "dark")
    expect(root).to_have_attribute("data-mode", "light" if dark else "dark")
    # A theme that has a switch of its own sets an attribute and colours, whatever the system prefers.
    page.evaluate("document.body.style.color = 'rgb(20, 20, 20)'; document.documentElement.dataset.theme = 'light'")
    expect(root).to_have_attribute("data-mode", "light")


@pytest.mark.parametrize("n_tokens", [6, 20], ids=["with digits", "without digits"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_digits_stay_readable_on_every_weight(open_saved: Open, dark: bool, n_tokens: int) -> None:
    scores = np.random.default_rng(1).normal(size=(n_tokens, n_tokens)) + 9 * np.eye(n_tokens)
    page = open_saved(AttentionExplorer([f"t{i}" for i in range(n_tokens)], scores), dark=dark)
    found = page.evaluate(CONTRAST)
    assert len(found) == (36 if n_tokens == 6 else 0)
    assert min(found, default=21) >= 4.5
    assert max(found, default=21) > 15  # an empty cell: the colours were read, and not one of them twice


def test_several_explorers_share_a_page(open_saved: Open, tmp_path: Path) -> None:
    one, two = explorer(), explorer(causal=True)
    path = one.save(tmp_path / "two.html")
    path.write_text(path.read_text().replace("</main>", f"{two.to_html()}</main>"))

    class Both(AttentionExplorer):
        def save(self, _: Path) -> Path:
            return path

    page = open_saved(Both(TOKENS, np.zeros((6, 6))))
    page.locator(".explorer").nth(1).locator('[data-row="2"][data-column="1"]').hover()
    assert "Point at" in page.locator(".title").nth(0).inner_text()
    assert f"weight {two.weights[2, 1]:.3f}" in page.locator(".title").nth(1).inner_text()
    ids = page.locator("input[id]").evaluate_all("all => all.map((e) => e.id)")
    assert len(ids) == len(set(ids)) == 2


def test_a_broken_state_leaves_the_table_and_says_so(browser: Browser, tmp_path: Path) -> None:
    path = explorer().save(tmp_path / "broken.html")
    path.write_text(path.read_text().replace('data-state="{', 'data-state="{{', 1))
    context = browser.new_context()
    page = context.new_page()
    with page.expect_console_message(lambda message: "explorer attention did not start" in message.text):
        page.goto(path.as_uri())
    expect(page.locator("table caption")).to_be_visible()
    assert page.locator("[data-ready]").count() == 0
    context.close()


def test_without_scripts_the_table_is_there(browser: Browser, tmp_path: Path) -> None:
    path = explorer().save(tmp_path / "plain.html")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    expect(page.get_by_role("table")).to_contain_text("Attention weights at temperature 1.0")
    context.close()
