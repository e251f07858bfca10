"""Sentence pairs to learn from: the embedded grammar, or any two line-aligned text files."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ttutor.corpora.embedded import SIZES, embedded_sentences
from ttutor.corpora.text_files import open_text, read_groups
from ttutor.corpora.text_style import TextStyle
from ttutor.errors import InputError
from ttutor.texts import normal_form

MAX_CHARACTERS = 1_000
"""A line longer than this is skipped, and counted, whatever its words."""

MAX_WORDS = 150
"""A line with more words (between blanks) than this is skipped, and counted."""

MAX_HELD_OUT = 1_000
"""At most this many pairs, and at most one in twenty, are held out for validation where no files are given for it."""

Pair = tuple[str, str]


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

    def style(self) -> TextStyle:
        """How the training sentences are written, which decides how later ones are prepared."""
        return TextStyle.of([source for source, _ in self.train], [target for _, target in self.train])


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
    seed: int = 0,
) -> Corpus:
    """Read a corpus from files in which line n of one translates line n of the other (UTF-8, .gz or plain).

    Without a second file each line of the first holds a sentence, a tab, and its translation.
    Without validation files one pair in twenty (at most 1,000) is held out of the training with all its doubles, the
    same for one seed.
    """
    notes: list[str] = []

    def read(one: str | Path, other: str | Path | None) -> list[Pair]:
        pairs, skipped = _learnable(read_aligned(one, other))
        if not pairs:
            raise InputError(f"no sentence pair is left of {_names(one, other, ' and ')}; skipped: {skipped}")
        notes.extend([f"{_names(one, other, ', ')}: skipped pairs: {skipped}."] if skipped else [])
        return pairs

    train = read(source, target)
    if validation is None:
        count = len(train)
        train, held_out = hold_out(train, seed)
        moved = count - len(train) - len(held_out)
        doubles = f" {moved:,} doubles of them are left out of the training." if moved else ""
        notes.append(
            f"No validation files given: {len(held_out):,} training pairs are held out for validation.{doubles}"
        )
    else:
        held_out = read(*validation)
        known = {normal_form(sentence) for sentence, _ in train}
        if seen := sum(normal_form(sentence) in known for sentence, _ in held_out):
            notes.append(f"{seen:,} of {len(held_out):,} validation sentences stand in the training text too.")
    return Corpus(_names(source, target, " -> "), train, held_out, notes=tuple(notes))


def pairs_corpus(pairs: Iterable[Pair], seed: int = 0) -> Corpus:
    """A corpus from sentence pairs in memory; as from files without validation, one pair in twenty is held out.

    >>> corpus = pairs_corpus([("a cat", "un chat"), ("a dog", "un chien")])
    >>> len(corpus.train), len(corpus.validation)
    (1, 1)
    """
    stripped = []
    for number, pair in enumerate(pairs, start=1):
        match pair:
            case (str(source), str(target)):
                stripped.append((source.strip(), target.strip()))
            case _:
                raise InputError(f"expected pairs of a sentence and its translation, but pair {number} is {pair!r}")
    kept, skipped = _learnable(stripped)
    train, held_out = hold_out(kept, seed)
    notes = [f"Skipped pairs: {skipped}."] if skipped else []
    notes.append(f"{len(held_out):,} pairs are held out for validation.")
    return Corpus(f"{len(stripped):,} pairs", train, held_out, notes=tuple(notes))


def hold_out(pairs: list[Pair], seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split off one pair in twenty (at least one, at most 1,000), chosen by the seed; the order of the rest stays.

    Pairs whose sources differ in nothing but capitals, blanks and the like (`ttutor.texts.normal_form`) are doubles,
    and count as one: none stands in the training text beside one that is held out. The first of them is held out, the
    others are in neither part.

    >>> hold_out([("a b", "1"), ("A  B", "2"), ("c", "3")], seed=0)
    ([('c', '3')], [('a b', '1')])
    """
    doubles: dict[str, list[int]] = {}
    for index, (source, _) in enumerate(pairs):
        doubles.setdefault(normal_form(source), []).append(index)
    groups = list(doubles.values())
    if len(groups) < 2:
        raise InputError(
            f"expected at least 2 different sentence pairs (one to train on, one to validate with), "
            f"found {len(groups)}; give more text"
        )
    count = max(1, min(MAX_HELD_OUT, len(groups) // 20))
    chosen = [groups[number] for number in sorted(Random(f"validation {seed}").sample(range(len(groups)), count))]
    moved = {index for group in chosen for index in group}
    kept = [pair for index, pair in enumerate(pairs) if index not in moved]
    return kept, [pairs[group[0]] for group in chosen]


def _names(source: str | Path, target: str | Path | None, between: str) -> str:
    return between.join(Path(path).name for path in (source, target) if path is not None)


def read_aligned(source: str | Path, target: str | Path | None = None) -> list[Pair]:
    """Read two line-aligned files, or one with tabs, every pair of them, without the blanks around the sentences."""
    if target is None:
        return _read_tab_separated(source)
    if Path(source).absolute() == Path(target).absolute():
        raise InputError(f"{source} is given on both sides: a translator learns from a text and its translation")
    source_lines, target_lines = read_lines(source), read_lines(target)
    if len(source_lines) != len(target_lines):
        raise InputError(
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
                raise InputError(
                    f"{path} is the only file, so each line must hold a sentence, a tab and its translation, but line "
                    f"{number} has {len(parts) - 1} tabs; mend the line, or give the translations as a second file"
                )
    return pairs


def _learnable(pairs: list[Pair]) -> tuple[list[Pair], str]:
    """The pairs without those that have an empty or an absurdly long line, and in words how many these were."""
    whole = [pair for pair in pairs if all(pair)]
    kept = [pair for pair in whole if not any(_is_too_long(line) for line in pair)]
    counts = {
        "with an empty line": len(pairs) - len(whole),
        f"with a line over {MAX_CHARACTERS:,} characters or {MAX_WORDS} words": len(whole) - len(kept),
    }
    return kept, " and ".join(f"{count:,} {what}" for what, count in counts.items() if count)


def _is_too_long(line: str) -> bool:
    return len(line) > MAX_CHARACTERS or len(line.split()) > MAX_WORDS


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file, or of one compressed with gzip, without their ends.

    Only a line feed (with or without a carriage return) ends a line: other characters that Python's `splitlines`
    would cut at occur inside the sentences of real corpora and would shift every pair after them.
    """
    with open_text(Path(path)) as stream:
        lines = [line for group in read_groups(stream, str(path)) for line in group]
    if not any(map(str.strip, lines)):
        raise InputError(f"{path} is empty; expected one sentence per line")
    return lines
