"""The causal mask: in writing, a token at a time, beside the same scores without a mask; in training, all at once."""

import warnings
from typing import Any

import numpy as np
import torch
import traitlets as t

from ttutor.attention import attention_weights
from ttutor.masks import causal_mask
from ttutor.widgets.base import Explorer, rounded_array, table_html, token_list, within

MAX_TOKENS = 12
_DECIMALS = 3
_SEED = 0


class CausalMaskExplorer(Explorer):
    """A "Generate" button adds a token at a time: the causal mask grows by a row and a column, and old rows stay.

    Beside it stand the weights without a mask, from the same scores, in which old rows change. The figure marks
    what changed: what does not change is what a decoder's cache can keep. The second view is a training: all rows at
    once, each with the token that it has to say, and the input shifted by one or not.

    Args:
        tokens: what will be generated, in order. An end mark at the end is taken off: it is written last, stops the
            generation and is never read, so it has no row. More than 12 are cut to the first 12, with a warning.
        scores: ``queries keys``, what goes into the softmax (a tensor, an array or nested lists); drawn at random from
            a fixed seed when left out. Rounded to three decimals.
        end_mark: what the end mark looks like.
        shown: how many tokens are there at first; one more than there are means that the end mark has come.
        view: ``"writing"`` or ``"training"``.
        position: which row of the training is looked at.

    >>> explorer = CausalMaskExplorer(["the", "cat", "sat"], shown=2)
    >>> explorer.changed_rows(causal=True), explorer.changed_rows(causal=False)
    ([], [0])
    >>> explorer.weights(causal=True)[0].tolist()
    [1.0, 0.0]
    >>> explorer.labels
    ['cat', 'sat', '<eos>']
    """

    _module = "causal_mask"
    _title = "Causal mask"

    tokens = t.List(t.Unicode()).tag(sync=True)
    scores = t.List(t.List(t.Float())).tag(sync=True)
    shown = t.Int(1).tag(sync=True)
    end_mark = t.Unicode("<eos>").tag(sync=True)
    total = t.Int(1).tag(sync=True)
    view = t.Enum(("writing", "training"), "writing").tag(sync=True)
    labels = t.List(t.Unicode(), help="what has to be said after each token").tag(sync=True)
    shifted = t.Bool(True).tag(sync=True)
    position = t.Int(0).tag(sync=True)

    def __init__(
        self,
        tokens: Any,
        scores: Any = None,
        *,
        end_mark: str = "<eos>",
        shown: int = 1,
        view: str = "writing",
        position: int = 0,
    ) -> None:
        listed = token_list("tokens", tokens)
        if listed[-1] == end_mark:
            listed = listed[:-1]
        if not listed:
            raise ValueError(f"tokens holds nothing but the end mark {end_mark!r}; there has to be a token before it")
        n_tokens, n_kept = len(listed), min(len(listed), MAX_TOKENS)
        if scores is None:
            scores = np.random.default_rng(_SEED).normal(size=(n_tokens, n_tokens)) * 1.5
        scores = rounded_array("scores", scores, (n_tokens, n_tokens), _DECIMALS, axes="queries, keys")
        if n_tokens > MAX_TOKENS:
            warnings.warn(f"{n_tokens} tokens are more than fit a screen; showing the first {MAX_TOKENS}", stacklevel=2)
        super().__init__(
            tokens=listed[:n_kept],
            scores=[row[:n_kept] for row in scores[:n_kept]],
            end_mark=end_mark,
            total=n_tokens,
            labels=[*listed, end_mark][1 : n_kept + 1],
            view=view,
        )
        self.shown, self.position = shown, position

    @property
    def decoder_input(self) -> list[str]:
        """What the decoder reads in training: the tokens or, without the shift, the very answers."""
        return self.tokens if self.shifted else self.labels

    def weights(self, *, causal: bool, n_tokens: int | None = None) -> np.ndarray:
        """The weights among the first tokens, ``queries keys`` in float64, by ``ttutor.attention``.

        Args:
            causal: with the causal mask, or without a mask.
            n_tokens: how many tokens there are; as many as are shown when left out.
        """
        n = min(self.shown, len(self.tokens)) if n_tokens is None else n_tokens
        scores = torch.tensor(self.scores, dtype=torch.float64)[:n, :n]
        mask = causal_mask(n) if causal else None
        # With the identity as keys, the product of query and key is the score itself.
        return attention_weights(scores, torch.eye(n, dtype=torch.float64), mask, scale=1.0).numpy()

    def changed_rows(self, *, causal: bool) -> list[int]:
        """The rows that were there before the newest token and are not what they were."""
        n = min(self.shown, len(self.tokens))
        if n < 2 or self.shown > n:
            return []
        before, after = (self.weights(causal=causal, n_tokens=count) for count in (n - 1, n))
        return [row for row in range(n - 1) if np.abs(before[row] - after[row, :-1]).max() > 1e-9]

    def describe(self) -> str:
        if self.view == "training":
            return f"training on {len(self.tokens)} tokens, {'shifted' if self.shifted else 'not shifted'}"
        return f"{min(self.shown, len(self.tokens))} of {len(self.tokens)} tokens"

    def fallback_html(self) -> str:
        """Both tables of all tokens."""
        n, parts = len(self.tokens), []
        cut = f" The first {n} of {self.total} tokens." if self.total > n else ""
        for causal, words in ((True, "Causal mask: – is masked, the future."), (False, "Without a mask.")):
            weights = self.weights(causal=causal, n_tokens=n)
            rows = [
                [token, *("–" if causal and key > query else f"{weights[query, key]:.2f}" for key in range(n))]
                for query, token in enumerate(self.tokens)
            ]
            caption = f"{words} Each row is a query, each column a key.{cut}"
            parts.append(table_html(caption, ["", *self.tokens], rows))
        shift = "one place before" if self.shifted else "the very answers"
        rows = [["reads", *self.decoder_input], ["has to say", *self.labels]]
        places = [str(place + 1) for place in range(n)]
        parts.append(table_html(f"In training the decoder reads {shift}, all rows at once.", ["row", *places], rows))
        return "".join(parts)

    @t.validate("position")
    def _check_position(self, proposal: dict) -> int:
        return within("position", proposal["value"], 0, len(self.tokens) - 1)

    @t.validate("shown")
    def _check_shown(self, proposal: dict) -> int:
        most = len(self.tokens) + (self.total == len(self.tokens))
        return within("shown", proposal["value"], 1, most, "the end mark counts as one")
