"""The dependency map as a reader meets it: pointer, keyboard, touch, and numbers held to Python's."""

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.book.browser import OVERFLOW
from tests.widgets.test_dependencies import WORDS, specimen
from ttutor.widgets import DependencyExplorer

pytestmark = pytest.mark.browser
Open = Callable[..., Page]
HOSTILE = ['<img src=x onerror="window.hacked=1">', "</script><script>window.hacked=1</script>", "&lt;b&gt;"]


def cell(page: Page, row: int, column: int) -> Locator:
    return page.locator(f'[data-row="{row}"][data-column="{column}"]')


def shown_map(page: Page, size: int) -> np.ndarray:
    values = page.locator("td[data-value]").evaluate_all("cells => cells.map((c) => Number(c.dataset.value))")
    return np.array(values).reshape(size, size)


def title(page: Page) -> str:
    return page.locator(".title").inner_text()


def test_numbers_hatches_and_lines_are_pythons_for_every_function(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    for name in made.names:
        made.shown = name
        page.get_by_label("Function").select_option(name)
        np.testing.assert_allclose(shown_map(page, 6), made.strengths, atol=1e-6)
        hatched = page.locator("td").evaluate_all("cells => cells.map((c) => !c.classList.contains('tt-hatch'))")
        assert (np.reshape(hatched, (6, 6)) == made.moves).all()
        assert page.locator(".wires line").count() == made.moves.sum()


def test_an_input_shows_what_it_moves_and_an_output_what_it_hears(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    cell(page, -1, 1).hover()
    low, high = made.strengths[1:, 1].min(), made.strengths[1:, 1].max()
    assert title(page) == f"Nudge the input “cat” by 1: 5 of 6 outputs move, by {low:.3f} to {high:.3f}."
    assert page.locator(".wires line").count() == 5
    cell(page, 2, -1).hover()
    assert "3 of 6 move the output “sat”" in title(page)
    assert page.locator(".wires line").count() == 3
    page.locator(".wires g").nth(9).hover()  # the inputs come after the six outputs
    assert "Nudge the input “on”" in title(page)
    page.locator(".wires g").nth(0).hover()
    assert "the output “the”" in title(page)


def test_a_cell_gives_the_number_and_never_is_said(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    cell(page, 4, 2).hover()
    assert title(page) == f"Nudge the input “sat” by 1: the output “the” moves by {made.strengths[4, 2]:.3f}."
    assert page.locator(".wires line").count() == 1
    cell(page, 1, 3).hover()
    assert title(page) == "Nudge the input “on” as you like: the output “cat” never moves."
    assert page.locator(".wires line").count() == 0


def test_small_numbers_are_powers_of_ten_and_not_never(open_saved: Open) -> None:
    page = open_saved(DependencyExplorer(["a", "b"], {"m": [[12.5, 0.0], [3.1e-9, 0.002]]}))
    for row, column, words in [(0, 0, "12.5"), (0, 1, "never"), (1, 0, "3.1 · 10⁻⁹"), (1, 1, "0.002")]:
        expect(cell(page, row, column)).to_have_attribute(
            "aria-label", f"input {'ab'[column]} moves output {'ab'[row]}: {words}"
        )
    faintest = cell(page, 1, 0).evaluate("c => Number(c.style.getPropertyValue('--w'))")
    assert faintest == pytest.approx(0.12)
    assert page.locator(".legend").inner_text().split("\n")[1:] == [
        "10¹",
        "10⁰",
        "10⁻¹",
        "10⁻²",
        "10⁻³ or less",
        "never",
    ]


def test_the_strength_of_a_colour_is_logarithmic(open_saved: Open) -> None:
    page = open_saved(DependencyExplorer(list("abc"), {"m": np.diag([1.0, 0.1, 0.01])}))
    levels = [cell(page, i, i).evaluate("c => Number(c.style.getPropertyValue('--w'))") for i in range(3)]
    assert levels == pytest.approx([1, 0.78, 0.56])


def test_keyboard_words_and_reset(open_saved: Open) -> None:
    page = open_saved(specimen())
    spoken = page.locator('[role="status"]')
    page.get_by_role("button", name="Reset").focus()
    page.keyboard.press("Tab")
    expect(cell(page, 0, 0)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(spoken).to_contain_text("Nudge the input “the” by 1: 6 of 6 outputs move")
    page.keyboard.press("End")
    expect(spoken).to_contain_text("Nudge the input “mat” by 1: 1 of 6 outputs move")
    page.get_by_label("Function").select_option("attention, full")
    expect(spoken).to_contain_text("attention, full. Nudge the input “mat” by 1: 6 of 6")
    page.get_by_role("button", name="Reset").click()
    assert page.get_by_label("Function").input_value() == "RNN"
    assert title(page).startswith("Point at an input")


def test_a_tap_selects_in_both_pictures(open_saved: Open) -> None:
    page = open_saved(specimen(), width=360, touch=True)
    cell(page, -1, 5).tap()
    assert "Nudge the input “mat”" in title(page)
    page.locator(".wires g").nth(7).tap()
    assert "Nudge the input “cat”" in title(page)


def test_python_can_set_what_is_selected(open_saved: Open) -> None:
    made = specimen()
    made.shown, made.selected = "layer norm", [3, -1]
    page = open_saved(made)
    assert "1 of 6 move the output “on”" in title(page)
    assert page.get_by_label("Function").input_value() == "layer norm"


def test_hostile_words_stay_text(open_saved: Open) -> None:
    page = open_saved(DependencyExplorer(HOSTILE, {HOSTILE[0]: np.eye(3), "b": np.ones((3, 3))}))
    cell(page, -1, 1).hover()
    page.get_by_label("Function").select_option("b")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


@pytest.mark.filterwarnings("ignore:.*fit a screen")
@pytest.mark.parametrize("size", [1, 16, 40])
def test_many_tokens_fit_a_phone(open_saved: Open, size: int) -> None:
    words = [f"{WORDS[i % 6]}wordlong{i}" for i in range(size)]
    page = open_saved(DependencyExplorer(words, {"m": np.tri(size)}), width=360)
    cell(page, -1, 0).hover()
    assert page.evaluate(OVERFLOW) == []
    assert ("first 16 of 40 tokens" in page.locator(".legend").inner_text()) == (size == 40)
    smallest = page.locator(".wires").evaluate(
        "s => Math.min(...[...s.querySelectorAll('text')].map((e) => parseFloat(getComputedStyle(e).fontSize)))"
        " * s.getBoundingClientRect().width / s.viewBox.baseVal.width"
    )
    assert smallest >= 11
