"""Words, put together from subword tokens: what people link when they compare a translation with its source."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ttutor.tokenization import SPECIAL_TOKENS

MARKS = r"!-/:-@\[-`{-~¡-¿‐-⁞、-〿！-／"
"""What is not part of a word: punctuation and symbols; anything else but a blank is a letter here."""

LETTERS = rf"[^\s{MARKS}]+"
WORD = re.compile(
    r"(?:[cdjlmnst]|qu)['’](?=\w)"  # l'oiseau, qu'il: the little word with its apostrophe
    rf"|{LETTERS}(?:(?:['’-]|(?<=\d)[.,](?=\d)){LETTERS})*"  # man's, T-shirt, 1,000
    rf"|[{MARKS}]+",
    re.IGNORECASE,
)


class Word(NamedTuple):
    """A word, or a run of punctuation, and the places of its tokens: from `start` up to, but without, `end`."""

    text: str
    start: int
    end: int


def find_words(tokens: Sequence[str]) -> list[Word]:
    """Put tokens together to words; the marks of beginning and end belong to none.

    Args:
        tokens: as `SubwordTokenizer.pieces` writes them, a blank as "▁".

    >>> find_words(["▁l'", "oiseau", "▁dor", "t", ".", "<eos>"])[1:]
    [Word(text='oiseau', start=1, end=2), Word(text='dort', start=2, end=4), Word(text='.', start=4, end=5)]
    """
    shown = ["" if token in SPECIAL_TOKENS else token.replace("▁", " ") for token in tokens]
    text = "".join(shown)
    found = list(WORD.finditer(text))
    places: list[list[int]] = [[] for _ in found]
    offset = word = 0
    for place, piece in enumerate(shown):
        first = offset + len(text[offset:]) - len(text[offset:].lstrip())  # the first letter from here on
        while word < len(found) and found[word].end() <= first:
            word += 1
        if word < len(found) and tokens[place] not in SPECIAL_TOKENS:
            places[word].append(place)
        offset += len(piece)
    return [Word(one.group(), at[0], at[-1] + 1) for one, at in zip(found, places, strict=True) if at]
