"""Reading text files: what is read, what is skipped and counted, what is refused, and with which words."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttutor.corpora.corpus import (
    MAX_CHARACTERS,
    MAX_WORDS,
    Skips,
    file_corpus,
    read_lines,
    read_pairs,
)
from ttutor.errors import CorpusError


def write(path, *lines: str, end: str = "\n"):
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


@pytest.fixture
def files(tmp_path):
    source = write(tmp_path / "a.en", *(f"sentence {number}" for number in range(50)))
    target = write(tmp_path / "a.fr", *(f"phrase {number}" for number in range(50)))
    return source, target


def test_pairs_are_read_in_order(files):
    pairs, skips = read_pairs(*files)
    assert pairs[:2] == [("sentence 0", "phrase 0"), ("sentence 1", "phrase 1")]
    assert len(pairs) == 50
    assert not skips


def test_gzip_and_plain_read_alike(files, tmp_path):
    packed = tmp_path / "a.en.gz"
    packed.write_bytes(gzip.compress(files[0].read_bytes()))
    assert read_lines(packed) == read_lines(files[0])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_of_every_system(tmp_path, end):
    assert read_lines(write(tmp_path / "x", "un", "deux", end=end)) == ["un", "deux"]


def test_a_byte_order_mark_and_a_missing_last_line_end_do_not_matter(tmp_path):
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfun\ndeux")
    assert read_lines(tmp_path / "x") == ["un", "deux"]


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_any_text_comes_back_as_it_was_written(tmp_path_factory, lines):
    if not "".join(lines).encode().strip() or lines[0].startswith("\ufeff"):
        return
    path = write(tmp_path_factory.mktemp("corpus") / "x", *lines)
    assert read_lines(path) == lines


def test_unequal_line_counts_name_both(tmp_path):
    source, target = write(tmp_path / "a.en", "one", "two", "three"), write(tmp_path / "a.fr", "un", "deux")
    with pytest.raises(CorpusError, match=r"a\.en has 3 lines and .*a\.fr has 2"):
        read_pairs(source, target)


def test_one_file_may_hold_both_sides_with_a_tab_between(tmp_path):
    path = write(tmp_path / "pairs.tsv", "a cat\tun chat", "a dog \tun chien")
    assert read_pairs(path) == ([("a cat", "un chat"), ("a dog", "un chien")], Skips(0, 0))
    assert file_corpus(path).name == "pairs.tsv"


@pytest.mark.parametrize(("line", "n_tabs"), [("a cat", 0), ("a\tcat\tun chat", 2)])
def test_a_line_without_its_one_tab_is_named(tmp_path, line, n_tabs):
    path = write(tmp_path / "pairs.tsv", "a dog\tun chien", line)
    with pytest.raises(CorpusError, match=f"line 2 has {n_tabs} tabs"):
        read_pairs(path)


def test_the_same_file_on_both_sides_is_refused(tmp_path):
    path = write(tmp_path / "a.en", "one", "two")
    with pytest.raises(CorpusError, match="given on both sides"):
        read_pairs(path, str(path))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"   \n"])
def test_an_empty_file_is_named(tmp_path, files, content):
    (tmp_path / "empty").write_bytes(content)
    with pytest.raises(CorpusError, match="empty is empty"):
        read_pairs(tmp_path / "empty", files[1])


def test_a_missing_file_is_named(tmp_path, files):
    with pytest.raises(CorpusError, match=r"there is no file .*nowhere\.en"):
        read_pairs(tmp_path / "nowhere.en", files[1])


def test_bytes_that_are_not_utf8_are_named_by_line_and_byte(tmp_path, files):
    (tmp_path / "latin").write_bytes("bon\nl'été\n".encode("latin-1"))
    with pytest.raises(CorpusError, match="not UTF-8: line 2, byte 3 is 0xe9"):
        read_pairs(tmp_path / "latin", files[1])


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-10], lambda data: b"plain text", lambda data: data[:20] + b"\0" * 30]
)
def test_a_damaged_gzip_file_is_named(tmp_path, damage):
    path = tmp_path / "a.gz"
    path.write_bytes(damage(gzip.compress(b"sentence number one\n" * 100)))
    with pytest.raises(CorpusError, match="cannot be decompressed"):
        read_lines(path)


def test_empty_and_absurdly_long_lines_are_skipped_and_counted(tmp_path):
    long, many = "x" * (MAX_CHARACTERS + 1), "a " * (MAX_WORDS + 1)
    source = write(tmp_path / "a.en", "one", "", "three", "four", "  ", "six")
    target = write(tmp_path / "a.fr", "un", "deux", long, many, "cinq", "six")
    pairs, skips = read_pairs(source, target)
    assert pairs == [("one", "un"), ("six", "six")]
    assert (skips.empty, skips.too_long) == (2, 2)
    assert str(skips) == "2 with an empty line and 2 with a line over 1,000 characters or 150 words"


def test_without_validation_files_pairs_are_held_out_the_same_each_time(files):
    first, second, other = file_corpus(*files), file_corpus(*files), file_corpus(*files, seed=1)
    assert first == second
    assert first.validation != other.validation
    assert (len(first.train), len(first.validation)) == (48, 2)
    assert not set(first.train) & set(first.validation)


def test_validation_and_test_files_are_used_where_given(files, tmp_path):
    extra = write(tmp_path / "v.en", "eins"), write(tmp_path / "v.fr", "zwei")
    corpus = file_corpus(*files, validation=extra, test=extra)
    assert corpus.validation == corpus.test == [("eins", "zwei")]
    assert len(corpus.train) == 50


def test_the_fingerprint_changes_with_any_sentence_and_with_the_split(files, tmp_path):
    corpus = file_corpus(*files)
    moved = type(corpus)(corpus.name, corpus.train[1:], corpus.validation + corpus.train[:1])
    changed = type(corpus)(corpus.name, [("sentence 0.", "phrase 0"), *corpus.train[1:]], corpus.validation)
    assert len({one.fingerprint() for one in (corpus, moved, changed)}) == 3
    assert corpus.fingerprint() == file_corpus(*files).fingerprint()
