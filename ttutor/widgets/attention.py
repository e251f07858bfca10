"""One word looks up: its query against every key, the shares that follow, the blend of the values; and all words at
once, a row of weights for each query."""

import warnings
from typing import Any

import numpy as np
import torch
import traitlets as t
from einops import einsum

from ttutor.attention import attention_weights
from ttutor.masks import causal_mask
from ttutor.widgets.base import Explorer, number_array, rounded_array, table_html, token_list, within

STEPS = ("project", "scores", "scale", "softmax", "blend", "all")
MAX_TOKENS = 48
MAX_LOOKING = 8
MAX_D_HEAD = 8
LARGEST = 10.0
_FALLBACK_TOKENS = 16
_DECIMALS = 3
_FEATURES = ["person", "thing"]
_SENTENCE = {  # query, key and value by hand: how much of a person and of a thing each asks for, is, and gives
    "the": ([0.3, 0.3], [-0.5, -1.0], [0.1, -0.2]),
    "girl": ([-0.6, 1.2], [2.1, 0.2], [2.0, 0.2]),
    "read": ([1.6, 1.2], [0.9, 0.1], [0.5, 0.6]),
    "a": ([0.2, 0.9], [0.5, -1.1], [-0.2, 0.1]),
    "book": ([1.3, -0.3], [-0.4, 2.0], [0.2, 2.0]),
    "and": ([0.5, -0.4], [-1.1, -0.5], [-0.4, -0.1]),
    "liked": ([1.8, 1.0], [-0.8, 0.5], [-0.5, 0.5]),
    "it": ([0.5, 2.1], [-1.3, 0.2], [-0.6, 0.3]),
}
_BY_HAND = "Vectors made by hand: how much of a person, and of a thing, each word asks for, is and gives."


