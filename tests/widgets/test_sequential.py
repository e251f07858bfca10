"""Sequential or parallel: what was measured on ttutor's modules, the formulas held to it, and the same on the page."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, slide, whole_text
from ttutor.widgets import SequentialExplorer
from ttutor.widgets.sequential import measure

SENTENCE = "the cat sat on the warm mat".split()


def specimen() -> SequentialExplorer:
    """The figure as the gallery shows it."""
    words = "the old cat sat down on the mat".split()
    functions = {"recurrent": lambda hidden: hidden.cumsum(0), "attention": lambda hidden: hidden + hidden.mean(0)}
    return SequentialExplorer.hearing_of(functions, torch.eye(8), words, hearing=False, n_layers=2, tick=1)


def hostile() -> SequentialExplorer:
    return SequentialExplorer(HOSTILE, maps={HOSTILE[0]: np.eye(3), "b": np.ones((3, 3))}, hearing=True)


def extremes() -> list[SequentialExplorer]:
    reading = [SequentialExplorer([f"Donau{i}" for i in range(n)], n_layers=layers) for n, layers in ((2, 6), (64, 1))]
    long = [f"wordlong{i}" for i in range(40)]
    return [*reading, *(SequentialExplorer(long[:n], maps={"m": np.tri(n)}, hearing=True) for n in (2, 16, 40))]


TAP = ("label:has-text('Writing')", "Each word has to be written")


def test_the_fallback_has_what_was_measured() -> None:
    text = specimen().fallback_html()
    rows = dict(re.findall(r'<tr><th scope="row">([^<]*)</th>((?:<td>[^<]*</td>)+)</tr>', text))
    cells = {name: re.findall(r"<td>([^<]*)</td>", row) for name, row in rows.items()}
    assert cells["Ticks in all"] == ["9", "2", "16", "16"]
    assert cells["RNN, layer 2"] == [str(tick) for tick in range(2, 10)]
    assert cells["Transformer, layer 1"] == ["1"] * 8


def cells(page: Page, lane: int, attribute: str) -> np.ndarray:
    """Something of every cell of a lane: layers by tokens."""
    script = "(all, name) => all.map((e) => [e.dataset.key.split('-').slice(1, 3).map(Number), +e.getAttribute(name)])"
    found = page.locator(f'rect[data-key^="cell{lane}-"]').evaluate_all(script, attribute)
    return np.array([value for _, value in sorted(found)])


@in_browser
@pytest.mark.parametrize("generating", [False, True])
@pytest.mark.parametrize(("n_tokens", "n_layers"), [(2, 3), (8, 2), (9, 4)])
def test_ticks_on_screen_are_measured(show: Show, n_tokens: int, n_layers: int, generating: bool) -> None:
    page = show(SequentialExplorer(SENTENCE, n_tokens=n_tokens, n_layers=n_layers, generating=generating, tick=1))
    for i, lane in enumerate(measure(n_tokens, n_layers, generating).values()):
        assert cells(page, i, "data-due").tolist() == lane.ticks.ravel().tolist()


def counts(page: Page) -> list[str]:
    return page.locator('text[data-key^="count"]').all_text_contents()


def length(page: Page, key: str) -> float:
    return float(page.locator(f'[data-key="{key}"]').get_attribute("d").split("h")[1])


@in_browser
def test_one_token_a_step_against_all_tokens_at_once(show: Show) -> None:
    page = show(SequentialExplorer(SENTENCE, n_layers=1))
    for tick in range(1, 8):
        slide(page, "Step", "ArrowRight")
        assert (cells(page, 0, "fill-opacity") > 0).sum() == tick
        assert (cells(page, 1, "fill-opacity") > 0).all()
        assert length(page, "made0") / length(page, "time0") == pytest.approx(tick / 9, abs=1e-3)
        assert length(page, "made1") / length(page, "time1") == pytest.approx(1 / 9, abs=1e-3)
    assert counts(page) == ["7 ✓", "1 ✓"]
    page.get_by_label("Writing").check()
    assert counts(page) == ["0", "0"]
    slide(page, "Step", "End")
    assert counts(page) == ["7 ✓", "7 ✓"]
    assert length(page, "made0") == length(page, "made1")
    assert "Both need 7 steps" in whole_text(page)
    assert "To read, it needs 1." in whole_text(page)


def guess(page: Page, lane: str, *keys: str) -> None:
    slide(page, f"guess for the {lane}", *keys)


@in_browser
def test_a_guess_stands_on_the_bar_and_is_told_beside_the_truth(show: Show) -> None:
    page = show(specimen())
    marks = page.locator('text[data-key^="guessed"]')
    assert marks.all_text_contents() == ["?", "?"]
    guess(page, "RNN", "Home", "ArrowRight", "ArrowRight")
    assert "You guessed 3 for the RNN. Now press Play." in whole_text(page)
    guess(page, "Transformer", "ArrowLeft", "End")
    assert marks.all_text_contents() == ["3", "18"]
    assert "You guessed 3 for the RNN, 18 for the Transformer. Now press Play." in whole_text(page)
    at = float(page.locator('[data-key="guess0"]').get_attribute("cx"))
    start = float(page.locator('[data-key="time0"]').get_attribute("d")[1:].split()[0])
    assert at == pytest.approx(start + length(page, "time0") * 3 / 18, abs=0.1)
    slide(page, "Step", "End")
    assert "The RNN needs 9 steps, because each word waits for the one before." in whole_text(page)
    assert "You guessed 3 for the RNN, 18 for the Transformer." in whole_text(page)
    page.get_by_label("Writing").check()
    assert marks.all_text_contents() == ["?", "?"], "another race, another guess"


@in_browser
def test_the_mark_follows_the_pointer_in_whole_steps(show: Show) -> None:
    page = show(specimen(), width=360)
    box, bar = (page.locator(f'[data-key="{key}"]').bounding_box() for key in ("guess1", "time1"))
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, y)
    page.mouse.down()
    page.mouse.move(bar["x"] + bar["width"] * 6.3 / 18, y, steps=4)
    page.mouse.up()
    assert page.locator('text[data-key="guessed1"]').text_content() == "6"


def test_a_guess_that_the_bar_has_no_room_for_is_refused() -> None:
    made = specimen()
    with pytest.raises(ValueError, match="a guess has to be from 0 to 18, not 19; the bars have no room for more"):
        made.guesses = [19, 1]
    with pytest.raises(ValueError, match="guesses holds 1 numbers, expected 2"):
        made.guesses = [1]


@pytest.mark.parametrize(("n_tokens", "n_layers"), [(2, 1), (2, 6), (64, 1), (13, 2)])
def test_a_bar_has_room_for_more_than_either_needs(n_tokens: int, n_layers: int) -> None:
    made = SequentialExplorer(["word"], n_tokens=n_tokens, n_layers=n_layers)
    for generating in (False, True):
        most = max(lane.n_ticks for lane in made.measured(generating).values())
        made.guesses = [most + 1, most]
        assert made.guesses == [most + 1, most]


@in_browser
def test_it_opens_with_both_marks_there_and_back(show: Show) -> None:
    page = show(SequentialExplorer(SENTENCE, n_layers=1, tick=1), motion=True)
    for mark in ("3", "?"):
        expect(page.locator('text[data-key="guessed0"]')).to_have_text(mark, timeout=30_000)


@in_browser
@pytest.mark.parametrize("generating", [False, True])
def test_a_sentence_that_is_read_is_seen_whole_and_one_that_is_written_up_to_its_word(
    show: Show, generating: bool
) -> None:
    page = show(SequentialExplorer(SENTENCE, n_layers=1, generating=generating, tick=9))
    for token in range(7):
        lines = page.locator(f'[data-key="needs1-0-{token}"]').get_attribute("d").count("M")
        assert lines == (token + 1 + (token > 0) if generating else 7)  # and one from the word written before


@in_browser
def test_nobody_is_said_to_hear_best_where_all_hear_equally_well(show: Show) -> None:
    page = show(specimen())
    page.get_by_label("Who hears whom").check()
    assert "does a far word hear “the” well?" in page.locator(".tt-invite").text_content()
    for name in ("attention", "recurrent"):
        page.get_by_label(name).check()
        assert "7 words hear “the” equally well, and nobody hears it better." in whole_text(page)
    page.locator('[data-key="pick6"]').click()
    assert "“mat”, next to it, hears “the” best. Dashed words never hear it." in whole_text(page)
