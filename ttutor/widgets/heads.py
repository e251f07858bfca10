"""Several heads side by side: where each of them looks, and how what they write adds up to the layer's output."""

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets as t

from ttutor import assets
from ttutor.widgets.base import Explorer, number_array, rounded_array, token_list
from ttutor.widgets.head_facts import (
    WriteParts,
    head_scores,
    keys_by_chance,
    label_of,
    write_parts,
    write_products,
)
from ttutor.widgets.head_input import MAX_HEADS, product_table, shares, vectors, what_fits


class HeadsExplorer(Explorer):
    """All heads of a layer side by side, one of them enlarged, and the sum of what they write to the stream.

    Each head is a small map, named after what it does by measure; the enlarged one is drawn as lines from queries
    (left) to keys (right), thick where the weight is. With ``writes`` the figure shows, for one query, how long the
    vector is that each head adds to the layer's output and how much of it points along the sum: these parts add up,
    lengths do not.

    Args:
        tokens: the queries' tokens.
        weights: attention weights after the softmax, ``layers heads queries keys`` or ``heads queries keys``.
        key_tokens: the keys' tokens; the same as ``tokens`` when left out (self-attention).
        writes: what each head adds to the layer's output, ``layers heads queries d_model`` (no layers if the weights
            have none), as `ttutor.inside.head_writes` gives it.
        rest: what the output has besides, the projection's bias: ``layers queries d_model``.
        products: instead of both, their inner products, as `write_products` gives them.
        layers: which layers to show, such as ``[0, -1]``; as many as the figure can hold when left out.
        caption: what it shows, in a few words.
        layer: the layer that is open first, by its place among those shown.
        head: the head that is enlarged first.
        query: the token whose writes are shown first.

    What is more than 24 tokens, 16 heads or a few thousand numbers is left out, with a warning and a label. Scores are
    measured on all tokens, and heads that are left out stay in the sum.

    Raises:
        TypeError: tokens are not text.
        ValueError: sizes do not fit together, weights are no shares, or a number is NaN.

    >>> HeadsExplorer(["I", "sleep"], [[[1, 0], [0.9, 0.1]], [[0.5, 0.5], [0.5, 0.5]]])
    HeadsExplorer(1 layer, 2 heads, 2 queries, 2 keys)
    """

    _module = "heads"
    _title = "Attention heads"
    _state_keys = (
        "tokens", "key_tokens", "weights", "products", "score_names", "scores", "labels", "layers", "note", "rest_name",
        "layer", "head", "query", "on",
    )  # fmt: skip

    tokens = t.List(t.Unicode()).tag(sync=True)
    key_tokens = t.List(t.Unicode()).tag(sync=True)
    weights = t.List().tag(sync=True)
    products = t.List().tag(sync=True)
    score_names = t.List(t.Unicode()).tag(sync=True)
    scores = t.List().tag(sync=True)
    labels = t.List().tag(sync=True)
    layers = t.List(t.Int()).tag(sync=True)
    note = t.Unicode().tag(sync=True)
    rest_name = t.Unicode("bias").tag(sync=True)
    layer = t.Int(0).tag(sync=True)
    head = t.Int(0).tag(sync=True)
    query = t.Int(0).tag(sync=True)
    on = t.List(t.Bool()).tag(sync=True)

    def __init__(
        self,
        tokens: Any,
        weights: Any,
        key_tokens: Any = None,
        writes: Any = None,
        rest: Any = None,
        *,
        products: Any = None,
        layers: Sequence[int] | None = None,
        caption: str = "",
        layer: int = 0,
        head: int = 0,
        query: int = 0,
    ) -> None:
        queries = token_list("tokens", tokens)
        keys = queries if key_tokens is None else token_list("key_tokens", key_tokens)
        given = shares(weights, len(queries), len(keys))
        n_heads = min(given.shape[1], MAX_HEADS)
        if products is None and writes is not None:
            products = write_products(*vectors(writes, rest, given.shape), n_heads)
        (n_queries, n_keys), shown, left_out = what_fits(given.shape, layers, products is not None)
        names, scores = head_scores(given[shown, :n_heads], queries, keys == queries)
        scores, labels = _named(names, scores, keys_by_chance(given[shown, :n_heads]))
        super().__init__(
            tokens=queries[:n_queries],
            key_tokens=keys[:n_keys],
            weights=given[shown, :n_heads, :n_queries, :n_keys].tolist(),
            products=[]
            if products is None
            else product_table(products, given.shape, n_heads)[shown, :n_queries].tolist(),
            score_names=names,
            scores=scores,
            labels=labels,
            layers=shown,
            note=" ".join(filter(None, [caption, left_out])),
            rest_name="bias" if n_heads == given.shape[1] else "others, bias",
            layer=layer,
            head=head,
            query=query,
            on=[True] * n_heads,
        )

    @classmethod
    def recorded(cls, sentence: int = 0, **options: Any) -> "HeadsExplorer":
        """The encoder of our translator at work on a sentence, as ``experiments/multihead_recording.py`` recorded it.

        Args:
            sentence: which of the sentences.
            options: as for the class.

        Raises:
            IndexError: there is no such sentence.
        """
        asset = assets.load("multihead_recording")
        stored, command = asset["sentences"], asset["provenance"]["command"]
        if not 0 <= sentence < len(stored):
            raise IndexError(f"there are sentences 0 to {len(stored) - 1}, but {sentence} was asked for")
        one = stored[sentence]
        options = {
            "caption": f"Our translator's encoder, recorded by {command}.",
            "products": one["products"],
            **options,
        }
        return cls([token.removeprefix("▁") for token in one["tokens"]], one["weights"], **options)

    @classmethod
    def from_model(
        cls,
        model: Any,
        text: Any,
        tokenizer: Any = None,
        *,
        part: str | None = None,
        target: Any = None,
        **options: Any,
    ) -> "HeadsExplorer":
        """The heads of a model, ours or Hugging Face's, on a text of yours.

        Args:
            model, text, tokenizer, part, target: as for `ttutor.widgets.from_model.recorded_attention`.
            options: as for the class.
        """
        from ttutor.widgets.from_model import PARTS, recorded_attention

        seen = recorded_attention(model, text, tokenizer, part=part, target=target)
        options = {"caption": f"{PARTS[seen.part].capitalize()} of {type(model).__name__}.", **options}
        return cls(seen.tokens, seen.weights, seen.key_tokens, seen.writes, seen.rest, **options)

    def write_parts(self) -> WriteParts | None:
        """What the figure shows now of the chosen query's writes; None if it was given none."""
        if not self.products:
            return None
        return write_parts(self.products[self.layer][self.query], [*self.on, True])

    def describe(self) -> str:
        """The sizes."""
        counts = {"layer": len(self.layers), "head": len(self.on)}
        words = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items()]
        return ", ".join([*words, f"{len(self.tokens)} queries", f"{len(self.key_tokens)} keys"])

    def fallback_html(self) -> str:
        """For each layer and head its name, and for each query the key that it looks at most."""
        caption = f"For each head, what it does by measure and the key that each query looks at most. {self.note}"
        heads = "".join(f'<th scope="col">{html.escape(token)}</th>' for token in self.tokens)
        rows = []
        for number, weights, labels in zip(self.layers, self.weights, self.labels, strict=True):
            for head, (one, label) in enumerate(zip(weights, labels, strict=True)):
                name = html.escape(f"layer {number}, head {head}: {label}")
                cells = "".join(f"<td>{html.escape(self.key_tokens[int(np.argmax(row))])}</td>" for row in one)
                rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
        top = f'<thead><tr><th scope="col">query</th>{heads}</tr></thead>'
        table = f"<caption>{html.escape(caption)}</caption>{top}<tbody>{''.join(rows)}</tbody>"
        return f'<div style="overflow-x:auto" tabindex="0"><table>{table}</table></div>'

    @t.validate("weights")
    def _check_weights(self, proposal: dict) -> list:
        shape = (len(self.layers), len(self.on), len(self.tokens), len(self.key_tokens))
        return rounded_array(
            "weights", shares(proposal["value"], *shape[2:]), shape, 3, axes="layers, heads, queries, keys"
        )

    @t.observe("weights")
    def _measure(self, change: dict) -> None:
        """Scores of weights that are set later: those of the tokens shown."""
        if change["old"]:
            names, scores = head_scores(self.weights, self.tokens, self.tokens == self.key_tokens)
            self.score_names = names
            self.scores, self.labels = _named(names, scores, keys_by_chance(self.weights))

    @t.validate("products")
    def _check_products(self, proposal: dict) -> list:
        if not proposal["value"]:
            return []
        n_parts = len(self.on) + 1
        shape = (len(self.layers), len(self.tokens), n_parts * (n_parts + 1) // 2)
        largest = np.abs(number_array("products", proposal["value"])).max()
        decimals = 4 - math.floor(math.log10(largest)) if 0 < largest < math.inf else 4
        return rounded_array("products", proposal["value"], shape, decimals, axes="layers, queries, pairs of parts")

    @t.validate("layer", "head", "query", "on")
    def _check_place(self, proposal: dict) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        if name == "on":
            if self.scores and len(value) != len(self.scores[0]):
                raise ValueError(
                    f"on has to say True or False for each of {len(self.scores[0])} heads, not {len(value)}"
                )
            return value
        low, high = {"layer": (0, len(self.layers)), "head": (0, len(self.on)), "query": (0, len(self.tokens))}[name]
        if not low <= value < high:
            raise ValueError(f"{name} has to be from {low} to {high - 1}, not {value}")
        return value


def _named(names: list[str], scores: np.ndarray, n_keys: float) -> tuple[list, list]:
    """Scores, rounded, and what each head is called after them."""
    rounded = rounded_array("scores", scores, (None,) * 3, 3, axes="layers, heads, scores")
    return rounded, [[label_of(names, one, n_keys) for one in heads] for heads in rounded]
