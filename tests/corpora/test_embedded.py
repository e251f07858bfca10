"""The embedded corpus: distinct, a function, split as promised."""

from random import Random

import pytest

from ttutor.corpora.embedded import (
    HELD_OUT_SHARE,
    SHOWCASE,
    SIZES,
    draw_sentence,
    embedded_sentences,
    held_out_pairs,
    pairs_of,
)
from ttutor.corpora.lexicon import ADJECTIVES, NOUNS, VERBS

SPLITS = ("train", "validation", "test")


SMALLER = {"train": 6_000, "validation": 300, "test": 600}


@pytest.fixture(scope="module", params=[SMALLER, pytest.param(SIZES, marks=pytest.mark.soak)], ids=["smaller", "whole"])
def sizes(request):
    return request.param


@pytest.fixture(scope="module")
def splits(sizes):
    return embedded_sentences(seed=0, sizes=sizes)


def words(text: str) -> set[str]:
    return set(text.replace("'", "' ").split())


def test_sizes(splits, sizes):
    assert {name: len(splits[name]) for name in SPLITS} == sizes
    assert sum(SIZES.values()) >= 40_000


def test_pairs_are_distinct_across_all_splits(splits):
    english = [sentence.english() for name in SPLITS for sentence in splits[name]]
    assert len(set(english)) == len(english)


@pytest.mark.parametrize("n_draws", [5_000, pytest.param(30_000, marks=pytest.mark.soak)])
def test_english_determines_french(n_draws):
    """Also for sentences that were drawn twice with different structure: no English has two French."""
    french: dict[str, str] = {}
    random = Random(1)
    for _ in range(n_draws):
        sentence = draw_sentence(random)
        translation = sentence.french()
        assert french.setdefault(sentence.english(), translation) == translation
    assert len(french) < n_draws - 5  # the same sentence did come more than once


def test_a_held_out_pair_stands_in_every_test_sentence_and_in_no_other(splits):
    held_out = held_out_pairs(0)
    assert all(pairs_of(sentence) & held_out for sentence in splits["test"])
    assert not any(pairs_of(sentence) & held_out for name in ("train", "validation") for sentence in splits[name])


def test_pairs_never_trained_are_found_by_reading_the_training_text(splits):
    """The same rule without `pairs_of`: no two neighbouring words of the training text are a held-out pair."""
    by_form = {form: noun.english for noun in NOUNS for form in (noun.english, noun.in_english(True))}
    held_out = held_out_pairs(0)
    for sentence in splits["train"]:
        text = sentence.english().split()
        for first, second in zip(text, text[1:], strict=False):
            assert (first, by_form.get(second)) not in held_out


def test_every_word_of_the_test_is_seen_in_training(splits):
    for language in ("english", "french"):
        seen = set().union(*(words(getattr(sentence, language)()) for sentence in splits["train"]))
        asked = set().union(*(words(getattr(sentence, language)()) for sentence in splits["test"]))
        assert asked <= seen


def test_the_showcase_is_held_out_under_every_seed():
    assert all(SHOWCASE in held_out_pairs(seed) for seed in range(5))


@pytest.mark.parametrize("seed", range(3))
def test_each_word_keeps_most_of_its_partners(seed):
    pairs = held_out_pairs(seed)
    partners = {word.english: len(ADJECTIVES) + len(VERBS) for word in NOUNS}
    partners |= {word.english: len(NOUNS) for word in (*ADJECTIVES, *VERBS)}
    for word, total in partners.items():
        lost = sum(word in pair for pair in pairs)
        assert 1 <= lost <= 1.5 * total / HELD_OUT_SHARE + 1


def test_the_same_seed_gives_the_same_corpus_and_another_seed_another():
    sizes = {"train": 50, "validation": 5, "test": 20}
    texts = [
        [[one.english() for one in embedded_sentences(seed, sizes)[name]] for name in SPLITS] for seed in (7, 7, 8)
    ]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    assert held_out_pairs(7) != held_out_pairs(8)
