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
    return page.locator('text[data-key^="name"]').all_text_contents()


@in_browser
def test_one_token_a_step_against_all_tokens_at_once(show: Show) -> None:
    page = show(SequentialExplorer(SENTENCE, n_layers=1))
    for tick in range(1, 8):
        slide(page, "Step", "ArrowRight")
        assert (cells(page, 0, "fill-opacity") > 0).sum() == tick
        assert (cells(page, 1, "fill-opacity") > 0).all()
    assert counts(page) == ["RNN", "reading 7 ✓", "writing ?", "Transformer", "reading 1 ✓", "writing ?"]
    page.get_by_label("Writing").check()
    slide(page, "Step", "End")
    assert counts(page) == ["RNN", "reading 7 ✓", "writing 7 ✓", "Transformer", "reading 1 ✓", "writing 7 ✓"]
    assert "Both need 7 steps" in whole_text(page)


@in_browser
def test_it_opens_with_one_step_there_and_back(show: Show) -> None:
    page = show(SequentialExplorer(SENTENCE, n_layers=1, tick=1), motion=True)
    for step in (0, 1):
        expect(page.locator("text", has_text=f"reading {step}").first).to_be_visible(timeout=30_000)
    page.wait_for_timeout(1500)
    expect(page.locator("text", has_text="reading 1").first).to_be_visible()


@in_browser
@pytest.mark.parametrize("generating", [False, True])
def test_a_sentence_that_is_read_is_seen_whole_and_one_that_is_written_up_to_its_word(
    show: Show, generating: bool
) -> None:
    page = show(SequentialExplorer(SENTENCE, n_layers=1, generating=generating, tick=9))
    for token in range(7):
        lines = page.locator(f'[data-key="needs1-0-{token}"]').get_attribute("d").count("M")
        assert lines == (token + 1 + (token > 0) if generating else 7)  # and one from the word written before
