"""Sequential or parallel: how many steps have to wait for one another in a recurrent net and in a Transformer."""

import html
import warnings
from collections.abc import Iterable
from typing import Any

import traitlets as t

from ttutor.widgets.base import Explorer, token_list
from ttutor.widgets.lanes import Lane, measure

LONGEST = 64
_BOUNDS = {"n_tokens": (2, LONGEST), "n_layers": (1, 6), "d_model": (1, 4096), "tick": (0, 6 * LONGEST)}
_SHOWN_IN_FALLBACK = 10
ROWS = [
    ["Ticks in all", "T+L+-1", "L", "T·L", "T·L"],
    ["At work in the busiest tick", "min(T, L)", "T", "1", "1"],
    ["Hops from first to last token", "T+-1", "1", "T+-1", "1"],
    ["Multiply-adds between tokens", "T·L·d·d", "2·T·T·L·d", "T·L·d·d", "T·T·L·d+T·L·d"],
    [
        "Multiply-adds in all, feed-forward included",
        *("2·T·L·d·d", "12·T·L·d·d+2·T·T·L·d", "2·T·L·d·d", "12·T·L·d·d+T·T·L·d+T·L·d"),
    ],
    ["Numbers kept for the next token", "", "", "L·d", "2·T·L·d"],
]
"""What each lane costs at any size: RNN and Transformer in training, then generating. Tests hold it to `measure`."""


class SequentialExplorer(Explorer):
    """An RNN and a Transformer read, or write, the same sentence side by side, one dependent step a tick.

    Play or step; change length, depth and width; switch between training, where all tokens are known, and generating,
    where each has to be written before the next. Below stands what it costs. In Jupyter the traits follow the reader.

    Args:
        tokens: the sentence; longer ones than 64 tokens are cut, with a warning.
        n_layers: layers of either, 1 to 6.
        d_model: width of either, 1 to 4096.
        n_tokens: how long the sentence is made, 2 to 64: repeated or cut; as it is when left out.
        generating: whether the tokens are being written rather than known.
        tick: how many steps have been made.

    Raises:
        TypeError: tokens are not a list of text.
        ValueError: there are no tokens, or a size is out of range.

    >>> explorer = SequentialExplorer("the cat sat on the mat".split(), n_layers=2)
    >>> explorer
    SequentialExplorer(6 tokens, 2 layers, training)
    >>> {name: lane.n_ticks for name, lane in explorer.measured().items()}
    {'rnn': 7, 'transformer': 2}
    """

    _module = "sequential"
    _title = "Sequential or parallel"
    _state_keys = ("tokens", "n_tokens", "n_layers", "d_model", "generating", "tick", "rows", "total")

    tokens = t.List(t.Unicode()).tag(sync=True)
    n_tokens = t.Int(2).tag(sync=True)
    n_layers = t.Int(2).tag(sync=True)
    d_model = t.Int(16).tag(sync=True)
    generating = t.Bool(False).tag(sync=True)
    tick = t.Int(0).tag(sync=True)
    rows = t.List(t.List(t.Unicode()), ROWS, read_only=True).tag(sync=True)
    total = t.Int(0, read_only=True).tag(sync=True)

    def __init__(
        self,
        tokens: Any,
        *,
        n_layers: int = 2,
        d_model: int = 16,
        n_tokens: int | None = None,
        generating: bool = False,
        tick: int = 0,
    ) -> None:
        words = token_list("tokens", tokens)
        if len(words) > LONGEST:
            warnings.warn(f"{len(words)} tokens do not fit a screen; showing the first {LONGEST}", stacklevel=2)
        length = min(max(len(words), 2), LONGEST) if n_tokens is None else n_tokens
        super().__init__(
            tokens=words[:LONGEST],
            n_tokens=length,
            n_layers=n_layers,
            d_model=d_model,
            generating=generating,
            tick=tick,
        )
        self.set_trait("total", len(words))

    def measured(self, generating: bool | None = None) -> dict[str, Lane]:
        """What the two did with a sentence of this length: ``rnn`` and ``transformer``, now or in the named mode."""
        mode = self.generating if generating is None else generating
        return measure(self.n_tokens, self.n_layers, self.d_model, mode)

    def describe(self) -> str:
        """The sizes and the mode."""
        layers = f"{self.n_layers} layer{'s' if self.n_layers > 1 else ''}"
        return f"{self.n_tokens} tokens, {layers}, {'generating' if self.generating else 'training'}"

    def fallback_html(self) -> str:
        """What was measured in training and in generating, and the tick of each token (the first ones of many)."""
        lanes = [self.measured(mode)[name] for mode in (False, True) for name in ("rnn", "transformer")]
        names = [row[0] for row in ROWS]
        facts = [
            [lane.n_ticks, lane.at_once, lane.hops, lane.between_tokens, lane.multiply_adds, lane.kept or "–"]
            for lane in lanes
        ]
        rows = list(zip(names, zip(*facts, strict=True), strict=True))
        caption = f"An RNN and a Transformer: {self.n_tokens} tokens, {self.n_layers} layers of width {self.d_model}."
        heads = ["", "RNN, training", "Transformer, training", "RNN, generating", "Transformer, generating"]
        return _table(caption, heads, rows) + self._schedule()

    def _schedule(self) -> str:
        """The tick of every cell, upper layers first."""
        n = min(self.n_tokens, _SHOWN_IN_FALLBACK)
        rows = [
            (f"{title}, layer {layer + 1}", self.measured()[name].ticks[layer, :n].tolist())
            for name, title in (("rnn", "RNN"), ("transformer", "Transformer"))
            for layer in reversed(range(self.n_layers))
        ]
        cut = f" The first {n} of {self.n_tokens} tokens." if n < self.n_tokens else ""
        words = [self.tokens[i % len(self.tokens)] for i in range(n)]
        mode = "generating" if self.generating else "training"
        return _table(f"The tick in which each token is worked out, {mode}.{cut}", ["", *words], rows)

    @t.validate("tokens")
    def _check_tokens(self, proposal: dict) -> list[str]:
        if len(proposal["value"]) > LONGEST:
            raise ValueError(
                f"tokens has {len(proposal['value'])} entries, expected at most {LONGEST}; cut the sentence"
            )
        return token_list("tokens", proposal["value"])

    @t.validate("n_tokens", "n_layers", "d_model", "tick")
    def _check_size(self, proposal: dict) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        low, high = _BOUNDS[name]
        if not low <= value <= high:
            raise ValueError(f"{name} has to be a whole number from {low} to {high}, not {value}")
        return value


def _table(caption: str, heads: list[str], rows: list[tuple[str, Iterable]]) -> str:
    """Rows of a name and numbers."""
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' if text else "<td></td>" for text in heads)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{number}</td>" for number in numbers)}</tr>'
        for name, numbers in rows
    )
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
