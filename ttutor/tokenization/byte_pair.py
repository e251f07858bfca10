"""Byte-pair encoding: begin with single bytes, and again and again join the commonest pair of neighbours."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from ttutor.tokenization.base import SPECIAL_TOKENS, Tokenizer, check_room, checked_texts
from ttutor.tokenization.merging import CutWords, Pair, merge_pair

BYTES = tuple(chr(byte) for byte in range(256))
"""The base alphabet. A byte is written as the character with the same number, so that tokens are strings."""

PIECES = re.compile(
    r"'(?:[sdmt]|ll|ve|re)"  # what follows an English apostrophe: it's, we'll
    r"| ?[^\W\d_]+"  # letters, with the one blank before them
    r"| ?\d+"  # digits
    r"| ?(?:[^\w\s]|_)+"  # other signs
    r"|\s+(?!\S)|\s+"  # blanks that are left over
)


def split_pieces(text: str) -> list[str]:
    """Cut a text into pieces over whose borders no token reaches; a blank belongs to the word after it.

    Radford et al. (2019), section 2.2, as their code does it.

    Differs from that code: numerals that are no decimal digits, such as "½", go with the letters, since Python's `re`
    knows no finer class.

    Example:
        >>> split_pieces("They'll pay  30 kr.")
        ['They', "'ll", ' pay', ' ', ' 30', ' kr', '.']
    """
    return PIECES.findall(text)


class BytePairTokenizer(Tokenizer):
    """Frequent strings are one token, rare ones several, and there is no text that could not be written.

    Sennrich, Haddow and Birch (2016), section 3.2, on bytes as in Radford et al. (2019), section 2.2. As every text is
    made of bytes, each comes back unchanged. A single token need not be: "é" may be cut into its two bytes.

    Differs from the first paper: it starts from characters and marks the end of each word; here the blank before a
    word is part of it, which makes the mark unnecessary.

    Args:
        merges: the pairs to join, in the order in which they were learned. Each part is a byte (the character with the
            byte's number) or made by an earlier merge.

    Example:
        >>> tokenizer = BytePairTokenizer.train(["low lower lowest", "new newer newest"], vocab_size=266)
        >>> tokenizer.merges
        (('w', 'e'), ('l', 'o'), ('n', 'e'), (' ', 'lo'), (' ', 'ne'), ('s', 't'))
        >>> tokenizer.tokens(tokenizer.encode("the lowest"))
        ['t', 'h', 'e', '▁lo', 'we', 'st']
        >>> tokenizer.decode(tokenizer.encode("naïve 北京"))
        'naïve 北京'
    """

    def __init__(self, merges: Iterable[Pair]) -> None:
        self.merges = tuple((left, right) for left, right in merges)
        known = set(BYTES)
        for left, right in self.merges:
            if not {left, right} <= known or left + right in known:
                raise ValueError(
                    f"a merge must make a new token of two that are known by then, but {(left, right)} does not; "
                    "give the merges in the order in which they were learned"
                )
            known.add(left + right)
        super().__init__([*BYTES, *(left + right for left, right in self.merges)])
        self._rank = {pair: rank for rank, pair in enumerate(self.merges)}

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "BytePairTokenizer":
        """Join the commonest pair until the vocabulary is full, or until every piece of the texts is one token.

        Among pairs equally common, the one whose first token is older wins, then the one whose second is (bytes in
        the order of their numbers, then merges in the order of learning).
        """
        check_room(vocab_size, len(BYTES), f"{len(BYTES)} bytes")
        pieces = Counter(piece for text in checked_texts(texts) for piece in split_pieces(text))
        words = CutWords({tuple(_as_bytes(piece)): times for piece, times in pieces.items()})
        age = {byte: number for number, byte in enumerate(BYTES)}
        merges: list[Pair] = []
        while words.pair_counts and len(SPECIAL_TOKENS) + len(age) < vocab_size:
            pair = min(words.pair_counts, key=lambda pair: (-words.pair_counts[pair], age[pair[0]], age[pair[1]]))
            words.merge(pair, "".join(pair))
            age["".join(pair)] = len(age)
            merges.append(pair)
        return cls(merges)

    def split(self, text: str) -> list[str]:
        """Cut a text into tokens: of each piece, join the pairs in the order in which they were learned.

        Raises:
            UnicodeEncodeError: the string holds half a surrogate pair, which is no character.
        """
        return [token for piece in split_pieces(text) for token in self._merge(list(_as_bytes(piece)))]

    def join(self, tokens: Iterable[str]) -> str:
        """Read the bytes as UTF-8; what is none, since a character was cut in two, becomes "�"."""
        return "".join(tokens).encode("latin-1").decode("utf-8", errors="replace")

    def show(self, token: str) -> str:
        r"""One token as text; bytes that are no whole character are written as ``\xc3``."""
        return token.encode("latin-1").decode("utf-8", errors="backslashreplace").replace(" ", "▁")

    def _merge(self, tokens: Sequence[str]) -> Sequence[str]:
        while len(tokens) > 1:
            first = min(pairwise(tokens), key=lambda pair: self._rank.get(pair, math.inf))
            if first not in self._rank:
                break
            tokens = merge_pair(tokens, first, "".join(first))
        return tokens


def _as_bytes(text: str) -> str:
    """The text's UTF-8 bytes, each written as the character with the same number."""
    return text.encode("utf-8").decode("latin-1")
