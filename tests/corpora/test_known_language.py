"""The language of which everything is known: its probabilities, its truth after a beginning, and a model's distance."""

from __future__ import annotations

import math

import pytest
import torch

from ttutor.corpora.known_language import EOS, PAD, KnownLanguage


@pytest.fixture(scope="module")
def language() -> KnownLanguage:
    return KnownLanguage()


def test_probabilities_sum_to_one_and_long_sentences_have_their_share(language: KnownLanguage) -> None:
    assert language.shares.sum().item() == pytest.approx(1)
    long = sum(share for sentence, share in language.probability.items() if "near" in sentence)
    assert long == pytest.approx(0.5)


def test_the_verb_agrees_with_the_first_noun(language: KnownLanguage) -> None:
    verbs = language.next_words("the old cats near the purple king")
    assert set(verbs) == {"sleep", "sing", "wait", "dance", "run", "fall"}
    assert set(language.next_words("the king near the cats")) == {f"{verb}s" for verb in verbs}


def test_every_beginning_has_next_words_that_sum_to_one(language: KnownLanguage) -> None:
    for beginning in ("", "the", "the cat", "the cat near", "the cat sleeps"):
        assert sum(language.next_words(beginning).values()) == pytest.approx(1)
    assert language.next_words("the cat sleeps") == {"<eos>": 1}
    assert language.next_words("cat the") == {}


def test_texts_are_read_back_and_cut_at_their_end(language: KnownLanguage) -> None:
    sentence = tuple("the red goat falls".split())
    (row,) = language.encode([sentence])
    assert language.read(row) == sentence
    assert language.read([*row.tolist(), *row.tolist()]) == sentence
    assert language.read(row[:-1]) == (*sentence, "...")
    assert torch.equal(language.beginning("the red goat falls")[0], row[:-1])
    with pytest.raises(KeyError):
        language.encode([("the", "blue", "goat")])


def test_nobody_expects_less_than_the_entropy(language: KnownLanguage) -> None:
    drawn = language.draw(3000, torch.Generator().manual_seed(0))
    assert language.true_loss(drawn) == pytest.approx(language.entropy, abs=0.02)
    uniform = math.log(len(language.vocabulary))
    assert language.entropy < uniform


def test_the_true_distribution_gives_each_sentence_its_probability(language: KnownLanguage) -> None:
    n_texts, n_places = language.texts.shape
    rows = torch.arange(0, n_texts, 997)
    log_p = torch.full((n_texts, n_places - 1, len(language.vocabulary)), -torch.inf, dtype=torch.float64)
    for row in rows.tolist():
        for place in range(n_places - 1):
            if language.texts[row, place] not in (PAD, EOS):
                beginning = " ".join(language.read(language.texts[row, : place + 1])[:-1])
                for word, share in language.next_words(beginning).items():
                    log_p[row, place, language.vocabulary.index(word)] = math.log(share)
    found = language.log_probabilities(log_p)[rows].exp()
    torch.testing.assert_close(found, language.shares[rows])
