"""The readable tokenizers against Hugging Face's library, against counting anew at every step, and by round trips."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as TheirTokenizer
from tokenizers import decoders, models, pre_tokenizers, trainers

from ttutor.tokenization import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    SPECIAL_TOKENS,
    UNK_ID,
    BytePairTokenizer,
    CharacterTokenizer,
    Tokenizer,
    WordPieceTokenizer,
    WordTokenizer,
    split_words,
)
from ttutor.tokenization.byte_pair import BYTES, split_pieces

TEXTS = [
    "The cat sat on the mat; the cats sat, the mats lay.",
    "It's the cat's hat, isn't it? They'll say: we've 3 hats and 12 mats!",
    "low lower lowest, new newer newest, wide wider widest",
    "  Two  blanks,\ttabs\n\nand lines; naïve café, œuvre, 北京, Привет, 👩‍👧.",
    "unaffable, unable, unlikely: an_underscore and a_b_c",
]
KINDS = (CharacterTokenizer, WordTokenizer, BytePairTokenizer, WordPieceTokenizer)
NEW_WORDS = "unseen zebras lowered the newest mat"


def train(kind: type[Tokenizer]) -> Tokenizer:
    return kind.train(TEXTS, vocab_size=330)


@pytest.fixture(scope="module")
def characters():
    return CharacterTokenizer.train(TEXTS)


@pytest.fixture(scope="module")
def words():
    return WordTokenizer.train(TEXTS)


@pytest.fixture(scope="module")
def byte_pair():
    return BytePairTokenizer.train(TEXTS, vocab_size=330)


@pytest.fixture(scope="module")
def word_piece():
    return WordPieceTokenizer.train(TEXTS, vocab_size=200)


# What all four share.


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_four_ids_are_special_and_no_text_is_cut_into_their_tokens(kind):
    tokenizer = train(kind)
    assert (PAD_ID, UNK_ID, BOS_ID, EOS_ID) == (0, 1, 2, 3)
    assert tuple(tokenizer.tokens(range(4))) == SPECIAL_TOKENS
    pretender = kind.train(["<pad> <bos> pad bos < >"], vocab_size=270)
    token_ids = pretender.encode("<pad> <bos>")
    assert min(token_ids) >= len(SPECIAL_TOKENS)
    assert pretender.decode(token_ids).replace(" ", "") == "<pad><bos>"


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_leaves_marks_out_and_shows_what_is_unknown(kind):
    tokenizer = train(kind)
    cat = tokenizer.encode("cat")
    assert tokenizer.decode([BOS_ID, *cat, EOS_ID, PAD_ID, PAD_ID]) == "cat"
    assert tokenizer.decode([*cat, UNK_ID]).replace(" ", "") == "cat<unk>"


def test_training_does_not_hang_on_the_hash_seed():
    """Sets of strings iterate in another order in each process; the vocabulary must not."""
    script = (
        "from ttutor.tokenization import *\n"
        f"texts = {TEXTS!a}\n"
        f"print([ascii(kind.train(texts, 290).vocabulary) for kind in ({', '.join(k.__name__ for k in KINDS)})])"
    )
    commands = [[sys.executable, "-c", script]] * 2
    outputs = {
        subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for command, seed in zip(commands, "12", strict=True)
    }
    assert len(outputs) == 1
    assert "cat" in outputs.pop()


# Round trips, as far as each kind promises them.


@given(st.text())
def test_byte_pairs_bring_every_text_back(byte_pair, text):
    token_ids = byte_pair.encode(text)
    assert byte_pair.decode(token_ids) == text
    assert UNK_ID not in token_ids


@given(st.text(alphabet="".join(sorted(set("".join(TEXTS))))))
def test_characters_bring_back_every_text_made_of_known_ones(characters, text):
    assert characters.decode(characters.encode(text)) == text


@given(st.lists(st.sampled_from(sorted({word for text in TEXTS for word in split_words(text)}))))
def test_words_come_back_with_one_blank_between_them(words, word_piece, known):
    text = " ".join(known)
    assert words.decode(words.encode(text)) == text
    assert word_piece.decode(word_piece.encode(text)) == text


def test_what_is_unknown_to_each(characters, words, word_piece):
    assert words.decode(words.encode("a zebra sat")) == "<unk> <unk> sat"
    assert characters.decode(characters.encode("a zebra sat")) == "a <unk>ebra sat"
    assert word_piece.encode("zebra") == [UNK_ID]  # no text has a "z": the word is unknown as a whole
    assert word_piece.decode(word_piece.encode("unwide")) == "unwide"  # a new word in known pieces


def test_a_full_vocabulary_keeps_the_most_frequent_and_breaks_ties_by_code_point():
    assert CharacterTokenizer.train(["bbaac"], vocab_size=6).vocabulary[4:] == ("a", "b")
    assert WordTokenizer.train(["b a b c a d"], vocab_size=7).vocabulary[4:] == ("a", "b", "c")
    assert WordTokenizer.train(["b a b c a d"], vocab_size=7).encode("d a") == [UNK_ID, 4]


def test_tokens_are_shown_so_that_blanks_and_broken_characters_can_be_seen(byte_pair):
    assert BytePairTokenizer([]).tokens(BytePairTokenizer([]).encode(" é")) == ["▁", "\\xc3", "\\xa9"]
    assert byte_pair.tokens(byte_pair.encode(" the")) == ["▁the"]
    assert byte_pair.decode(byte_pair.encode("北")[:1]) == "�"
    assert CharacterTokenizer.train(["a b"]).tokens([5, 4, UNK_ID]) == ["a", "▁", "<unk>"]


# Cutting, against the library.


def as_bytes(text: str) -> str:
    return text.encode().decode("latin-1")


def their_byte_pair(ours: BytePairTokenizer) -> TheirTokenizer:
    """The library's byte-pair model with our merges; a byte is the character with the same number."""
    vocabulary = {token: token_id for token_id, token in enumerate(ours.vocabulary)}
    return TheirTokenizer(models.BPE(vocab=vocabulary, merges=list(ours.merges)))


