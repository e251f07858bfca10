"""The causal mask: its weights, and what changes with a token, in Python and on the page; what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, press, spoken
from ttutor.widgets import CausalMaskExplorer

TOKENS = ["the", "cat", "sat", "on"]


SCORES = np.random.default_rng(3).normal(size=(4, 4))


def specimen() -> CausalMaskExplorer:
    """The figure as the gallery shows it."""
    return CausalMaskExplorer(["the", "cat", "sat", "on", "the", "mat"], shown=4)


def hostile() -> CausalMaskExplorer:
    return CausalMaskExplorer(HOSTILE, end_mark=HOSTILE[1], shown=3)


def extremes() -> list[CausalMaskExplorer]:
    long = [f"Donaudampfschiff{i}" for i in range(40)]
    training = CausalMaskExplorer(long[:12], view="training", position=11)
    return [*(CausalMaskExplorer(long[:n], shown=12) for n in (12, 40)), training]


TAP = ("button:has-text('Generate')", "Under the mask no old row changes")


@pytest.mark.parametrize("n", [1, 2, 4])
def test_weights_are_a_softmax_under_the_mask(n: int) -> None:
    made = CausalMaskExplorer(TOKENS, SCORES, shown=n)
    scores = torch.tensor(np.round(SCORES, 3))[:n, :n]
    np.testing.assert_allclose(made.weights(causal=False), scores.softmax(-1), atol=1e-12)
    hidden = ~torch.ones(n, n).tril().bool()
    np.testing.assert_allclose(
        made.weights(causal=True), scores.masked_fill(hidden, -torch.inf).softmax(-1), atol=1e-12
    )


def test_a_token_changes_no_old_row_under_the_mask_and_every_old_row_without() -> None:
    made = CausalMaskExplorer(TOKENS, SCORES)
    for n in range(1, 5):
        made.shown = n
        assert made.changed_rows(causal=True) == []
        assert made.changed_rows(causal=False) == list(range(n - 1))
    made.shown = 5
    assert made.changed_rows(causal=False) == []  # the end mark adds no key


def shown_weights(page: Page, causal: bool) -> np.ndarray:
    cells = page.locator("table").nth(0 if causal else 1).locator("td[data-value]")
    values = np.array(cells.evaluate_all("all => all.map((c) => Number(c.dataset.value))"))
    return values.reshape(int(len(values) ** 0.5), -1)


def assert_shown(page: Page, made: CausalMaskExplorer, n: int) -> None:
    for causal in (True, False):
        np.testing.assert_allclose(shown_weights(page, causal), made.weights(causal=causal, n_tokens=n), atol=1e-6)


def row_labels(page: Page, table: int) -> list[str]:
    return page.locator("table").nth(table).locator('th[scope="row"]:visible').all_inner_texts()


@in_browser
def test_each_click_adds_a_row_and_a_column_with_pythons_numbers(show: Show) -> None:
    made = CausalMaskExplorer(TOKENS, SCORES)
    page = show(made)
    for n in range(1, 5):
        assert_shown(page, made, n)
        assert [len(row_labels(page, table)) for table in (0, 1)] == [n, n]
        press(page, "Generate")
    assert_shown(page, made, 4)
    assert "The end mark <eos> has come" in page.locator(".tt-found").inner_text()
    assert row_labels(page, 0) == row_labels(page, 1) == ["the =", "cat =", "sat =", "on ="]  # it adds no key
    press(page, "Generate", 2)  # nothing comes after it
    assert_shown(page, made, 4)
    expect(page.get_by_role("button", name="Generate")).to_have_attribute("aria-disabled", "true")


@in_browser
def test_old_rows_are_marked_by_a_sign_and_the_reason_is_told(show: Show) -> None:
    page = show(CausalMaskExplorer(TOKENS, SCORES))
    press(page, "Generate", 2)
    assert row_labels(page, 0) == ["the =", "cat =", "sat"]
    assert row_labels(page, 1) == ["the ≠", "cat ≠", "sat"]
    assert "because it may not look at the new word" in page.locator(".tt-found").inner_text()


@in_browser
def test_nothing_is_told_before_the_reader_has_answered(show: Show) -> None:
    page = show(CausalMaskExplorer(TOKENS, SCORES, shown=2))
    told = page.locator(".verdict").all()
    assert len(told) == 2
    for one in told:
        expect(one).to_have_css("opacity", "0")
    for name in page.locator("th.kept, th.changed").all():
        expect(name).to_have_css("border-top-color", "rgba(0, 0, 0, 0)")
    press(page, "Generate")
    for one in page.locator(".verdict").all():
        expect(one).to_have_css("opacity", "1")


@in_browser
def test_back_leads_no_further_than_to_the_start_and_asks_again(show: Show) -> None:
    page = show(CausalMaskExplorer(TOKENS, SCORES, shown=2))
    back, told = page.get_by_role("button", name="Back"), page.locator(".verdict").first
    expect(back).to_have_attribute("aria-disabled", "true")
    press(page, "Back")
    assert len(row_labels(page, 0)) == 2
    expect(told).to_have_css("opacity", "0")
    press(page, "Generate")
    expect(told).to_have_css("opacity", "1")
    press(page, "Back")
    assert len(row_labels(page, 0)) == 2
    expect(told).to_have_css("opacity", "0")
    expect(page.locator(".tt-found")).to_have_css("opacity", "0")


@in_browser
def test_the_keyboard_marks_a_row_and_is_told_nothing_before_the_word(show: Show) -> None:
    page = show(CausalMaskExplorer(TOKENS, SCORES, shown=2))
    first = page.locator("table").nth(1).locator('[data-row="0"][data-column="0"]')
    first.focus()
    for key in ("ArrowRight", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
        expect(page.locator(".tt-found")).to_have_css("opacity", "0")
        expect(page.locator(".tt-invite")).to_have_css("opacity", "1")
    assert page.locator("table").nth(1).locator("th.guess[aria-selected=true]").count() == 1
    assert spoken(page).inner_text() == "the: will change"
    press(page, "Generate")
    expect(page.locator(".tt-found")).to_have_css("opacity", "1")
    assert page.locator(".tt-found").inner_text().startswith("Your marks are right for 3 of 4 old rows.")
    press(page, "Reset")
    expect(page.locator(".tt-found")).to_have_css("opacity", "0")
    assert page.locator("th.guess").count() == 0


@in_browser
def test_the_future_is_hatched(show: Show) -> None:
    page = show(CausalMaskExplorer(TOKENS, SCORES, shown=3))
    cell = page.locator("table").first.locator('[data-row="0"][data-column="2"]')
    expect(cell).to_have_attribute("aria-label", "the to sat: masked")
    assert "repeating-linear-gradient" in cell.evaluate("c => getComputedStyle(c).backgroundImage")


@in_browser
def test_the_readers_marks_are_counted_when_the_word_has_come(show: Show) -> None:
    page = show(CausalMaskExplorer(TOKENS, SCORES, shown=2))
    for table, row in ((1, 0), (0, 1), (0, 1), (0, 0)):  # the second mark is taken back
        page.locator("table").nth(table).locator(f'[data-row="{row}"][data-column="0"]').click()
    assert page.locator("th.guess").count() == 2
    expect(page.locator(".verdict").first).to_have_css("opacity", "0")
    press(page, "Generate")
    assert page.locator(".tt-found").inner_text().startswith("Your marks are right for 2 of 4 old rows.")


def lesson(position: int = 0) -> CausalMaskExplorer:
    return CausalMaskExplorer("<bos> le chat noir dort".split(), view="training", position=position)


def test_without_the_shift_each_answer_stands_in_its_own_input() -> None:
    made = lesson()
    read = [made.decoder_input[: place + 1] for place in range(5)]
    assert made.labels == ["le", "chat", "noir", "dort", "<eos>"]
    assert not any(label in seen for label, seen in zip(made.labels, read, strict=True))
    made.shifted = False
    assert made.decoder_input == made.labels
    cut = CausalMaskExplorer([f"w{i}" for i in range(12)], [[0.0] * 12] * 12)
    assert cut.labels[-2:] == ["w11", "<eos>"]
    with pytest.warns(UserWarning, match="showing the first 12"):
        assert CausalMaskExplorer([f"w{i}" for i in range(13)]).labels[-1] == "w12"
    with pytest.raises(ValueError, match="position has to be from 0 to 4, not 5"):
        lesson(5)


@in_browser
def test_in_training_what_is_read_and_said_is_pythons_in_every_row(show: Show) -> None:
    made = lesson()
    page = show(made)
    found = page.locator(".tt-found")
    for made.shifted in (True, False):
        page.get_by_label("shift the input").set_checked(made.shifted)
        for position, label in enumerate(made.labels):
            page.locator(f'[data-row="{position}"][data-column="-1"]').click()
            seen = " ".join(made.decoder_input[: position + 1])
            expect(found).to_contain_text(f"It reads “{seen}” and has to say “{label}”")
        assert page.locator("td.answer").count() == (0 if made.shifted else 5)
        assert page.locator("td:not(.tt-hatch)").count() == 15
    page.keyboard.press("ArrowUp")
    expect(found).to_contain_text("has to say “dort”: it learns to copy")


@in_browser
def test_from_writing_to_training_and_back(show: Show) -> None:
    page = show(CausalMaskExplorer(TOKENS, SCORES, shown=2))
    page.get_by_role("radio", name="training").check(force=True)
    assert "“cat”, the word after it" in page.locator(".tt-found").inner_text()
    assert not page.get_by_role("button", name="Generate").is_visible()
    page.get_by_role("radio", name="writing").check(force=True)
    expect(page.locator(".tt-found")).to_have_css("opacity", "0")  # nothing is told before the word has come
    assert len(row_labels(page, 0)) == 2
