"""Sentence pairs to learn from: the embedded grammar, or any two line-aligned text files."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ttutor.corpora.embedded import SIZES, embedded_sentences
from ttutor.errors import CorpusError

MAX_CHARACTERS = 1_000
"""A line longer than this is skipped, and counted, whatever its words."""

MAX_WORDS = 150
"""A line with more words (between blanks) than this is skipped, and counted."""

MAX_HELD_OUT = 1_000
"""At most this many pairs, and at most one in twenty, are held out for validation where no files are given for it."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class Skips:
    """How many pairs of a file were left out, and why."""

    empty: int = 0
    too_long: int = 0

    def __str__(self) -> str:
        parts = []
        if self.empty:
            parts.append(f"{self.empty:,} with an empty line")
        if self.too_long:
            parts.append(f"{self.too_long:,} with a line over {MAX_CHARACTERS:,} characters or {MAX_WORDS} words")
        return " and ".join(parts) or "none"

    def __bool__(self) -> bool:
        return bool(self.empty or self.too_long)


@dataclass(frozen=True)
class Corpus:
    """Pairs (source sentence, target sentence) for training, validation and test.

    `notes` says what was skipped or held out, in sentences to show to the reader.
    """

    name: str
    train: list[Pair]
    validation: list[Pair]
    test: list[Pair] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def fingerprint(self) -> str:
        """A checksum of every sentence, so that a resumed training can tell whether its text is still the same."""
        digest = hashlib.sha256()
        for pairs in (self.train, self.validation, self.test):
            for pair in pairs:
                digest.update("\t".join(pair).encode() + b"\n")
            digest.update(b"\f")
        return digest.hexdigest()


def embedded_corpus(seed: int = 0, sizes: dict[str, int] | None = None) -> Corpus:
    """The English-French corpus of the grammar; its test split asks for combinations that training never shows.

    >>> corpus = embedded_corpus(sizes={"train": 3, "validation": 1, "test": 1})
    >>> len(corpus.train), len(corpus.validation), len(corpus.test)
    (3, 1, 1)
    """
    sentences = embedded_sentences(seed, SIZES if sizes is None else sizes)
    pairs = {name: [(one.english(), one.french()) for one in split] for name, split in sentences.items()}
    return Corpus("embedded English-French grammar", pairs["train"], pairs["validation"], pairs["test"])


def file_corpus(
    source: str | Path,
    target: str | Path | None = None,
    validation: tuple[str | Path, str | Path | None] | None = None,
    test: tuple[str | Path, str | Path | None] | None = None,
    seed: int = 0,
) -> Corpus:
    """Read a corpus from files in which line n of one translates line n of the other (UTF-8, .gz or plain).

    Without a second file each line of the first holds a sentence, a tab, and its translation.
    Without validation files one pair in twenty (at most 1,000) is held out of the training, the same for one seed.
    """
    notes: list[str] = []

    def read(one: str | Path, other: str | Path | None) -> list[Pair]:
        pairs, skips = read_pairs(one, other)
        if skips:
            notes.append(f"{_names(one, other, ', ')}: skipped pairs: {skips}.")
        return pairs

    train, tests = read(source, target), read(*test) if test else []
    if validation is None:
        train, held_out = hold_out(train, seed)
        notes.append(f"No validation files given: {len(held_out):,} training pairs are held out for validation.")
    else:
        held_out = read(*validation)
    return Corpus(_names(source, target, " -> "), train, held_out, tests, tuple(notes))


def hold_out(pairs: list[Pair], seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split off one pair in twenty (at least one, at most 1,000), chosen by the seed; the order of the rest stays."""
    if len(pairs) < 2:
        raise CorpusError(
            f"expected at least 2 sentence pairs (one to train on, one to validate with), found {len(pairs)}; "
            "give more text"
        )
    count = max(1, min(MAX_HELD_OUT, len(pairs) // 20))
    chosen = set(Random(f"validation {seed}").sample(range(len(pairs)), count))
    kept = [pair for index, pair in enumerate(pairs) if index not in chosen]
    return kept, [pairs[index] for index in sorted(chosen)]


def _names(source: str | Path, target: str | Path | None, between: str) -> str:
    return between.join(Path(path).name for path in (source, target) if path is not None)


def read_aligned(source: str | Path, target: str | Path | None = None) -> list[Pair]:
    """Read two line-aligned files, or one with tabs, every pair of them, without the blanks around the sentences."""
    if target is None:
        return _read_tab_separated(source)
    if Path(source).absolute() == Path(target).absolute():
        raise CorpusError(f"{source} is given on both sides: a translator learns from a text and its translation")
    source_lines, target_lines = read_lines(source), read_lines(target)
    if len(source_lines) != len(target_lines):
        raise CorpusError(
            f"the two files must have one line per sentence, pair by pair, but {source} has "
            f"{len(source_lines):,} lines and {target} has {len(target_lines):,}; "
            "find the line that is split or missing"
        )
    return [(one.strip(), other.strip()) for one, other in zip(source_lines, target_lines, strict=True)]


def _read_tab_separated(path: str | Path) -> list[Pair]:
    """Read one file whose lines each hold a sentence, a tab, and its translation."""
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        match line.split("\t"):
            case [sentence, translation]:
                pairs.append((sentence.strip(), translation.strip()))
            case parts:
                raise CorpusError(
                    f"{path} is the only file, so each line must hold a sentence, a tab and its translation, but line "
                    f"{number} has {len(parts) - 1} tabs; mend the line, or give the translations as a second file"
                )
    return pairs


def read_pairs(source: str | Path, target: str | Path | None = None) -> tuple[list[Pair], Skips]:
    """Read two line-aligned files, or one with tabs, to learn from; empty and absurdly long lines are left out.

    Raises:
        CorpusError: a file is missing, empty or not UTF-8; the line counts differ; no pair is left.
    """
    pairs, empty, too_long = [], 0, 0
    for pair in read_aligned(source, target):
        if not all(pair):
            empty += 1
        elif any(len(line) > MAX_CHARACTERS or len(line.split()) > MAX_WORDS for line in pair):
            too_long += 1
        else:
            pairs.append(pair)
    skips = Skips(empty, too_long)
    if not pairs:
        raise CorpusError(f"no sentence pair is left of {_names(source, target, ' and ')}; skipped: {skips}")
    return pairs, skips


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file, or of one compressed with gzip, without their ends.

    Only a line feed (with or without a carriage return) ends a line: other characters that Python's `splitlines`
    would cut at occur inside the sentences of real corpora and would shift every pair after them.
    """
    path = Path(path)
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError:
        raise CorpusError(f"there is no file {path}; check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(f"{path} ends in .gz but cannot be decompressed ({error}); fetch or pack it again") from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}") from None
    if not data.strip():
        raise CorpusError(f"{path} is empty; expected one sentence per line")
    return list(_decode(data, path))


def _decode(data: bytes, path: Path) -> Iterator[str]:
    """Decode line by line, so that the message can say where a byte is wrong."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError as error:
            wrong = line[error.start]
            raise CorpusError(
                f"{path} is not UTF-8: line {number}, byte {error.start + 1} is 0x{wrong:02x}; "
                "convert the file to UTF-8 (iconv does it)"
            ) from None
