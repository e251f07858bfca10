"""Reading text files: what is read, what is skipped and counted, what is refused, and with which words."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttutor.corpora.corpus import MAX_CHARACTERS, MAX_WORDS, file_corpus, hold_out, read_aligned, read_lines
from ttutor.errors import InputError
from ttutor.texts import normal_form


def write(path, *lines: str):
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    return path


@pytest.fixture
def files(tmp_path):
    source = write(tmp_path / "a.en", *(f"sentence {number}" for number in range(50)))
    target = write(tmp_path / "a.fr", *(f"phrase {number}" for number in range(50)))
    return source, target


def test_gzip_and_plain_read_alike(files, tmp_path):
    packed = tmp_path / "a.en.gz"
    packed.write_bytes(gzip.compress(files[0].read_bytes()))
    assert read_lines(packed) == read_lines(files[0])


@pytest.mark.parametrize("content", [b"un\ndeux\n", b"un\r\ndeux\r\n", b"\xef\xbb\xbfun\ndeux"])
def test_line_ends_of_every_system_and_a_byte_order_mark(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    assert read_lines(tmp_path / "x") == ["un", "deux"]


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_any_text_comes_back_as_it_was_written(tmp_path_factory, lines):
    if not "".join(lines).strip() or lines[0].startswith("\ufeff"):
        return
    path = write(tmp_path_factory.mktemp("corpus") / "x", *lines)
    assert read_lines(path) == lines


def test_unequal_line_counts_name_both(tmp_path):
    source, target = write(tmp_path / "a.en", "one", "two", "three"), write(tmp_path / "a.fr", "un", "deux")
    with pytest.raises(InputError, match=r"a\.en has 3 lines and .*a\.fr has 2"):
        read_aligned(source, target)


def test_one_file_may_hold_both_sides_with_a_tab_between(tmp_path):
    path = write(tmp_path / "pairs.tsv", "a cat\tun chat", "a dog \tun chien")
    assert read_aligned(path) == [("a cat", "un chat"), ("a dog", "un chien")]
    assert file_corpus(path).name == "pairs.tsv"


@pytest.mark.parametrize(("line", "n_tabs"), [("a cat", 0), ("a\tcat\tun chat", 2)])
def test_a_line_without_its_one_tab_is_named(tmp_path, line, n_tabs):
    path = write(tmp_path / "pairs.tsv", "a dog\tun chien", line)
    with pytest.raises(InputError, match=f"line 2 has {n_tabs} tabs"):
        read_aligned(path)


def test_the_same_file_on_both_sides_is_refused(tmp_path):
    path = write(tmp_path / "a.en", "one", "two")
    with pytest.raises(InputError, match="given on both sides"):
        read_aligned(path, str(path))


DAMAGED = {
    "an empty file": ("a", b"", "a is empty"),
    "blanks alone": ("a", b"  \n\n", "a is empty"),
    "no file": ("a", None, r"there is no file .*a; check"),
    "not UTF-8": ("a", "bon\nl'été\n".encode("latin-1"), "not UTF-8: line 2, byte 3"),
    "a gzip without its ending": ("a", gzip.compress(b"one\n"), r"compressed by gzip, but .* end in \.gz"),
    "no gzip": ("a.gz", b"plain text", "cannot be decompressed"),
    "half a gzip": ("a.gz", gzip.compress(b"sentence number one\n" * 100)[:-10], "cannot be decompressed"),
    "bytes in a gzip": ("a.gz", gzip.compress(b"one\n" * 100)[:20] + b"\0" * 30, "cannot be decompressed"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_file_that_cannot_be_read_is_named(tmp_path, case):
    name, content, message = DAMAGED[case]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_lines(tmp_path / name)


def test_empty_and_absurdly_long_lines_are_skipped_and_counted(tmp_path):
    long, many = "x" * (MAX_CHARACTERS + 1), "a " * (MAX_WORDS + 1)
    source = write(tmp_path / "a.en", "one", "", "three", "four", "  ", "six")
    target = write(tmp_path / "a.fr", "un", "deux", long, many, "cinq", "six")
    corpus = file_corpus(source, target, validation=(source, target))
    assert corpus.train == corpus.validation == [("one", "un"), ("six", "six")]
    skipped = "2 with an empty line and 2 with a line over 1,000 characters or 150 words"
    both = "2 of 2 validation sentences stand in the training text too."
    assert corpus.notes == (*(f"a.en, a.fr: skipped pairs: {skipped}.",) * 2, both)


def test_without_validation_files_pairs_are_held_out_the_same_each_time(files):
    first, second, other = file_corpus(*files), file_corpus(*files), file_corpus(*files, seed=1)
    assert first == second
    assert first.validation != other.validation
    assert (len(first.train), len(first.validation)) == (48, 2)
    assert not set(first.train) & set(first.validation)


DOUBLES = {
    "the same": ("The dog sleeps.", "The dog sleeps."),
    "letter case": ("The dog sleeps.", "the DOG sleeps."),
    "blanks": ("The dog sleeps.", " The\u00a0 dog  sleeps. "),
    "decomposed": ("Où dort-il ?", "Ou\u0300 dort\u2010il\u202f?"),
    "wide": ("ＡＢＣ　ガ", "abc ｶﾞ"),
    "sharp s": ("STRASSE", "Straße"),
}


@pytest.mark.parametrize("case", DOUBLES)
@pytest.mark.parametrize("n_different", [2, 40])
def test_no_double_of_a_held_out_pair_is_learnt_from(case, n_different):
    pairs = [(one, str(place)) for one in DOUBLES[case] for place in range(3)]
    pairs += [(f"other {number}", "x") for number in range(n_different - 1)]
    pairs = pairs[::2] + pairs[1::2]
    found = []
    for seed in range(60):
        train, validation = hold_out(pairs, seed)
        assert not {normal_form(one) for one, _ in train} & {normal_form(one) for one, _ in validation}
        assert len(validation) == max(1, n_different // 20)
        assert [pair for pair in pairs if pair in train] == train
        found.append(len(pairs) - len(train) - len(validation))
    assert set(found) == {0, 5}


def test_how_many_doubles_were_moved_is_said(tmp_path):
    path = write(tmp_path / "x", *["A dog\tun chien", "a  dog\tle chien"] * 10, "a cat\tun chat")
    notes = {file_corpus(path, seed=seed).notes for seed in range(20)}
    held_out = "No validation files given: 1 training pairs are held out for validation."
    assert notes == {(held_out,), (f"{held_out} 19 doubles of them are left out of the training.",)}


def test_a_text_of_one_sentence_cannot_be_split():
    with pytest.raises(InputError, match="at least 2 different sentence pairs .* found 1"):
        hold_out([("a", "1"), ("A ", "2"), ("\u00a0a", "3")], seed=0)


def test_validation_files_are_used_where_given(files, tmp_path):
    extra = write(tmp_path / "v.en", "eins"), write(tmp_path / "v.fr", "zwei")
    corpus = file_corpus(*files, validation=extra)
    assert corpus.validation == [("eins", "zwei")]
    assert corpus.train[:2] == [("sentence 0", "phrase 0"), ("sentence 1", "phrase 1")]
    assert len(corpus.train) == 50


def test_the_fingerprint_changes_with_any_sentence_and_with_the_split(files, tmp_path):
    corpus = file_corpus(*files)
    moved = type(corpus)(corpus.name, corpus.train[1:], corpus.validation + corpus.train[:1])
    changed = type(corpus)(corpus.name, [("sentence 0.", "phrase 0"), *corpus.train[1:]], corpus.validation)
    assert len({one.fingerprint() for one in (corpus, moved, changed)}) == 3
    assert corpus.fingerprint() == file_corpus(*files).fingerprint()
