"""The attention map: which query attends to which key, and what temperature, scale and mask do to it."""

import warnings
from typing import Any

import numpy as np
import torch
import traitlets as t

from ttutor.attention import attention_weights
from ttutor.masks import causal_mask, padding_mask
from ttutor.widgets.base import Explorer, number_array, rounded_array, table_html, token_list

MAX_TOKENS = 48
_FALLBACK_TOKENS = 16
_DECIMALS = 3


class AttentionExplorer(Explorer):
    """A map of attention weights to explore: one row a query, one column a key, a disc's area for weight.

    Point at a cell for its weight, at a word for all that it attends to; change temperature, scale and mask. In
    Jupyter the traits follow what the reader does, and setting one from Python redraws the figure.

    Args:
        tokens: the queries' tokens.
        scores: ``queries keys``, the numbers that go into the softmax, before any mask (a tensor, an array or nested
            lists). When ``d_head`` is given they are raw products of queries and keys, and the figure can divide them
            by the square root of ``d_head`` or not. Rounded to three decimals. ``-inf`` is read as masked.
        key_tokens: the keys' tokens; the same as ``tokens`` when left out (self-attention).
        mask: ``queries keys``, bool, True = may attend.
        d_head: the width of a head, when ``scores`` are raw products.
        temperature: what the scores are divided by; below 1 sharpens, above 1 flattens.
        scaled: whether raw products are divided by the square root of ``d_head``.
        causal: whether a query may attend only to keys up to its own position (the last query is at the last key).
        padding: for each key whether it is padding (True = padding).
        padding_masked: whether padding may not be attended to; the figure has a switch for it where there is padding.
        selected: a query and a key, ``[row, column]``; with -1 for the key the row, and for the query the row that
            gives that key most.
        arrows: the queries and the keys behind the scores, if they have two features each; they are drawn as arrows.

    More than 48 queries or keys are cut to the first 48, with a warning and a label: weights are then shared among the
    keys shown.

    >>> explorer = AttentionExplorer(["I", "sleep"], [[2.0, 0.0], [1.0, 1.0]], causal=True)
    >>> explorer
    AttentionExplorer(2 queries, 2 keys, temperature 1.0, causal)
    >>> explorer.weights.round(2).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """

    _module = "attention"
    _title = "Attention map"

    tokens = t.List(t.Unicode()).tag(sync=True)
    key_tokens = t.List(t.Unicode()).tag(sync=True)
    scores = t.List(t.List(t.Float())).tag(sync=True)
    mask = t.List(t.List(t.Bool())).tag(sync=True)
    temperature = t.Float(1.0, min=0.001).tag(sync=True)
    scaled = t.Bool(True).tag(sync=True)
    d_head = t.Int(None, min=1, allow_none=True).tag(sync=True)
    causal = t.Bool(False).tag(sync=True)
    padding = t.List(t.Bool()).tag(sync=True)
    padding_masked = t.Bool(True).tag(sync=True)
    selected = t.List(t.Int()).tag(sync=True)
    total = t.List(t.Int()).tag(sync=True)
    arrows = t.List(t.List(t.List(t.Float()))).tag(sync=True)

    def __init__(
        self,
        tokens: Any,
        scores: Any,
        key_tokens: Any = None,
        mask: Any = None,
        *,
        d_head: int | None = None,
        temperature: float | int = 1.0,
        scaled: bool = True,
        causal: bool = False,
        padding: Any = (),
        padding_masked: bool = True,
        selected: Any = (),
        arrows: Any = (),
    ) -> None:
        queries = token_list("tokens", tokens)
        keys = queries if key_tokens is None else token_list("key_tokens", key_tokens)
        allowed, finite = _read_mask(mask, scores, (len(queries), len(keys)))
        table = rounded_array("scores", finite, (len(queries), len(keys)), _DECIMALS, axes="queries, keys")
        if max(len(queries), len(keys)) > MAX_TOKENS:
            warnings.warn(
                f"{len(queries)} queries and {len(keys)} keys are more than fit a screen; showing the first "
                f"{MAX_TOKENS} of each, with the weights shared among the keys shown",
                stacklevel=2,
            )
        super().__init__(
            tokens=queries[:MAX_TOKENS],
            key_tokens=keys[:MAX_TOKENS],
            scores=[row[:MAX_TOKENS] for row in table[:MAX_TOKENS]],
            mask=[] if allowed is None else allowed[:MAX_TOKENS, :MAX_TOKENS].tolist(),
            temperature=float(temperature),
            scaled=scaled,
            d_head=d_head,
            causal=causal,
            padding=np.asarray(padding, dtype=bool).tolist()[:MAX_TOKENS],
            padding_masked=padding_masked,
            selected=list(selected),
            total=[len(queries), len(keys)],
            arrows=[
                rounded_array(f"arrows[{i}]", given, (len((queries, keys)[i]), 2), _DECIMALS, axes="tokens features")
                for i, given in enumerate(arrows)
            ],
        )

    @classmethod
    def from_model(
        cls,
        model: Any,
        text: Any,
        tokenizer: Any = None,
        *,
        layer: int = -1,
        head: int = 0,
        part: str | None = None,
        target: Any = None,
        **options: Any,
    ) -> "AttentionExplorer":
        """One head of a model, ours or Hugging Face's, on a text of yours; at temperature 1 its very weights.

        The scores are the logarithms of the weights, which differ from the model's own by a constant for each query;
        where a weight is 0 the key is shown as masked.

        Args:
            model, text, tokenizer, part, target: as for `ttutor.widgets.from_model.recorded_attention`.
            layer, head: which of them, from the first (0, 1, ...) or from the last (-1, -2, ...).
            options: as for the class.
        """
        from ttutor.widgets.from_model import recorded_attention

        seen = recorded_attention(model, text, tokenizer, part=part, target=target)
        return cls(seen.tokens, seen.weights[layer, head].log(), seen.key_tokens, **options)

    @property
    def weights(self) -> np.ndarray:
        """The weights as the figure shows them now, ``queries keys`` in float64, by ``ttutor.attention``."""
        scores = torch.tensor(self.scores, dtype=torch.float64)
        n_queries, n_keys = scores.shape
        scale = (self.d_head**-0.5 if self.d_head and self.scaled else 1.0) / self.temperature
        # With the identity as keys, the product of query and key is the score itself.
        weights = attention_weights(scores, torch.eye(n_keys, dtype=torch.float64), self._allowed(), scale=scale)
        return weights.numpy()

    def describe(self) -> str:
        parts = [f"{len(self.tokens)} queries", f"{len(self.key_tokens)} keys", f"temperature {self.temperature}"]
        return ", ".join(parts + (["causal"] if self.causal else []))

    def fallback_html(self) -> str:
        """The weights as a table; of many tokens, the first ones."""
        n = _FALLBACK_TOKENS
        allowed, weights = self._allowed().numpy()[:n, :n], self.weights[:n, :n]
        rows = [
            [token, *(f"{weight:.2f}" if may else "–" for weight, may in zip(line, open_, strict=True))]
            for token, line, open_ in zip(self.tokens[:n], weights, allowed, strict=True)
        ]
        return table_html(self._caption(), ["", *self.key_tokens[:n]], rows)

    def _caption(self) -> str:
        """What the fallback table shows, and what it leaves out."""
        parts = [f"Attention weights at temperature {self.temperature}: each row is a query, each column a key."]
        allowed = self._allowed()
        if not allowed.all():
            parts.append("– means masked.")
        if not allowed.any(dim=-1).all():
            parts.append("A row of – alone may attend to nothing: its weights are all 0.")
        if max(self.total) > _FALLBACK_TOKENS:
            queries, keys = (min(count, _FALLBACK_TOKENS) for count in self.total)
            parts.append(f"The first {queries} of {self.total[0]} queries and {keys} of {self.total[1]} keys.")
        return " ".join(parts)

    def _allowed(self) -> torch.Tensor:
        """The given mask, the padding's and the causal one together, ``queries keys``, True = may attend."""
        shape = (len(self.tokens), len(self.key_tokens))
        given = torch.tensor(self.mask, dtype=torch.bool) if self.mask else torch.ones(shape, dtype=torch.bool)
        if self.padding and self.padding_masked:
            given = given & padding_mask(torch.tensor([self.padding], dtype=torch.long), pad_id=1)[0, 0]
        return given & causal_mask(*shape) if self.causal else given

    @t.validate("padding")
    def _check_padding(self, proposal: dict) -> list[bool]:
        padding, n_keys = proposal["value"], len(self.key_tokens)
        if padding and len(padding) != n_keys:
            raise ValueError(f"padding has {len(padding)} entries for {n_keys} keys; give a bool for each key")
        return padding if any(padding) else []

    @t.validate("scores")
    def _check_scores(self, proposal: dict) -> list[list[float]]:
        shape = (len(self.tokens), len(self.key_tokens))
        return rounded_array("scores", proposal["value"], shape, _DECIMALS, axes="queries, keys")


def _read_mask(mask: Any, scores: Any, shape: tuple[int, int]) -> tuple[np.ndarray | None, np.ndarray]:
    """The mask as an array (None when it forbids nothing), and the scores with minus infinities moved into it."""
    values = number_array("scores", scores)
    hidden = np.isneginf(values)
    allowed = np.ones(shape, dtype=bool) if mask is None else np.asarray(mask)
    if allowed.dtype != bool:
        raise TypeError(f"mask holds {allowed.dtype}, expected bool with True = may attend; write mask=(values > 0)")
    if allowed.shape != shape:
        raise ValueError(f"mask has shape {allowed.shape}, expected {shape} (queries, keys)")
    if hidden.shape == shape:
        allowed = allowed & ~hidden
    return (None if allowed.all() else allowed), np.where(hidden, 0.0, values)
