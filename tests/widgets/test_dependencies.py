"""Who hears whom: what is measured, what is exact, what is refused, and the same numbers on the page."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import Tensor, nn

from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser, numbers
from ttutor.attention import scaled_dot_product_attention
from ttutor.layers import FeedForward, LayerNorm
from ttutor.masks import causal_mask, window_mask
from ttutor.recurrence import RNNCell, hidden_of, unroll
from ttutor.widgets import SequentialExplorer
from ttutor.widgets.dependencies import influence, measured_maps

WORDS = "the cat sat on the mat".split()


def functions() -> dict:
    """What the gallery compares, with weights from seed 0."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        cell, feed_forward, norm = RNNCell(8, 8), FeedForward(8, 32), LayerNorm(8)

    def rnn(hidden: Tensor) -> Tensor:
        return hidden_of(unroll(cell, hidden[None]))[0]

    def attention(hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        return scaled_dot_product_attention(hidden, hidden, hidden, mask)

    near = partial(attention, mask=window_mask(6, window=2))
    return {
        "RNN": rnn,
        "attention, full": attention,
        "attention, causal": partial(attention, mask=causal_mask(6, 6)),
        "attention, window 2": near,
        "attention, window 2, twice": lambda hidden: near(near(hidden)),
        "feed-forward": feed_forward,
        "layer norm": norm,
    }


def inputs() -> Tensor:
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(1))


def specimen() -> SequentialExplorer:
    return SequentialExplorer.hearing_of(functions(), inputs(), WORDS)


def hearing(tokens: list[str], maps: dict, **options: object) -> SequentialExplorer:
    return SequentialExplorer(tokens, maps=maps, hearing=True, **options)


def test_the_patterns_that_the_chapter_tells_of() -> None:
    made = specimen()
    patterns = {
        "RNN": np.tri(6, dtype=bool),
        "attention, full": np.ones((6, 6), bool),
        "attention, causal": np.tri(6, dtype=bool),
        "attention, window 2": window_mask(6, window=2).numpy(),
        "attention, window 2, twice": window_mask(6, window=3).numpy(),
        "feed-forward": np.eye(6, dtype=bool),
        "layer norm": np.eye(6, dtype=bool),
    }
    for made.shown, pattern in patterns.items():
        assert (made.moves == pattern).all(), made.shown


def test_the_number_is_the_root_mean_square_over_directions() -> None:
    matrix = torch.randn(4, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = influence(lambda hidden: hidden @ matrix.T, torch.zeros(2, 3, dtype=torch.float64))
    np.testing.assert_allclose(found, np.eye(2) * float(matrix.norm()) / 3**0.5, atol=1e-12)
    directions = nn.functional.normalize(torch.randn(200_000, 3, dtype=torch.float64), dim=1)
    assert found[0, 0] == pytest.approx(float((directions @ matrix.T).square().sum(1).mean().sqrt()), rel=0.02)


def test_tiny_is_not_never() -> None:
    made = SequentialExplorer.hearing_of(lambda x: x + 1e-12 * x.sum(0), torch.zeros(3, 2, dtype=torch.float64))
    assert made.moves.all()
    assert made.strengths[0, 1] == 1e-12
    assert hearing(["a", "b"], {"m": [[0.0123456, 0], [0, 1]]}).maps == [[[0.0123, 0], [0, 1]]]


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (lambda x: x.mean(0), torch.ones(3, 2), r"made \(2,\) of inputs \(3, 2\).*layer\(hidden\[None\]\)\[0\]"),
        (lambda x: x + torch.rand(3, 2), torch.ones(3, 2), r"switch dropout off: model.eval\(\)"),
        (lambda x: x.sqrt(), torch.zeros(3, 2), "NaN or infinite"),
        (lambda x: x.detach(), torch.ones(3, 2), "cut off from the inputs"),
        (torch.tanh, [[1.0, float("nan")]], "finite numbers"),
    ],
)
def test_bad_functions_are_refused_by_name(function, given, message) -> None:
    with pytest.raises(ValueError, match=rf"(?s)^mine: .*{message}"):
        measured_maps({"mine": function}, given)


