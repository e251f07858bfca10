"""A translator learns: the recording is the run, and the page shows its numbers at every step."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, slide
from ttutor import assets
from ttutor.widgets import LearningExplorer


def specimen() -> LearningExplorer:
    """The figure as the gallery shows it."""
    return LearningExplorer.recorded()


def explorer(n_source: int, n_target: int, n_steps: int = 3, word: str = "word") -> LearningExplorer:
    random = np.random.default_rng(0)
    shares = random.uniform(size=(3, n_steps))
    return LearningExplorer(
        [word] * n_source,
        [word] * n_target,
        list(range(n_steps)),
        losses=8 * shares[0],
        weights=random.dirichlet(np.ones(n_source), size=(n_steps, n_target)),
        guesses=[[word] * n_target] * n_steps,
        chances=random.uniform(size=(n_steps, n_target)),
        written=[" ".join([word] * n_target)] * n_steps,
        looked=shares[1],
        said=shares[2],
        note=word,
    )


def hostile() -> LearningExplorer:
    return explorer(2, 2, word=HOSTILE[0])


def extremes() -> list[LearningExplorer]:
    return [explorer(8, 8, 40), explorer(1, 1, 2), explorer(8, 2, word="Donaudampfschifffahrt")]


TAP = ("button:has-text('Play')", "of cases, and says it in")


@pytest.mark.parametrize("sentence", [0, 1, 2])
def test_a_recording_is_one_run_from_nothing_to_a_translation(sentence: int) -> None:
    made = LearningExplorer.recorded(sentence)
    np.testing.assert_allclose(np.sum(made.weights, axis=-1), 1, atol=0.05)  # nine weights, each rounded to 0.01
    assert made.losses[0] > np.log(1500)  # a uniform guess among its tokens costs less
    assert made.losses[-1] < 0.3
    right = " ".join(made.target[:-1])
    assert right not in made.written[:10]
    assert made.written[-1] == right


def test_where_to_look_is_found_before_what_to_say() -> None:
    made = specimen()
    for share in (0.25, 0.5, 0.75):
        looked, said = (np.argmax(np.array(values) > share) for values in (made.looked, made.said))
        assert looked < said


def test_a_guess_in_the_recording_is_right_where_its_chance_is_above_one_half() -> None:
    for line in assets.load("training_recording")["sentences"]:
        one = json.loads(line)
        guesses, sure = np.array(one["guesses"]), np.array(one["chances"]) > 0.5
        assert (guesses == np.array(one["target"]))[sure].all()
        assert sure.sum() > 100


@in_browser
@pytest.mark.parametrize("stop", [0, 13, 36])
def test_the_page_shows_the_step_that_it_stands_at(show: Show, stop: int) -> None:
    made = LearningExplorer.recorded(stop=stop)
    page = show(made)
    np.testing.assert_allclose(numbers(page, ".link"), np.ravel(made.weights[stop]), atol=1e-6)
    np.testing.assert_allclose(numbers(page, ".chance"), made.chances[stop], atol=1e-6)
    guessed = [text[2:] for text in page.locator(".said-word").all_text_contents()]
    assert guessed == made.guesses[stop]
    assert page.locator(".alone").inner_text() == f"On its own: {made.written[stop] or '–'}"


@in_browser
def test_the_finding_says_the_shares_of_its_step_and_a_word_at_which_it_looks_in_vain(show: Show) -> None:
    page = show(LearningExplorer.recorded(stop=0))
    made = specimen()
    assert made.target[1] == "voitures"
    assert int(np.argmax(made.weights[11][1])) == int(np.argmax(made.weights[-1][1])) == made.source.index("cars")
    for stop, told in (
        (0, "too early"),
        (11, f"looks at “cars”, and says “{made.guesses[11][1]}”"),
        (11, "With nouns, first where to look, then what to say."),
        (14, f"still says “{made.guesses[14][2]}”, not “rouges”"),
        (36, "all nouns are found and said. This sentence is right."),
    ):
        slide(page, "Step", "Home", *["ArrowRight"] * stop)
        found = page.locator(".tt-found").inner_text()
        shares = re.search(r"noun in (\d+)\s%.* in (\d+)\s%", found)
        assert shares is not None
        np.testing.assert_allclose(
            [float(part) for part in shares.groups()], [100 * made.looked[stop], 100 * made.said[stop]], atol=0.51
        )
        assert told in found
    assert page.locator("text.half").count() == 1  # the label of the gap: nothing is looked at in vain


@in_browser
@pytest.mark.parametrize("sentence", [0, 1, 2])
def test_an_example_of_nouns_is_a_noun_and_what_is_wrong_is_told(show: Show, sentence: int) -> None:
    made = LearningExplorer.recorded(sentence, stop=0)
    page = show(made)
    nouns = {made.target[place] for place in made.nouns}
    assert nouns
    for stop in range(1, len(made.steps)):
        slide(page, "Step", "ArrowRight")
        found = page.locator(".tt-found").inner_text()
        said = re.search(r"says “(.*?)”, not “(.*?)”", found)
        if said and "In this one" in found:
            assert said[2] in nouns
        if said:
            assert (said[1], said[2]) in list(zip(made.guesses[stop], made.target, strict=True))
        assert ("This sentence is right" in found) <= (made.guesses[stop] == made.target)


@in_browser
def test_common_words_that_are_said_before_it_looks_are_told(show: Show) -> None:
    page = show(LearningExplorer.recorded(stop=3))
    made = LearningExplorer.recorded(stop=3)
    final = np.array(made.weights[-1]).argmax(-1)
    now = np.array(made.weights[3])
    early = [
        word
        for word, guess, row, place in zip(made.target, made.guesses[3], now, final, strict=True)
        if word == guess and not (row.max() > 0.3 and row[place] == row.max())
    ]
    assert early
    found = page.locator(".tt-found").inner_text()
    assert f"It says {', '.join(f'“{word}”' for word in dict.fromkeys(early))} rightly already" in found


@in_browser
def test_play_goes_on_from_the_start_and_a_drag_ends_it(show: Show) -> None:
    page = show(LearningExplorer.recorded(stop=36))
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(
        "document.querySelector('.explorer > div').shadowRoot.querySelector('input').value > 1", timeout=5000
    )
    slide(page, "Step", "End")
    assert page.get_by_role("button", name="Play").count() == 1
