"""Sequential or parallel: what was measured on ttutor's modules, the formulas held to it, and the same on the page."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, press, whole_text
from ttutor.recurrence import linear_scan
from ttutor.widgets import SequentialExplorer
from ttutor.widgets.sequential import ROWS, Lane, measure

SENTENCE = "the cat sat on the warm mat".split()


SIZES = [(2, 1, 4), (2, 3, 8), (5, 2, 16), (8, 1, 16), (9, 2, 6), (17, 4, 4)]


def specimen() -> SequentialExplorer:
    """The figure as the gallery shows it."""
    return SequentialExplorer(SENTENCE, n_layers=2, n_tokens=8, tick=1)


def hostile() -> SequentialExplorer:
    return SequentialExplorer(HOSTILE)


def extremes() -> list[SequentialExplorer]:
    return [SequentialExplorer([f"Donau{i}" for i in range(n)], n_layers=1) for n in (2, 20)]


TAP = ("label:has-text('generating')", "Both need 16 ticks")


def evaluate(formula: str, n_tokens: int, n_layers: int, d_model: int) -> int:
    """What the JavaScript does with a formula."""
    sizes = {"T": n_tokens, "L": n_layers, "d": d_model, "min(T, L)": min(n_tokens, n_layers)}
    terms = ([sizes.get(factor) or int(factor) for factor in term.split("·")] for term in formula.split("+"))
    return sum(math.prod(factors) for factors in terms)


def facts(lane: Lane, generating: bool) -> list[int]:
    """In the order of the rows."""
    all_ = [lane.n_ticks, lane.at_once, lane.hops, lane.between_tokens, lane.multiply_adds, lane.kept]
    return all_ if generating else all_[:5]


@pytest.mark.parametrize("generating", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_formula_is_what_the_modules_did(sizes: tuple[int, int, int], generating: bool) -> None:
    measured = measure(*sizes, generating)
    for column, lane in enumerate(measured.values(), start=3 if generating else 1):
        formulas = [row[column] for row in ROWS if row[column]]
        assert [evaluate(formula, *sizes) for formula in formulas] == facts(lane, generating)


@pytest.mark.parametrize("n_tokens", [2, 5, 8, 33, 64])
def test_a_linear_recurrence_takes_the_rounds_that_the_note_tells(n_tokens: int) -> None:
    """RNN-01: the note's number is ttutor's own count."""
    _, n_rounds = linear_scan(torch.full((1, n_tokens, 1), 0.5), torch.ones(1, n_tokens, 1))
    assert n_rounds == math.ceil(math.log2(n_tokens))


def test_the_price_turns_where_the_note_says() -> None:
    """Between tokens: equal at T = d / 2 in training, at T + 1 = d in generating."""
    surplus = {}
    for n_tokens, generating in [(7, False), (8, False), (9, False), (14, True), (15, True), (16, True)]:
        lanes = measure(n_tokens, 2, 16, generating)
        surplus[n_tokens] = np.sign(lanes["transformer"].between_tokens - lanes["rnn"].between_tokens)
    assert list(surplus.values()) == [-1, 0, 1, -1, 0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tokens": 1}, "n_tokens has to be from 2 to 64, not 1"),
        ({"n_layers": 0}, "n_layers has to be from 1 to 6"),
        ({"d_model": 0}, "d_model"),
        ({"tick": -1}, "tick"),
    ],
)
def test_bad_input_is_refused_with_a_reason(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SequentialExplorer(SENTENCE, **options)


def test_the_fallback_has_what_was_measured() -> None:
    text = specimen().fallback_html()
    rows = dict(re.findall(r'<tr><th scope="row">([^<]*)</th>((?:<td>[^<]*</td>)+)</tr>', text))
    cells = {name: re.findall(r"<td>([^<]*)</td>", row) for name, row in rows.items()}
    assert cells["Ticks in all"] == ["9", "2", "16", "16"]
    assert cells["Hops from first to last token"] == ["7", "1", "7", "1"]
    assert cells["Numbers kept for the next token"] == ["–", "–", "32", "512"]
    assert cells["RNN, layer 2"] == [str(tick) for tick in range(2, 10)]
    assert cells["Transformer, layer 1"] == ["1"] * 8


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


@in_browser
@pytest.mark.parametrize("generating", [False, True])
@pytest.mark.parametrize(("n_tokens", "n_layers", "d_model"), [(2, 3, 7), (8, 2, 16), (9, 4, 64)])
def test_ticks_and_costs_on_screen_are_measured(
    show: Show, n_tokens: int, n_layers: int, d_model: int, generating: bool
) -> None:
    sizes = {"n_tokens": n_tokens, "n_layers": n_layers, "d_model": d_model}
    page = show(SequentialExplorer(SENTENCE, **sizes, generating=generating, tick=1))
    lanes = list(measure(*sizes.values(), generating).values())
    for i, lane in enumerate(lanes):
        assert shown_ticks(page, i) == lane.ticks.T.ravel().tolist()
    assert shown_facts(page).tolist() == np.transpose([facts(lane, generating) for lane in lanes]).tolist()
    scan = "(A linear recurrence could be computed as a scan, in"
    assert (scan in whole_text(page)) is not generating


@in_browser
def test_one_token_a_tick_against_all_tokens_at_once(show: Show) -> None:
    page = show(SequentialExplorer(SENTENCE, n_layers=1))
    for tick in range(1, 8):
        press(page, "Next")
        assert lit(page, 0) == [tick - 1]
        assert lit(page, 0, "done") == list(range(tick - 1))
        assert lit(page, 1) == (list(range(7)) if tick == 1 else [])
        assert lit(page, 1, "done") == ([] if tick == 1 else list(range(7)))
    assert page.locator("b").all_inner_texts()[:2] == ["RNN: tick 7 of 7", "Transformer: tick 1 of 1"]
    expect(page.get_by_role("button", name="Next")).to_have_attribute("aria-disabled", "true")
    press(page, "Back")
    assert lit(page, 0) == [5]
    text = show(specimen()).locator("table").inner_text()
    for written in ("T + L − 1", "8 + 2 − 1", "2 · T² · L · d", "2 · 8² · 2 · 16", "8 · 2 · 16²", "53\u202f248"):
        assert written in text
    page = show(SequentialExplorer(SENTENCE, tick=300))
    assert page.locator("b").all_inner_texts()[:2] == ["RNN: tick 8 of 8", "Transformer: tick 2 of 2"]
