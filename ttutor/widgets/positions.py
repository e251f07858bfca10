"""How order is told: the sinusoidal waves, a rotary pair that turns, and ALiBi's words that fade with distance."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import traitlets as t
from einops import rearrange

from ttutor.attention import attention_weights
from ttutor.positions import AlibiPositions, RotaryPositions, alibi_slopes, rotary_frequencies, sinusoidal_encoding
from ttutor.widgets.base import Explorer, rounded_array, table_html, token_list, within

N_POSITIONS = D_MODEL = 64
HANDS = (0, 4, 8, 12, 16, 20, 24, 31)
"""The pairs of features that are drawn as the hands of clocks."""
TOLERANCE = 0.3
"""Hands look alike when their tips are closer than this."""
D_ROTARY = 8
"""The head whose first three pairs the rotary figure offers: they turn by 1, 0.1 and 0.01 radians a position."""
_WORDS = "the keeper lit the lamp because it was dark".split()
_STORY = (
    "at dawn the old keeper of the small lighthouse climbed the ninety steps with a can of oil and a clean cloth "
    "because the ship that his daughter sailed on was due before night and the wind that came from the north had "
    "begun to carry snow"
).split()


class WavesExplorer(Explorer):
    """The waves of up to 64 positions, 64 features wide: tap clocks until they leave one place, point at a cell to
    read it, or drag the line down the picture.

    Args:
        position: where the line is, from 0 to 63; between two positions, too.
        reads: the pairs of features whose clocks are read together, of 0, 4, 8, 12, 16, 20, 24 and 31.
        feature: the column whose cell is read, from 0 to 63; that of the first clock that is read when left out.
        shown: how many positions are shown, from 8 to 64.

    >>> explorer = WavesExplorer(position=10)
    >>> explorer
    WavesExplorer(position 10, reads [0])
    >>> explorer.candidates
    [4, 10, 16, 29, 35, 48, 54, 60]
    >>> explorer.reads = [0, 4]
    >>> explorer.candidates
    [10, 29]
    """

    _module = "waves"
    _title = "Waves"

    position = t.Float(10.0, min=0, max=N_POSITIONS - 1).tag(sync=True)
    feature = t.Int(0, min=0, max=D_MODEL - 1).tag(sync=True)
    reads = t.List(t.Int(), [0]).tag(sync=True)
    shown = t.Int(N_POSITIONS, min=8, max=N_POSITIONS).tag(sync=True)

    def __init__(
        self,
        position: float | int = 10,
        reads: Sequence[int] = (0,),
        *,
        feature: int | None = None,
        shown: int = N_POSITIONS,
    ) -> None:
        read = self._of_hands(reads)
        column = 2 * [*read, 0][0] if feature is None else feature
        super().__init__(position=float(position), reads=read, feature=column, shown=shown)

    @property
    def value(self) -> float:
        """What stands in the cell that is read."""
        return float(sinusoidal_encoding(N_POSITIONS, D_MODEL)[round(self.position), self.feature])

    @property
    def wavelength(self) -> float:
        """How many positions the wave of the feature takes for one round."""
        return 2 * math.pi / rotary_frequencies(D_MODEL)[self.feature // 2].item()

    @property
    def candidates(self) -> list[int]:
        """The positions where all clocks that are read look as they do at ``position``."""
        return self.look_alike(self.reads)

    def look_alike(self, reads: Sequence[int]) -> list[int]:
        """The same for other clocks."""
        encoding = sinusoidal_encoding(self.shown, D_MODEL).double()
        hands = rearrange(encoding, "positions (pairs two) -> positions pairs two", two=2)[:, list(reads)]
        apart = (hands - hands[round(self.position)]).norm(dim=-1)
        return (apart < TOLERANCE).all(dim=-1).nonzero().flatten().tolist()

    @staticmethod
    def _of_hands(reads: Sequence[int]) -> list[int]:
        listed = list(reads)
        if len(set(listed)) < len(listed) or not set(listed) <= set(HANDS):
            raise ValueError(f"reads must list different pairs of {', '.join(map(str, HANDS))}, but is {reads!r}")
        return listed

    @t.validate("reads")
    def _check_reads(self, proposal: dict) -> list[int]:
        return self._of_hands(proposal["value"])

    @t.validate("position", "shown")
    def _check_shown(self, proposal: dict) -> float | int:
        place, shown = self.position, self.shown
        if place > shown - 1:
            raise t.TraitError(f"position must be one of the {shown} that are shown, from 0 on, but is {place:g}")
        return proposal["value"]

    def describe(self) -> str:
        return f"position {self.position:g}, reads {self.reads}"

    def fallback_html(self) -> str:
        """Which positions look alike, with one clock more in each row."""
        rows = [[", ".join(map(str, HANDS[:n])), ", ".join(map(str, self.look_alike(HANDS[:n])))] for n in range(1, 5)]
        caption = (
            f"Each pair of features is the hand of a clock. Which of {self.shown} positions look like position "
            f"{round(self.position)}? (Feature {self.feature} there: {self.value:.3f}, {self.wavelength:.1f} a round.)"
        )
        return table_html(caption, ["pairs read", "positions that look alike"], rows)


class RotaryExplorer(Explorer):
    """A query and a key that turn with their positions in a sentence: move both, and their score stays.

    Args:
        tokens: the sentence, 2 to 16 tokens.
        query_position: the index of the token whose query it is.
        key_position: the index of the token whose key it is.

    ``query`` and ``key`` hold two features each, before they are turned; ``pair`` is 0, 1 or 2, for one that turns by
    1, 0.1 or 0.01 radians a position.

    >>> explorer = RotaryExplorer(query_position=8, key_position=5)
    >>> explorer
    RotaryExplorer(query at 8, key at 5, pair 0)
    >>> round(explorer.score, 3), round(explorer.score_at(9, 6), 3), round(explorer.score_at(9, 5), 3)
    (-0.909, -0.909, 0.046)
    """

    _module = "rotary"
    _title = "Rotary positions"

    tokens = t.List(t.Unicode(), read_only=True).tag(sync=True)
    query_position = t.Int(0).tag(sync=True)
    key_position = t.Int(0).tag(sync=True)
    pair = t.Int(0, min=0, max=2).tag(sync=True)
    query = t.List(t.Float(), [1.2, 0.5]).tag(sync=True)
    key = t.List(t.Float(), [0.8, -0.3]).tag(sync=True)

    def __init__(self, tokens: Any = None, *, query_position: int = 5, key_position: int = 2) -> None:
        listed = _WORDS if tokens is None else token_list("tokens", tokens)
        within("the number of tokens", len(listed), 2, 16)
        self.set_trait("tokens", listed)
        super().__init__(query_position=query_position, key_position=key_position)

    @property
    def score(self) -> float:
        """The product of the turned query and the turned key."""
        return self.score_at(self.query_position, self.key_position)

    def score_at(self, query_position: int, key_position: int) -> float:
        """The same at other positions."""
        rotary = RotaryPositions(2, frequencies=rotary_frequencies(D_ROTARY)[[self.pair]])
        query, key = (
            rotary(torch.tensor([[place]]))(rearrange(torch.tensor(vector, dtype=torch.float64), "pair -> 1 1 1 pair"))
            for place, vector in ((query_position, self.query), (key_position, self.key))
        )
        return float((query * key).sum())

    def describe(self) -> str:
        return f"query at {self.query_position}, key at {self.key_position}, pair {self.pair}"

    def fallback_html(self) -> str:
        """The score where they are, moved together, and moved apart."""
        query, key = self.query_position, self.key_position
        moves = [(0, 0), (1, 1), (10, 10), (1, 0)]
        places = [(query + of_query, key + of_key) for of_query, of_key in moves]
        rows = [[str(p), str(other), str(other - p), f"{self.score_at(p, other):.3f}"] for p, other in places]
        turn = rotary_frequencies(D_ROTARY)[self.pair].item()
        caption = (
            f"Rotary positions: query {self.query} and key {self.key} turn by {turn:g} rad a position. The score stays "
            "while both move together."
        )
        return table_html(caption, ["query position p", "key position p′", "offset p′ − p", "score"], rows)

    @t.validate("query_position", "key_position")
    def _check_place(self, proposal: dict) -> int:
        return within(proposal["trait"].name, proposal["value"], 0, len(self.tokens) - 1)

    @t.validate("query", "key")
    def _check_vector(self, proposal: dict) -> list[float]:
        return rounded_array(proposal["trait"].name, proposal["value"], (2,), 3, axes="features")


class AlibiExplorer(Explorer):
    """A text as each of eight ALiBi heads hears it from its last word: the farther back, the fainter.

    Args:
        tokens: the text, 2 to 64 tokens.
        head: which of the eight heads, from 1 to 8.

    >>> explorer = AlibiExplorer(head=3)
    >>> explorer
    AlibiExplorer(47 tokens, head 3)
    >>> float(explorer.slope)
    0.125
    """

    _module = "alibi"
    _title = "ALiBi"

    tokens = t.List(t.Unicode(), read_only=True).tag(sync=True)
    slopes = t.List(t.Float(), read_only=True).tag(sync=True)
    head = t.Int(1, min=1, max=8).tag(sync=True)

    def __init__(self, tokens: Any = None, *, head: int = 1) -> None:
        listed = _STORY if tokens is None else token_list("tokens", tokens)
        within("the number of tokens", len(listed), 2, 64)
        self.set_trait("tokens", listed)
        self.set_trait("slopes", alibi_slopes(8).tolist())
        super().__init__(head=head)

    @property
    def slope(self) -> float:
        """What the head takes off a score for each position of distance."""
        return self.slopes[self.head - 1]

    @property
    def weights(self) -> np.ndarray:
        """The attention of the last token when all scores are equal but for the bias, one weight a token."""
        places = torch.arange(len(self.tokens))[None]
        bias = AlibiPositions(8)(places[:, -1:], places)[:, self.head - 1].double()
        equal = torch.zeros(1, len(self.tokens), 1, dtype=torch.float64)
        return attention_weights(equal[:, -1:], equal, bias=bias)[0, 0].numpy()

    def describe(self) -> str:
        return f"{len(self.tokens)} tokens, head {self.head}"

    def fallback_html(self) -> str:
        """Each head's slope, what it leaves of a word ten back, and how many words halve it."""
        rows = [
            [head, f"{slope:.4f}", f"{math.exp(-10 * slope):.3f}", f"{math.log(2) / slope:.1f}"]
            for head, slope in enumerate(self.slopes, start=1)
        ]
        heads = ["head", "slope", "left of a word 10 back", "words until half is left"]
        return table_html("ALiBi: each head takes its slope times the distance off a score.", heads, rows)