def their_word_piece(ours: WordPieceTokenizer) -> TheirTokenizer:
    vocabulary = {token: token_id for token_id, token in enumerate(ours.vocabulary)}
    return TheirTokenizer(models.WordPiece(vocab=vocabulary, unk_token="<unk>", max_input_chars_per_word=10_000))


@given(st.text() | st.text("abelostw ") | st.lists(st.sampled_from(TEXTS + [NEW_WORDS])).map("".join))
def test_the_same_merges_give_the_same_ids(byte_pair, text):
    pieces = [as_bytes(piece) for piece in split_pieces(text)]
    assert byte_pair.encode(text) == their_byte_pair(byte_pair).encode(pieces, is_pretokenized=True).ids


@given(st.text() | st.text("abelostw ") | st.lists(st.sampled_from(TEXTS + [NEW_WORDS])).map("".join))
def test_the_same_word_pieces_give_the_same_ids(word_piece, text):
    theirs = their_word_piece(word_piece).encode(split_words(text), is_pretokenized=True)
    assert word_piece.encode(text) == theirs.ids
    assert word_piece.split(text) == theirs.tokens
    decoder = decoders.WordPiece(prefix="##", cleanup=False)
    assert word_piece.decode(word_piece.encode(text)) == decoder.decode(theirs.tokens)


PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]


def gpt2_letters(text: str) -> str:
    """Our spelling of bytes in that of GPT-2, where bytes that cannot be printed have letters from 256 on."""
    odd = [byte for byte in range(256) if byte not in PRINTABLE]
    return "".join(letter if ord(letter) in PRINTABLE else chr(256 + odd.index(ord(letter))) for letter in text)


@pytest.mark.parametrize("text", [*TEXTS, "", " ", "   ", " a  b ", "a_b __ c", "x'll 'S's", "1234 5a6b", "a\n b\t\tc"])
def test_pieces_and_ids_equal_the_pipeline_of_gpt2(byte_pair, text):
    theirs = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert [gpt2_letters(as_bytes(piece)) for piece in split_pieces(text)] == [
        piece for piece, _ in theirs.pre_tokenize_str(text)
    ]
    vocabulary = {gpt2_letters(token): token_id for token_id, token in enumerate(byte_pair.vocabulary)}
    merges = [(gpt2_letters(left), gpt2_letters(right)) for left, right in byte_pair.merges]
    gpt2 = TheirTokenizer(models.BPE(vocab=vocabulary, merges=merges))
    gpt2.pre_tokenizer, gpt2.decoder = theirs, decoders.ByteLevel()
    assert byte_pair.encode(text) == gpt2.encode(text).ids
    assert gpt2.decode(byte_pair.encode(text)) == text


@given(st.text())
def test_pieces_and_words_leave_nothing_out(text):
    assert "".join(split_pieces(text)) == text
    assert "".join(split_words(text)) == "".join(text.split())


# Learning.