class AttentionExplorer(Explorer):
    """Where words look. With scores: all words at once, one row a query, one column a key, a disc's area for weight.

    With vectors one word looks up, step by step: its query against every key, the scale, the softmax, the blend of the
    values; all words at once are the last view. Of two features each arrow is drawn as it is, and the query can be
    pulled; of more, keys are drawn at their length and at their angle from the query. `by_hand` is a sentence whose
    vectors can be read. In Jupyter the traits follow what the reader does, and setting one from Python redraws the
    figure: ``temperature`` is what the scores are divided by, ``scaled`` whether also by the root of ``d_head``.

    Args:
        tokens: the queries' tokens.
        scores: ``queries keys``, the numbers that go into the softmax, before any mask (a tensor, an array or nested
            lists). When ``d_head`` is given they are raw products of queries and keys, and the figure can divide them
            by the square root of ``d_head`` or not. Rounded to three decimals. ``-inf`` is read as masked.
        key_tokens: the keys' tokens; the same as ``tokens`` when left out (self-attention).
        mask: ``queries keys``, bool, True = may attend.
        vectors: queries, keys and values, each ``tokens features``, in place of the scores: of up to 8 tokens and 8
            features, from -10 to 10, rounded to three decimals.
        d_head: the width of a head, when ``scores`` are raw products.
        causal: whether a query may attend only to keys up to its own position (the last query is at the last key).
        selected: the query that looks up; the last one when left out.
        asked: the key whose number is told; -1 for the one with the largest weight.
        step: the view to begin with, one of ``STEPS``: ``"all"`` of scores, ``"project"`` of vectors when left out.
        note: a line below the figure, such as where the numbers come from.

    More than 48 queries or keys are cut to the first 48, with a warning and a label: weights are then shared among the
    keys shown.

    >>> explorer = AttentionExplorer(["I", "sleep"], [[2.0, 0.0], [1.0, 1.0]], causal=True)
    >>> explorer
    AttentionExplorer(2 queries, 2 keys, temperature 1.0, causal)
    >>> explorer.weights.round(2).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    >>> explorer = AttentionExplorer.by_hand()
    >>> explorer
    AttentionExplorer(8 tokens, "it" looks up, d_head 2)
    >>> explorer.weights[7].round(2).tolist()
    [0.01, 0.12, 0.07, 0.01, 0.69, 0.01, 0.06, 0.03]
    """

    _module = "attention"
    _title = "One word looks up"

    tokens = t.List(t.Unicode()).tag(sync=True)
    key_tokens = t.List(t.Unicode()).tag(sync=True)
    scores = t.List(t.List(t.Float())).tag(sync=True)
    mask = t.List(t.List(t.Bool())).tag(sync=True)
    query = t.List(t.List(t.Float()), read_only=True).tag(sync=True)
    key = t.List(t.List(t.Float()), read_only=True).tag(sync=True)
    value = t.List(t.List(t.Float()), read_only=True).tag(sync=True)
    features = t.List(t.Unicode(), read_only=True).tag(sync=True)
    temperature = t.Float(1.0, min=0.001).tag(sync=True)
    scaled = t.Bool(True).tag(sync=True)
    d_head = t.Int(None, min=1, allow_none=True).tag(sync=True)
    causal = t.Bool(False).tag(sync=True)
    selected = t.Int(0).tag(sync=True)
    asked = t.Int(-1).tag(sync=True)
    pulled: t.List[Any] = t.List().tag(sync=True)
    step = t.Enum(STEPS, "all").tag(sync=True)
    note = t.Unicode("").tag(sync=True)
    total = t.List(t.Int()).tag(sync=True)

    def __init__(
        self,
        tokens: Any,
        scores: Any = None,
        key_tokens: Any = None,
        mask: Any = None,
        *,
        vectors: Any = None,
        d_head: int | None = None,
        causal: bool = False,
        selected: int | None = None,
        asked: int = -1,
        step: str | None = None,
        note: str = "",
    ) -> None:
        queries = token_list("tokens", tokens)
        keys = queries if key_tokens is None else token_list("key_tokens", key_tokens)
        table: list = []
        if vectors is not None:
            if scores is not None or key_tokens is not None or d_head is not None:
                raise TypeError("with vectors the scores are their products: leave out scores, key_tokens and d_head")
            for name, rows in zip(("query", "key", "value"), _read_vectors(queries, vectors), strict=True):
                self.set_trait(name, rows)
            d_head, scores = len(self.query[0]), np.zeros((len(queries), len(queries)))
        elif scores is None:
            raise TypeError("give scores (queries keys) or vectors=(query, key, value)")
        allowed, finite = _read_mask(mask, scores, (len(queries), len(keys)))
        if vectors is None:
            table = rounded_array("scores", finite, (len(queries), len(keys)), _DECIMALS, axes="queries, keys")
        if max(len(queries), len(keys)) > MAX_TOKENS:
            warnings.warn(
                f"{len(queries)} queries and {len(keys)} keys are more than fit a screen; showing the first "
                f"{MAX_TOKENS} of each, with the weights shared among the keys shown",
                stacklevel=2,
            )
        shown = queries[:MAX_TOKENS]
        super().__init__(
            tokens=shown,
            key_tokens=keys[:MAX_TOKENS],
            scores=[row[:MAX_TOKENS] for row in table[:MAX_TOKENS]],
            mask=[] if allowed is None else allowed[:MAX_TOKENS, :MAX_TOKENS].tolist(),
            d_head=d_head,
            causal=causal,
            note=note,
            total=[len(queries), len(keys)],
        )
        self.selected, self.asked = len(shown) - 1 if selected is None else selected, asked
        self.step = step or ("project" if self.query else "all")

    @classmethod
    def by_hand(cls, **options: Any) -> "AttentionExplorer":
        """*The girl read a book and liked it*, with vectors of two features made by hand; options as for the class."""
        explorer = cls(list(_SENTENCE), vectors=tuple(zip(*_SENTENCE.values(), strict=True)), **options)
        explorer.set_trait("features", _FEATURES)
        explorer.note = explorer.note or _BY_HAND
        return explorer

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
        products = torch.from_numpy(self._products())
        keys = torch.eye(products.shape[1], dtype=torch.float64)
        # With the identity as keys, the product of query and key is the score itself.
        return attention_weights(products, keys, self._allowed(), scale=self._scale()).numpy()

    def trace(self) -> dict[str, np.ndarray]:
        """Of vectors: Q, K, V, the products QK, the scores S, the weights A and the outputs AV."""
        if not self.query:
            raise ValueError("there are scores alone, so no steps to trace; give vectors=(query, key, value)")
        products, weights = self._products(), self.weights
        made = {"Q": self._queries(), "K": np.array(self.key), "V": np.array(self.value)}
        return {**made, "QK": products, "S": products * self._scale(), "A": weights, "AV": weights @ made["V"]}

    def describe(self) -> str:
        if self.step != "all":
            return f'{len(self.tokens)} tokens, "{self.tokens[self.selected]}" looks up, d_head {self.d_head}'
        parts = [f"{len(self.tokens)} queries", f"{len(self.key_tokens)} keys", f"temperature {self.temperature}"]
        return ", ".join(parts + (["causal"] if self.causal else []))

    def fallback_html(self) -> str:
        """The weights of all words; of vectors, before them the steps of the word that looks up."""
        return (self._steps_table() if self.query else "") + self._map_table()

    def _steps_table(self) -> str:
        """For the word that looks up: each key's product, score and weight; and the output."""
        made, i = self.trace(), self.selected
        columns = zip(self.tokens, made["QK"][i], made["S"][i], made["A"][i], strict=True)
        rows = [[token, *(_written(number) for number in numbers)] for token, *numbers in columns]
        output = ", ".join(map(_written, made["AV"][i]))
        caption = f"“{self.tokens[i]}” looks up. The values, blended by the weights, give ({output}). {self.note}"
        return table_html(caption, ["key of", "query · key", "score", "weight (softmax)"], rows)

    def _map_table(self) -> str:
        """The weights as a table; of many tokens, the first ones."""
        n = _FALLBACK_TOKENS
        allowed, weights = self._allowed().numpy()[:n, :n], self.weights[:n, :n]
        rows = [
            [token, *(f"{weight:.2f}" if may else "–" for weight, may in zip(line, open_, strict=True))]
            for token, line, open_ in zip(self.tokens[:n], weights, allowed, strict=True)
        ]
        return table_html(self._caption(), ["", *self.key_tokens[:n]], rows)

    def _caption(self) -> str:
        """What the table of all words shows, and what it leaves out."""
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

    def _queries(self) -> np.ndarray:
        """The queries, with the pulled one in its place."""
        query = np.array(self.query)
        if self.pulled:
            query[self.selected] = self.pulled
        return query

    def _products(self) -> np.ndarray:
        """What goes into the softmax, before scale and temperature."""
        if not self.query:
            return np.array(self.scores)
        return einsum(self._queries(), np.array(self.key), "queries d_head, keys d_head -> queries keys")

    def _scale(self) -> float:
        """What products become scores by."""
        return (self.d_head**-0.5 if self.d_head and self.scaled else 1.0) / self.temperature

    def _allowed(self) -> torch.Tensor:
        """The given mask and the causal one together, ``queries keys``, True = may attend."""
        shape = (len(self.tokens), len(self.key_tokens))
        given = torch.tensor(self.mask, dtype=torch.bool) if self.mask else torch.ones(shape, dtype=torch.bool)
        return given & causal_mask(*shape) if self.causal else given

    @t.validate("scores")
    def _check_scores(self, proposal: dict) -> list[list[float]]:
        if self.query:
            if proposal["value"]:
                raise ValueError("with vectors the scores are their products, and cannot be set")
            return []
        shape = (len(self.tokens), len(self.key_tokens))
        return rounded_array("scores", proposal["value"], shape, _DECIMALS, axes="queries, keys")

    @t.validate("selected", "asked")
    def _check_place(self, proposal: dict) -> int:
        name = proposal["trait"].name
        lowest, tokens = (-1, self.key_tokens) if name == "asked" else (0, self.tokens)
        return within(name, proposal["value"], lowest, len(tokens) - 1, "it counts tokens")

    @t.validate("pulled")
    def _check_pulled(self, proposal: dict) -> list:
        value = proposal["value"]
        if value and not self.query:
            raise ValueError("only a query of vectors can be pulled; here are scores alone")
        return value and rounded_array("pulled", value, (self.d_head,), _DECIMALS, axes="d_head")

    @t.validate("step")
    def _check_step(self, proposal: dict) -> str:
        if proposal["value"] != "all" and not self.query:
            raise ValueError(f"step {proposal['value']!r} needs vectors; of scores alone there is the view 'all'")
        return proposal["value"]


def _read_vectors(tokens: list[str], vectors: Any) -> list[list]:
    """Queries, keys and values, rounded, of a size and a range that the figure can show."""
    within("the number of tokens", len(tokens), 1, MAX_LOOKING)
    if len(vectors) != 3:
        raise ValueError(f"vectors has {len(vectors)} parts, expected 3: queries, keys and values")
    read: list[list] = []
    for name, given in zip(("query", "key", "value"), vectors, strict=True):
        n_features = len(read[0][0]) if name == "key" else None
        table = rounded_array(name, given, (len(tokens), n_features), _DECIMALS, axes="tokens, features")
        within(f"the number of features of {name}", len(table[0]), 1, MAX_D_HEAD)
        if (largest := np.abs(table).max()) > LARGEST:
            raise ValueError(f"{name} holds {largest:g}; it has to lie between -10 and 10: divide it")
        read.append(table)
    return read


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


def _written(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