@pytest.mark.parametrize(
    ("tokens", "maps", "options", "message"),
    [
        (["a", "b"], {}, {}, "has to be a dict"),
        (["a", "b"], {"m": np.eye(3)}, {}, r"m has shape \(3, 3\), expected \(2, 2\) \(outputs, inputs\)"),
        (["a", "b"], {"m": -np.eye(2)}, {}, "negative"),
        (["a", "b"], {"m": np.eye(2)}, {"shown": "x"}, "no map is called 'x'; there are m"),
        (["a", "b"], {str(i): np.eye(2) for i in range(9)}, {}, "a dict of 1 to 8 names"),
        (["a", "b"], {"m": np.eye(2)}, {"n_tokens": 3}, "with maps n_tokens is the number of tokens, 2, not 3"),
        (["a", "b"], None, {}, "hearing needs maps"),
    ],
)
def test_bad_tables_are_refused(tokens: list, maps: object, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hearing(tokens, maps, **options)


def finding(page: Page | Locator) -> str:
    return page.locator(".tt-found").inner_text()


@in_browser
def test_sizes_and_lines_are_pythons_for_every_function(show: Show) -> None:
    made = specimen()
    page = show(made)
    for name in made.names:
        made.shown = name
        page.get_by_label("Network").select_option(name)
        for i in (0, 3):
            page.locator(f'[data-key="pick{i}"]').click()
            np.testing.assert_allclose(numbers(page, "circle"), made.strengths[:, i], atol=1e-6)
            others = made.moves[:, i].sum() - made.moves[i, i]
            assert page.locator(".wire").count() == page.locator(".moved").count() - made.moves[i, i] == others


@in_browser
def test_a_recurrent_network_hands_on_and_attention_leaps(show: Show) -> None:
    made = specimen()
    page = show(made)

    def starts() -> list[float]:
        lines = page.locator(".wire").evaluate_all("all => all.map((one) => one.getAttribute('d'))")
        return [float(line[1:].split()[0]) for line in lines]

    page.locator('[data-key="pick1"]').press("Enter")
    assert finding(page) == "Each word passes “cat” on to the next, so it fades. Dashed words never hear it."
    assert page.locator(".never").count() == 1
    assert (np.diff(made.strengths[1:, 1]) < 0).all()
    assert len(set(starts())) == 4
    page.get_by_label("Network").select_option("attention, full")
    assert len(starts()) == 5
    assert len(set(starts())) == 1


@in_browser
def test_a_far_word_that_hears_best_is_named_with_its_distance(show: Show) -> None:
    table = np.eye(4) + [[0, 0, 0, 0], [0.1, 0, 0, 0], [0, 0, 0, 0], [0.5, 0, 0, 0]]
    page = show(hearing(list("abcd"), {"attention": table}))
    page.locator('[data-key="pick0"]').click()
    assert finding(page) == ("“d”, 3 words away, hears “a” best: nobody has to pass it on. Dashed words never hear it.")


def test_only_a_word_can_be_selected() -> None:
    made = specimen()
    made.selected = 5
    with pytest.raises(ValueError, match="selected has to be from 0 to 5, not 6"):
        made.selected = 6


@in_browser
def test_a_disc_grows_with_its_area(show: Show) -> None:
    made = specimen()
    page = show(made)
    page.locator('[data-key="pick0"]').click()
    radii = page.locator(".moved").evaluate_all("all => all.map((e) => +e.getAttribute('r'))")
    shares = made.strengths[:, 0] / made.strengths.max()
    seen = shares > 0.01  # what is smaller keeps a radius of two pixels
    np.testing.assert_allclose((np.array(radii) / radii[0])[seen] ** 2, shares[seen] / shares[0], rtol=0.03)


@in_browser
def test_scrolling_past_it_changes_nothing(show: Show) -> None:
    page = show(specimen(), specimen())
    first = page.locator(".explorer").first
    before = finding(first)
    page.mouse.move(300, 200)
    pointed = finding(first)
    page.mouse.wheel(0, 120)  # what is under the resting mouse moves away
    page.wait_for_function("() => scrollY > 100")
    page.wait_for_timeout(300)
    assert finding(first) == pointed
    page.mouse.move(0, 0)
    assert finding(first) == before


@in_browser
def test_a_word_that_is_clicked_has_no_ring_and_one_that_is_reached_by_key_has_one(show: Show) -> None:
    page = show(specimen())
    word, other = (page.locator(f'[data-key="pick{i}"]') for i in (1, 2))
    word.press("Enter")  # a key first: from then on browsers show the ring, whoever moves it
    word.click()
    expect(word).to_have_css("outline-style", "none")
    page.keyboard.press("ArrowRight")
    expect(other).to_have_css("outline-style", "solid")


@in_browser
def test_pointing_at_a_word_nudges_it_and_a_click_keeps_that(show: Show) -> None:
    page = show(specimen())
    before = finding(page)
    page.locator('[data-key="pick4"]').hover()
    told = finding(page)
    assert "“the”" in told or "“the" in told
    assert told != before
    page.mouse.move(0, 0)
    assert finding(page) == before
    page.locator('[data-key="pick4"]').click()
    page.mouse.move(0, 0)
    assert finding(page) == told


@in_browser
def test_reading_writing_and_hearing_are_views_of_one_sentence(show: Show) -> None:
    page = show(specimen())
    assert page.locator(".moved").count() == len(WORDS)  # “the” speaks first, and all hear it
    page.get_by_role("radio", name="Reading").check(force=True)
    assert page.locator(".moved").count() == 0
    assert page.locator(".cell").count() == 4 * len(WORDS)
    assert page.get_by_label("Step", exact=True).is_visible()
    assert not page.get_by_label("Network").is_visible()
    page.get_by_role("radio", name="Who hears whom").check(force=True)
    assert page.locator(".cell").count() == 0
    assert page.locator(".moved").count() == len(WORDS)
