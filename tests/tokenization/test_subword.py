"""The tokenizer: no text is lost, ids are fixed, the same text gives the same tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttutor.errors import FileError, SettingError
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID
from ttutor.tokenization.subword import SubwordTokenizer

TEXT = ["the red cars do not sleep", "les voitures rouges ne dorment pas", "l'oiseau n'aime pas d'arbre"] * 5


@pytest.fixture(scope="module")
def tokenizer():
    return SubwordTokenizer.train(TEXT, vocab_size=350)


def test_special_ids(tokenizer):
    assert (PAD_ID, UNK_ID, BOS_ID, EOS_ID) == (0, 1, 2, 3)
    assert tuple(tokenizer.tokens(range(4))) == SPECIAL_TOKENS


@given(st.text())
def test_round_trip_of_any_text(tokenizer, text):
    token_ids = tokenizer.encode(text)
    assert tokenizer.decode(token_ids) == text
    assert all(len(SPECIAL_TOKENS) <= token_id < tokenizer.vocab_size for token_id in token_ids)


@pytest.mark.parametrize(
    "text", ["", " ", "  two  blanks ", "œuf ☆ 北京 👩‍👧", "<pad> <eos> <unk>", "tab\tand\nline", "e\u0301"]
)
def test_round_trip_of_hard_cases(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_elided_words_are_tokens_of_their_own(tokenizer):
    assert tokenizer.tokens(tokenizer.encode("l'oiseau")) == ["▁l'", "oiseau"]


def test_training_is_deterministic(tokenizer):
    assert SubwordTokenizer.train(TEXT, vocab_size=350).to_json() == tokenizer.to_json()


def test_saved_and_loaded_it_is_the_same(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.to_json(), encoding="utf-8")
    loaded = SubwordTokenizer.load(path)
    assert loaded.to_json() == tokenizer.to_json()
    assert loaded.encode("<pad> l'oiseau") == tokenizer.encode("<pad> l'oiseau")


@pytest.mark.parametrize("vocab_size", [100, 10**12])
def test_a_vocabulary_too_small_for_the_bytes_or_too_large_for_the_memory_is_refused(vocab_size):
    with pytest.raises(SettingError, match=f"at least 260 .* at most 1,000,000, got {vocab_size:,}"):
        SubwordTokenizer.train(TEXT, vocab_size)


def test_a_missing_or_damaged_file_is_named(tmp_path, tokenizer):
    with pytest.raises(FileError, match="there is no tokenizer at"):
        SubwordTokenizer.load(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.json").write_text(tokenizer.to_json()[:100], encoding="utf-8")
    with pytest.raises(FileError, match="is not a tokenizer's JSON"):
        SubwordTokenizer.load(tmp_path / "tokenizer.json")


def test_a_tokenizer_with_other_special_tokens_is_refused(tmp_path, tokenizer):
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.to_json().replace("<bos>", "<start>"), encoding="utf-8")
    with pytest.raises(FileError, match="expected a tokenizer whose first tokens are"):
        SubwordTokenizer.load(path)
