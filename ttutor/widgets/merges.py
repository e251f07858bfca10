"""Type and merge: the reader's own words fall into letters, and byte-pair merges snap them together in order."""

from collections import Counter
from itertools import pairwise

import traitlets as t

from ttutor.tokenization import BytePairTokenizer
from ttutor.tokenization.base import SPECIAL_TOKENS
from ttutor.tokenization.byte_pair import split_pieces
from ttutor.widgets.base import Explorer, table_html, within

MAX_LETTERS = 48
N_MERGES = 120
TALE = (
    "The night was long and the light was low. The keeper lit the lower lamp, then the higher one, and the lighthouse "
    "was the brightest thing on the longest night of the winter. Nothing was lighter than the light, and nothing "
    "darker than the water. The ships were waiting for the light: the larger ships, the smaller ships, and the "
    "smallest boat of all. There is something in the waiting that makes the night longer. In the morning the keeper "
    "was walking, singing and thinking, and the lowest lamp was still burning."
)
"""What the merges are learned from when nothing else is given."""


class MergesExplorer(Explorer):
    """Type a text, and see byte-pair merges join its letters, in the order in which they were learned.

    Args:
        text: what is cut into tokens first, up to 48 letters; the reader types another.
        corpus: what the merges are learned from; a short tale about a lighthouse when left out.
        n_merges: how many merges are learned.
        step: how many of the merges that occur in the text are done.

    >>> explorer = MergesExplorer("the slowest light", step=99)
    >>> explorer
    MergesExplorer('the slowest light', 120 merges)
    >>> explorer.tokens
    ['th', 'e', '▁s', 'l', 'o', 'w', 'est', '▁light']
    """

    _module = "merges"
    _title = "Type and merge"

    text = t.Unicode("").tag(sync=True)
    merges = t.List(t.List(t.Unicode()), read_only=True).tag(sync=True)
    words = t.List(t.List(), read_only=True).tag(sync=True)
    step = t.Int(0, min=0).tag(sync=True)

    def __init__(
        self,
        text: str = "the keeper waits for the slowest lighthouse",
        *,
        corpus: str = TALE,
        n_merges: int = N_MERGES,
        step: int = 0,
    ) -> None:
        size = len(SPECIAL_TOKENS) + 256 + n_merges
        self.set_trait("merges", [list(pair) for pair in BytePairTokenizer.train([corpus], vocab_size=size).merges])
        self.set_trait("words", [list(counted) for counted in Counter(split_pieces(corpus)).items()])
        super().__init__(text=text, step=step)

    @property
    def occurring(self) -> list[int]:
        """The numbers of the merges that join something in this text, in their order."""
        cuts = [self._cut(n) for n in range(len(self.merges) + 1)]
        return [n for n in range(len(self.merges)) if cuts[n] != cuts[n + 1]]

    @property
    def tokens(self) -> list[str]:
        """The text as it is cut after ``step`` of the merges that occur in it."""
        done = self.occurring[: self.step]
        return self._cut(done[-1] + 1 if done else 0)

    @property
    def together(self) -> list[int]:
        """How often each two neighbours of ``tokens`` stand together in the corpus when the next merge is chosen.

        >>> explorer = MergesExplorer("the", corpus="the then the")
        >>> explorer.tokens, explorer.together
        (['t', 'h', 'e'], [3, 3])
        """
        done, occurring = min(self.step, len(self.occurring)), self.occurring
        n_merges = occurring[done] if done < len(occurring) else len(self.merges)
        counts: Counter[tuple[str, str]] = Counter()
        for word, times in self.words:
            for pair in pairwise(self._split(n_merges, word)):
                counts[pair] += times
        pieces = [self._split(n_merges, piece) for piece in split_pieces(self.text)]
        # The last token of a piece has no right neighbour: no token reaches over the end of a word.
        return [counts[pair] for piece in pieces for pair in pairwise([*piece, ""])][:-1]

    def _split(self, n_merges: int, text: str) -> list[str]:
        return BytePairTokenizer([(left, right) for left, right in self.merges[:n_merges]]).split(text)

    def _cut(self, n_merges: int) -> list[str]:
        tokenizer = BytePairTokenizer([(left, right) for left, right in self.merges[:n_merges]])
        return tokenizer.tokens(tokenizer.encode(self.text))

    def describe(self) -> str:
        return f"{self.text!r}, {len(self.merges)} merges"

    def fallback_html(self) -> str:
        """The text after each merge that occurs in it."""
        rows = [["letters", " ".join(self._cut(0))]]
        for number in self.occurring:
            left, right = (part.replace(" ", "▁") for part in self.merges[number])
            rows.append([f"{left} + {right}", " ".join(self._cut(number + 1))])
        return table_html(f"“{self.text}”, merge by merge", ["merge", "tokens"], rows)

    @t.validate("text")
    def _check_text(self, proposal: dict) -> str:
        within("the number of letters", len(proposal["value"]), 0, MAX_LETTERS)
        return proposal["value"]
