"""What byte-pair encoding and WordPiece do alike while they learn: join two neighbouring tokens wherever they meet."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

Pair = tuple[str, str]


def merge_pair(tokens: Sequence[str], pair: Pair, joined: str) -> list[str]:
    """Replace every occurrence of a pair of neighbours by one token, from left to right.

    Example:
        >>> merge_pair(["b", "a", "a", "a"], ("a", "a"), "aa")
        ['b', 'aa', 'a']
    """
    merged: list[str] = []
    place = 0
    while place < len(tokens):
        found = tuple(tokens[place : place + 2]) == pair
        merged.append(joined if found else tokens[place])
        place += 2 if found else 1
    return merged


class CutWords:
    """The words of a corpus, each cut into tokens, and how often every token and every pair of neighbours occurs.

    A merge changes few words, so only their counts are taken again.

    Args:
        counts: the words, cut into their smallest tokens, and how often each occurs.

    Attributes:
        token_counts: how often each token occurs now.
        pair_counts: how often each pair of neighbours occurs now; those that no longer occur are not listed.

    Example:
        >>> words = CutWords({("h", "u", "g"): 3, ("p", "u", "g"): 2})
        >>> words.merge(("u", "g"), "ug")
        >>> dict(words.pair_counts)
        {('h', 'ug'): 3, ('p', 'ug'): 2}
    """

    def __init__(self, counts: Mapping[tuple[str, ...], int]) -> None:
        self.words = [list(word) for word in counts]
        self.times = list(counts.values())
        self.token_counts: Counter[str] = Counter()
        self.pair_counts: Counter[Pair] = Counter()
        self._words_with: defaultdict[Pair, set[int]] = defaultdict(set)
        for index in range(len(self.words)):
            self._count(index, self.times[index])

    def merge(self, pair: Pair, joined: str) -> None:
        """Join a pair in all words."""
        for index in self._words_with.pop(pair):
            self._count(index, -self.times[index])
            self.words[index] = merge_pair(self.words[index], pair, joined)
            self._count(index, self.times[index])

    def _count(self, index: int, times: int) -> None:
        """Add the tokens and pairs of one word to the counts, so many times; negative to take them away."""
        for token in self.words[index]:
            self.token_counts[token] += times
        for pair in pairwise(self.words[index]):
            self.pair_counts[pair] += times
            if self.pair_counts[pair] == 0:
                del self.pair_counts[pair]
            self._words_with[pair].add(index)
