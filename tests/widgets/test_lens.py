"""The logit lens: its guesses are the model's, layer by layer, in Python and on the page."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, slide
from ttutor.widgets import LensExplorer
from ttutor.widgets.lens import MAX_DEPTHS, Guesses, best_guesses, language_model


def specimen() -> LensExplorer:
    """The figure as the gallery shows it."""
    return LensExplorer.recorded()


def explorer(n_tokens: int, n_streams: int, words: list[str] | None = None, seed: int = 0) -> LensExplorer:
    words = words or [f"word{number}" for number in range(12)]
    logits = 3 * torch.randn(
        n_streams, n_tokens, len(words), generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return LensExplorer([words[i % len(words)] for i in range(n_tokens)], logits, words)


def hostile() -> LensExplorer:
    return explorer(3, 3, [*HOSTILE, "a", "b"])


def extremes() -> list[LensExplorer]:
    long = [f"Donaudampfschifffahrtsgesellschaft{number}" for number in range(6)]
    return [explorer(10, 9), explorer(1, 2), explorer(3, 4, long), explorer(10, 31)]


TAP = ("label:has-text('cats')", "cats")


def test_the_last_layer_of_the_lens_is_the_model_itself() -> None:
    model, words = language_model()
    made = LensExplorer.recorded("the kings near the cook")
    with torch.no_grad():
        logits = model(torch.tensor([[0, *(words.index(word) for word in made.tokens)]]))[0, 1:]
    top = logits.softmax(dim=-1).topk(5)
    assert [five[-1] for five in made.guesses] == [
        [words[i].replace("watchs", "watches") for i in row] for row in top.indices.tolist()
    ]
    np.testing.assert_allclose([five[-1] for five in made.chances], top.values, atol=5e-4)


def test_groups_are_sums_over_their_words() -> None:
    words = ["a", "b", "c", "d", "e"]
    probabilities = np.array([[[0.5, 0.2, 0.1, 0.15, 0.05]], [[0.1, 0.2, 0.3, 0.15, 0.25]]])
    made = LensExplorer(["a"], np.log(probabilities), words, groups={"vowels": ["a", "e"], "b": ["b"]})
    np.testing.assert_allclose(made.shares, [[[0.55, 0.2], [0.35, 0.2]]], atol=1e-9)
    assert made.guesses == [[["a", "b", "d", "c", "e"], ["c", "e", "b", "d", "a"]]]
    assert made.groups == [["vowels", "a", "e"], ["b", "b"]]


def test_between_two_nouns_the_verb_comes_to_agree_with_the_first() -> None:
    plural, singular = np.moveaxis(np.array(specimen().shares[-1]), -1, 0)
    assert plural[1] - singular[1] < 0.2  # undecided after one layer
    assert plural[2:].min() > 0.9


def test_of_many_layers_nine_are_shown_the_first_and_the_last_among_them() -> None:
    many, every = explorer(2, 31), explorer(2, 9)
    assert (many.layers, every.layers) == ([0, 4, 8, 11, 15, 19, 22, 26, 30], list(range(9)))
    assert len(many.guesses[0]) == len(many.chances[1]) == MAX_DEPTHS
    words = [f"word{number}" for number in range(12)]
    logits = torch.randn(31, 1, 12, generator=torch.Generator().manual_seed(1))
    chosen = LensExplorer(["a"], logits, words, layers=[0, 20, 30], depth=1)
    assert repr(chosen) == "LensExplorer('a', after 20 of 30 layers)"
    assert chosen.guesses[0][1][0] == words[int(logits[20, 0].argmax())]
    assert '<th scope="row">20</th>' in chosen.fallback_html()


def test_stored_guesses_are_enough() -> None:
    words = [f"word{number}" for number in range(12)]
    logits = torch.randn(4, 3, 12, generator=torch.Generator().manual_seed(2))
    stored = Guesses(*best_guesses(logits, words))
    live, made = LensExplorer(list("abc"), logits, words), LensExplorer(list("abc"), stored)
    assert made.static_state() == live.static_state()


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([0], "number of layers to show has to be from 2 to 9"),
        ([0, 4], "each of layers has to be from 0 to 3"),
        ([2, 1], "layers has to rise"),
    ],
)
def test_layers_that_there_are_not_are_refused(layers: list[int], message: str) -> None:
    logits, words = torch.zeros(4, 1, 6), list("abcdef")
    with pytest.raises(ValueError, match=message):
        LensExplorer(["a"], logits, words, layers=layers)
    with pytest.raises(ValueError, match=r"logits has shape .* expected \(streams, tokens, 6 words\)"):
        LensExplorer(["a"], logits[..., :5], words)
    with pytest.raises(ValueError, match="2 tokens, but guesses after 1"):
        LensExplorer(["a", "b"], logits, words)


@in_browser
def test_rungs_are_called_after_the_layers_that_were_read(show: Show) -> None:
    words = [f"word{number}" for number in range(12)]
    logits = torch.randn(31, 2, 12, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    made = LensExplorer(["a", "b"], logits, words, layers=[0, 10, 25, 30])
    page = show(made)
    assert page.locator("[data-key^='layer']").all_text_contents() == ["start", "after 10", "after 25", "after 30"]
    slide(page, "Layers", "End")
    assert f"After 30 layers: “{made.guesses[1][3][0]}”" in page.locator(".tt-found").inner_text()
    # Of the layers between nothing is known, and nothing is said.
    assert re.search("In none of the readings before|In every reading from", page.locator(".tt-found").inner_text())
    assert not re.search(r"\bFrom \d", page.locator(".tt-found").inner_text())
    np.testing.assert_allclose(numbers(page, "[data-key^='part']"), np.ravel(made.chances[1]), atol=1e-6)


@in_browser
def test_guesses_and_strips_on_the_page_are_pythons_at_every_layer(show: Show) -> None:
    page = show(specimen())
    for depth in range(5):
        made = LensExplorer.recorded(depth=depth)
        words = page.locator("text.best").all_text_contents()
        assert words == [five[0] for five in made.guesses[-1][: depth + 1]]
        np.testing.assert_allclose(
            numbers(page, "[data-key^='part']"), np.ravel(made.shares[-1][: depth + 1]), atol=1e-6
        )
        slide(page, "Layers", "ArrowRight")


@in_browser
def test_another_word_has_other_guesses_and_the_finding_names_the_best(show: Show) -> None:
    page = show(specimen())
    page.get_by_role("radio", name="near").check()
    slide(page, "Layers", "End")
    made = LensExplorer.recorded(token=2, depth=4)
    assert f"“{made.guesses[2][4][0]}”" in page.locator(".tt-found").inner_text()
    assert " on “" in page.locator(".tt-found").inner_text()
    assert page.locator("rect.guess").count() == 25
    assert page.locator("rect.group0").count() == 0, "a colour of the groups means a group"
    np.testing.assert_allclose(numbers(page, "[data-key^='part']"), np.ravel(made.chances[2]), atol=1e-6)
    # What the last layer says stands out wherever it is among the five.
    assert page.locator("rect.answer").count() == sum(made.guesses[2][4][0] in five for five in made.guesses[2])


@in_browser
def test_the_finding_names_the_subject_that_the_verbs_agree_with(show: Show) -> None:
    page = show(specimen())
    found = page.locator(".tt-found")
    # What the layers above say is not told before the word is there; that the guess has changed is.
    for depth, said in (
        (2, "Now nearly all probability goes to plural verbs"),
        (3, "Will it last?"),
        (4, "From 2 layers on"),
    ):
        slide(page, "Layers", *["Home", *["ArrowRight"] * depth])
        assert said in found.inner_text()
        assert ("From" in found.inner_text()) == (depth == 4)
        best = [five[0] for five in specimen().guesses[-1]]
        assert (f"no longer “{best[depth - 1]}”" in found.inner_text()) == (best[depth] != best[depth - 1] != "king")
    assert "agree with “cats”, though “king”" in page.locator(".tt-found").inner_text()
    assert "watchs" not in str(specimen().static_state())
    assert LensExplorer.recorded("the").subject == ""
