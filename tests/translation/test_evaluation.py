"""Scores, against sacreBLEU called directly and against numbers worked out by hand."""

import json
import math

import pytest
import sacrebleu

from ttutor.errors import InputError
from ttutor.translation.evaluation import evaluate, sentence_chrf

OUTPUT = ["The cat sits on the mat .", "A dog runs through the park", "two men talk"]
REFERENCE = ["The cat sat on the mat .", "a dog runs through the park", "Two men are talking"]


def test_equals_sacrebleu_called_directly():
    scores = evaluate(OUTPUT, REFERENCE)
    assert scores.bleu == pytest.approx(sacrebleu.corpus_bleu(OUTPUT, [REFERENCE]).score)
    assert scores.bleu_lower_cased == pytest.approx(sacrebleu.corpus_bleu(OUTPUT, [REFERENCE], lowercase=True).score)
    assert scores.chrf == pytest.approx(sacrebleu.corpus_chrf(OUTPUT, [REFERENCE]).score)
    assert scores.bleu < scores.bleu_lower_cased
    assert "case:mixed" in scores.bleu_signature
    assert "tok:13a" in scores.bleu_signature
    assert "case:lc" in scores.bleu_lower_cased_signature


def test_bleu_by_hand():
    """One of six words differs, the third: n-gram precisions 5/6, 3/5, 1/4 and, none matching, 1/2 of 1/3 smoothed."""
    scores = evaluate(["a b x d e f"], ["a b c d e f"])
    precisions = [5 / 6, 3 / 5, 1 / 4, 1 / (2 * 3)]
    assert scores.bleu == pytest.approx(100 * math.exp(sum(map(math.log, precisions)) / 4))


def test_the_report_shows_scores_with_signatures():
    scores = evaluate(OUTPUT, REFERENCE)
    text = str(scores)
    assert scores.bleu_signature in text
    assert scores.chrf_signature in text
    assert f"{scores.bleu:.2f}" in text
    assert json.loads(json.dumps(scores.as_dict()))["n_sentences"] == 3


@pytest.mark.parametrize(("output", "reference"), [([], []), (["a"], ["a", "b"])])
def test_lists_of_unequal_length_or_none_are_refused(output, reference):
    with pytest.raises(InputError, match=f"got {len(output)} and {len(reference)}"):
        evaluate(output, reference)


def test_bleu_of_spaced_words_is_sacrebleus_on_text_cut_by_hand():
    """Lower case, and in French the apostrophe ends a word, which 13a does not know."""
    scores = evaluate(["L'homme voit l'oiseau noir."], ["L'homme voit l'oiseau blanc."], language="fr")
    cut = "l' homme voit l' oiseau noir .", "l' homme voit l' oiseau blanc ."
    assert scores.bleu_as_words == pytest.approx(sacrebleu.corpus_bleu([cut[0]], [[cut[1]]], tokenize="none").score)
    assert scores.bleu_as_words > scores.bleu_lower_cased
    assert "tok:none" in scores.bleu_as_words_signature


def test_sentence_scores_equal_sacrebleu_called_directly():
    expected = [sacrebleu.sentence_chrf(one, [other]).score for one, other in zip(OUTPUT, REFERENCE, strict=True)]
    assert sentence_chrf(OUTPUT, REFERENCE) == pytest.approx(expected)
    with pytest.raises(InputError, match="got 0 and 0"):
        sentence_chrf([], [])
