"""Words out of tokens, words under words, and words as older papers count them."""

import gzip

import pytest

from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.translation.moses_tokenize import moses_tokenize
from ttutor.translation.words import find_words

pytestmark = pytest.mark.trainer


def texts(*tokens: str) -> list[str]:
    return [word.text for word in find_words(tokens)]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("▁a", "▁T", "-", "Shirt", "."), ["a", "T-Shirt", "."]),
        (("▁qu'", "il"), ["qu'", "il"]),
        (("▁l", "'", "oiseau"), ["l'", "oiseau"]),
        (("▁aujourd", "'", "hui"), ["aujourd'hui"]),
        (("▁man", "'", "s", "▁hat"), ["man's", "hat"]),
        (("▁1", ",", "0", "0", "0", ",", "▁3"), ["1,000", ",", "3"]),
        (("▁(", "oui", ")", "!"), ["(", "oui", ")!"]),
        (("▁", "", "☆"), ["☆"]),
        (("▁", "▁", "▁a"), ["a"]),
        (("<bos>", "▁a", "<pad>", "b", "<eos>"), ["ab"]),
        (("▁e\u0301te\u0301",), ["e\u0301te\u0301"]),
        (("▁हिन्दी",), ["हिन्दी"]),
        (("<eos>",), []),
        ((), []),
    ],
)
def test_tokens_make_words(tokens, words):
    assert texts(*tokens) == words


def test_words_know_their_tokens():
    tokens = ("▁the", "▁do", "gs", "▁", "▁sleep", ".", "<eos>")
    assert [(word.text, word.start, word.end) for word in find_words(tokens)] == [
        ("the", 0, 1),
        ("dogs", 1, 3),
        ("sleep", 3, 5),
        (".", 5, 6),
    ]


@pytest.mark.parametrize("text", ["l'étoile ☆ 北京", "a � b", "🦊", "", "  two  blanks ", "▁"])
def test_pieces_are_together_the_text(text):
    tokenizer = SubwordTokenizer.train(["the red car"], vocab_size=270)
    ids = tokenizer.encode(text)
    pieces = tokenizer.pieces(ids)
    assert len(pieces) == len(ids)
    assert "".join(pieces).replace("▁", " ") == " " + text.replace("▁", " ")


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("The Dog's ball.", "en", "the dog 's ball ."),
        ("It costs 1,000, or 2.5.", "en", "it costs 1,000 , or 2.5 ."),
        ("St. Mary, U.S. fans…", "en", "st. mary , u.s. fans ..."),
        ("„Hallo“ – O'Neill's", "de", "\" hallo \" - o ' neill ' s"),
        ("Es ist der 2. Mai.", "de", "es ist der 2. mai ."),
        ("Number 2.", "en", "number 2 ."),
        ("L’homme d'ici, qu'il «voit»!", "fr", "l' homme d' ici , qu' il \" voit \" !"),
        ("T-Shirt (rot)", "de", "t-shirt ( rot )"),
        ("", "de", ""),
        (".", "de", "."),
    ],
)
def test_words_are_cut_as_moses_cuts_them(text, language, words):
    assert moses_tokenize(text, language) == words


PUBLISHED = {"val": (13_308, 12_828, 14_381), "test_2016_flickr": (12_968, 12_103, 13_988)}


@pytest.mark.parametrize("split", PUBLISHED)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_as_many_words_as_in_the_published_files(multi30k, split, place):
    """The counts stand in the README of Multi30k, of files that the scripts of Moses made."""
    language = ("en", "de", "fr")[place]
    text = gzip.decompress((multi30k / f"{split}.{language}.gz").read_bytes()).decode()
    assert sum(len(moses_tokenize(line, language).split()) for line in text.split("\n")) == PUBLISHED[split][place]