def their_merges(pieces: list[str], vocab_size: int) -> list[list[str]]:
    """What the library learns from these words, ties and all: its rule, older tokens first, is ours."""
    theirs = TheirTokenizer(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIAL_TOKENS), initial_alphabet=list(BYTES), show_progress=False
    )
    theirs.train_from_iterator(pieces, trainer)
    learned = theirs.get_vocab()
    assert all(learned[byte] == 4 + number for number, byte in enumerate(BYTES))
    return sorted(learned, key=learned.get)[4 + 256 :]


@pytest.mark.parametrize("vocab_size", [260, 261, 300, 330, 5000])
def test_learned_merges_equal_the_librarys(vocab_size):
    pieces = [as_bytes(piece) for text in TEXTS for piece in split_pieces(text)]
    ours = BytePairTokenizer.train(TEXTS, vocab_size)
    assert ["".join(pair) for pair in ours.merges] == their_merges(pieces, vocab_size)
    assert ours.vocab_size <= vocab_size


@given(st.lists(st.text("ab", min_size=1), min_size=1), st.integers(260, 290))
def test_learned_merges_equal_the_librarys_where_nearly_all_are_ties(words, vocab_size):
    ours = BytePairTokenizer.train(words, vocab_size)
    assert ["".join(pair) for pair in ours.merges] == their_merges(words, vocab_size)


def counted_anew(words: Counter[str], n_merges: int, min_count: int) -> list[str]:
    """WordPiece training as its documentation has it, with exact fractions and all counts taken again at each step."""
    cut = {word: [word[0], *("##" + letter for letter in word[1:])] for word in words}
    letters = {token for tokens in cut.values() for token in tokens}
    vocabulary = sorted(t for t in letters if t[:2] != "##") + sorted(t for t in letters if t[:2] == "##")
    for _ in range(n_merges):
        single, double = Counter(), Counter()
        for word, tokens in cut.items():
            for token in tokens:
                single[token] += words[word]
            for pair in pairwise(tokens):
                double[pair] += words[word]
        candidates = {pair: n for pair, n in double.items() if n >= min_count}
        if not candidates:
            break
        left, right = max(
            candidates,
            key=lambda pair: (
                Fraction(double[pair], single[pair[0]] * single[pair[1]]),
                double[pair],
                -vocabulary.index(pair[0]),
                -vocabulary.index(pair[1]),
            ),
        )
        joined = left + right[2:]
        for word, tokens in cut.items():
            place = 0
            while place < len(tokens) - 1:
                if tokens[place : place + 2] == [left, right]:
                    cut[word] = tokens = [*tokens[:place], joined, *tokens[place + 2 :]]
                place += 1
        vocabulary.append(joined)
    return vocabulary


@given(st.lists(st.text("abc", min_size=1, max_size=6), min_size=1), st.integers(0, 9), st.integers(1, 3))
def test_word_pieces_learned_equal_those_counted_anew_with_fractions(words, n_merges, min_count):
    n_letters = len(counted_anew(Counter(words), 0, min_count))
    ours = WordPieceTokenizer.train(words, 4 + n_letters + n_merges, min_count=min_count)
    assert list(ours.vocabulary[4:]) == counted_anew(Counter(words), n_merges, min_count)


# What is refused.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [[], [""], [" ", "\n\t"]])
def test_a_corpus_without_words_is_refused(kind, texts):
    with pytest.raises(ValueError, match=rf"nothing to learn from: {len(texts)} texts came"):
        kind.train(texts, vocab_size=300)


@pytest.mark.parametrize("kind", KINDS)
def test_one_string_is_no_corpus(kind):
    with pytest.raises(TypeError, match=r"several strings, but came as one; write \[text\]"):
        kind.train("the cat sat", vocab_size=300)


@pytest.mark.parametrize(
    ("kind", "vocab_size", "needed"),
    [
        (CharacterTokenizer, 4, r"5 \(4 special tokens and one character\)"),
        (WordTokenizer, 0, r"5 \(4 special tokens and one word\)"),
        (BytePairTokenizer, 259, r"260 \(4 special tokens and 256 bytes\)"),
        (WordPieceTokenizer, 6, r"7 \(4 special tokens and 3 characters at the start of words and within\)"),
    ],
)
def test_too_small_a_vocabulary_says_what_it_needs(kind, vocab_size, needed):
    with pytest.raises(ValueError, match=rf"vocab_size must be at least {needed}, but is {vocab_size}"):
        kind.train(["aab"], vocab_size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["decode", "tokens"])
def test_ids_outside_the_vocabulary_are_named(kind, method):
    tokenizer = train(kind)
    size = tokenizer.vocab_size
    with pytest.raises(ValueError, match=rf"between 0 and {size - 1}, but \[-1, {size}\] came"):
        getattr(tokenizer, method)([4, size, -1, size])
