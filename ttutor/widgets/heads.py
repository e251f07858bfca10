"""Several heads side by side: where each of them looks, and how what they write adds up to the layer's output."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import traitlets as t
from torch import Tensor

from ttutor import assets
from ttutor.inside import attention_entropy, first_token_score, induction_score, previous_token_score, weight_on
from ttutor.widgets.base import Explorer, number_array, rounded_array, table_html, token_list, within
from ttutor.widgets.translator import EXAMPLES

MOSTLY, PARTLY = 0.5, 0.25
"""A head is called after the rule that takes the most of its weight, if that is at least so much."""


def write_products(writes: Any, rest: Any = None, n_heads: int | None = None) -> np.ndarray:
    """The inner products of what the heads write, all that is needed to draw how they add up.

    Args:
        writes: ``layers heads queries d_model``.
        rest: ``layers queries d_model``, what the layer's output has besides, such as a bias.
        n_heads: how many heads stand for themselves; further ones go to the rest.

    Returns:
        ``layers queries pairs``: the lower triangle of the matrix of products, row after row, of the heads and, as
        the last part, the rest.

    >>> write_products([[[[3.0, 4.0]], [[1.0, 0.0]]]]).tolist()
    [[[25.0, 3.0, 1.0, 0.0, 0.0, 0.0]]]
    """
    vectors = np.moveaxis(number_array("writes", writes), 1, 2)
    n_heads = vectors.shape[2] if n_heads is None else n_heads
    others = vectors[:, :, n_heads:].sum(axis=2) + (0.0 if rest is None else number_array("rest", rest))
    parts = np.concatenate([vectors[:, :, :n_heads], others[:, :, None]], axis=2)
    products = parts @ np.swapaxes(parts, -1, -2)
    rows, columns = np.tril_indices(parts.shape[2])
    return products[..., rows, columns]


def head_scores(weights: Any, tokens: Sequence[str], is_self: bool) -> tuple[list[str], np.ndarray]:
    """What each head looks at, by the measures of `ttutor.inside`, on this text.

    Args:
        weights: ``layers heads queries keys``.
        tokens: the queries' tokens, which tell what occurs again.
        is_self: whether queries and keys are the same tokens.

    Returns:
        The names of the scores and ``layers heads scores``; the last is e to the entropy, a number of keys.
    """
    given = torch.as_tensor(number_array("weights", weights))[:, None]
    found = _of_self_attention(given, tokens) if is_self else _of_ends(given)
    found["keys in effect"] = attention_entropy(given).exp()
    return list(found), torch.stack(list(found.values()), dim=-1).numpy()


def keys_by_chance(weights: Any) -> float:
    """One over what a key gets when a query's weight is shared out evenly, averaged over the queries.

    The number of keys or, where no query looks ahead, one over the mean of 1, 1/2, ..., 1/n.

    Args:
        weights: ``layers heads queries keys``.

    >>> keys_by_chance([[[[1.0, 0.0], [0.5, 0.5]]]]).__round__(3)
    1.333
    """
    given = number_array("weights", weights)
    n_queries, n_keys = given.shape[-2:]
    if n_queries != n_keys or np.triu(given, 1).any():
        return float(n_keys)
    return float(1 / np.mean(1 / np.arange(1, n_keys + 1)))


def label_of(names: Sequence[str], scores: Sequence[float], n_keys: int | float) -> str:
    """What a head does, in words: the rule that takes the most of its weight, if that is much.

    Args:
        names: of the scores.
        scores: of the head; the last is its number of keys in effect.
        n_keys: the keys that share the weight by chance, as `keys_by_chance` counts them.

    >>> label_of(["own token", "keys in effect"], [0.81, 1.8], 8)
    'mostly own token'
    >>> label_of(["own token", "keys in effect"], [0.2, 7.1], 8)
    'spread evenly'
    """
    best = int(np.argmax(scores[:-1]))
    # By chance every key gets an equal share.
    if scores[best] >= max(PARTLY, 1.5 / n_keys):
        return f"{'mostly' if scores[best] >= MOSTLY else 'partly'} {names[best]}"
    return "spread evenly" if scores[-1] >= 0.8 * n_keys else "no simple rule"


def _of_self_attention(weights: Tensor, tokens: Sequence[str]) -> dict[str, Tensor]:
    n = weights.shape[-1]
    own = torch.eye(n, dtype=torch.bool)[None]
    causal = bool((weights.triu(diagonal=1) == 0).all())
    found = {"own token": weight_on(weights, own)}
    if n > 1:
        found["token before"] = previous_token_score(weights)
        if causal:
            back = (torch.ones(1, n, n).tril(-far).triu(-far).bool() for far in range(2, min(5, n)))
            found |= {f"{far} tokens back": weight_on(weights, keys) for far, keys in enumerate(back, 2)}
        if not causal:
            found["token after"] = weight_on(weights, torch.ones(1, n, n).tril(1).triu(1).bool())
        found["first token"] = first_token_score(weights)
        if not causal:
            found["last token"] = _last(weights)
    index = {token: number for number, token in enumerate(tokens)}
    if causal and len(index) < n:
        found["after an earlier twin"] = induction_score(weights, torch.tensor([[index[token] for token in tokens]]))
    return found


def _of_ends(weights: Tensor) -> dict[str, Tensor]:
    first = torch.zeros(1, *weights.shape[-2:], dtype=torch.bool)
    first[..., 0] = True
    return {"first key": weight_on(weights, first), "last key": _last(weights)}


def _last(weights: Tensor) -> Tensor:
    wanted = torch.zeros(1, *weights.shape[-2:], dtype=torch.bool)
    wanted[..., -1] = True
    return weight_on(weights, wanted)


MAX_TOKENS, MAX_HEADS, MAX_NUMBERS = 24, 16, 3600
_FOUR = ((2, 2), (1, 0), (1, 2), (2, 0))
"""Layers and heads of the shipped translator's encoder that look different ways."""


def shares(weights: Any, n_queries: int, n_keys: int) -> np.ndarray:
    """Attention weights with an axis for layers, each a share from 0 to 1."""
    given = number_array("weights", weights)
    given = given[None] if given.ndim == 3 else given
    if given.ndim != 4 or given.shape[2:] != (n_queries, n_keys) or 0 in given.shape:
        raise ValueError(
            f"weights has shape {given.shape}, expected (layers, heads, {n_queries}, {n_keys}) or (heads, {n_queries}, "
            f"{n_keys}): queries and keys are the tokens, of one text"
        )
    if not ((given > -1e-3) & (given < 1.001)).all():
        raise ValueError("weights have to be shares from 0 to 1, after the softmax")
    return given.clip(0.0, 1.0)


def vectors(writes: Any, rest: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray | None]:
    """Writes and rest with an axis for layers, of the sizes that the weights have."""
    given = number_array("writes", writes)
    given = given[None] if given.ndim == 3 else given
    further = None if rest is None else number_array("rest", rest)
    further = further[None] if further is not None and further.ndim == 2 else further
    if given.ndim != 4 or given.shape[:3] != shape[:3]:
        raise ValueError(f"writes has shape {given.shape}, expected {shape[:3]} and d_model (layers, heads, queries)")
    wanted = (shape[0], shape[2], given.shape[3])
    if further is not None and further.shape != wanted:
        raise ValueError(f"rest has shape {further.shape}, expected {wanted} (layers, queries, d_model)")
    return given, further


def what_fits(
    shape: tuple[int, ...], layers: Sequence[int] | None, with_writes: bool
) -> tuple[tuple[int, int], list[int], str]:
    """How many queries and keys are shown, which layers, and in words what is left out (nothing if all is shown)."""
    n_layers, n_all, *tokens = shape
    n_heads = min(n_all, MAX_HEADS)
    wanted = list(range(n_layers))
    if layers is not None:
        beyond = [number for number in layers if not -n_layers <= number < n_layers]
        if beyond or not list(layers):
            raise IndexError(f"layers has to name some of the layers 0 to {n_layers - 1}, but is {list(layers)}")
        wanted = [wanted[number] for number in layers]

    def numbers(limit: int) -> int:
        queries, keys = (min(n, limit) for n in tokens)
        return queries * (n_heads * keys + with_writes * (n_heads + 1) * (n_heads + 2) // 2)

    limit = next(limit for limit in range(MAX_TOKENS, 0, -1) if numbers(limit) <= MAX_NUMBERS or limit == 1)
    fitting = min(len(wanted), max(1, MAX_NUMBERS // numbers(limit)))
    shown = [wanted[place] for place in np.linspace(0, len(wanted) - 1, fitting).round().astype(int)]
    left_out = ""
    if max(tokens) > limit or n_all > n_heads or len(shown) < len(wanted):
        left_out = (
            f"Of {n_layers} layers, {n_all} heads, {tokens[0]} queries and {tokens[1]} keys, shown: "
            f"{'layer' if len(shown) == 1 else 'layers'} {', '.join(map(str, shown))}, {n_heads} heads and the first "
            f"{limit} tokens."
        )
        warnings.warn(
            f"this is more than one figure holds. {left_out} Choose layers with layers=[...], or give a shorter text",
            stacklevel=3,
        )
    return (min(tokens[0], limit), min(tokens[1], limit)), shown, left_out


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
        names: what the heads are called where they are some of a model's, such as ``["layer 2, head 0"]``; their
            numbers when left out.
        layer: the layer that is open first, by its place among those shown.
        head: the head that is enlarged first.
        query: the token whose writes are shown first.

    What is more than 24 tokens, 16 heads or a few thousand numbers is left out, with a warning and a label. Scores are
    measured on all tokens, and heads that are left out stay in the sum.

    >>> HeadsExplorer(["I", "sleep"], [[[1, 0], [0.9, 0.1]], [[0.5, 0.5], [0.5, 0.5]]])
    HeadsExplorer(1 layer, 2 heads, 2 queries, 2 keys)
    """

    _module = "heads"
    _title = "Attention heads"

    tokens = t.List(t.Unicode()).tag(sync=True)
    key_tokens = t.List(t.Unicode()).tag(sync=True)
    weights: t.List[Any] = t.List().tag(sync=True)
    products: t.List[Any] = t.List().tag(sync=True)
    score_names = t.List(t.Unicode()).tag(sync=True)
    scores: t.List[Any] = t.List().tag(sync=True)
    labels: t.List[Any] = t.List().tag(sync=True)
    layers = t.List(t.Int()).tag(sync=True)
    note = t.Unicode().tag(sync=True)
    names = t.List(t.Unicode()).tag(sync=True)
    rest_name = t.Unicode("bias").tag(sync=True)
    layer = t.Int(0).tag(sync=True)
    head = t.Int(0).tag(sync=True)
    query = t.Int(0).tag(sync=True)
    tapped = t.List(t.Int(), help="the heads whose name was found, and stays").tag(sync=True)
    on = t.List(t.Bool()).tag(sync=True)
    follows = t.Bool(False, help="whether a page's translator hands on what it reads").tag(sync=True)

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
        names: Sequence[str] = (),
        layer: int = 0,
        head: int = 0,
        query: int = 0,
    ) -> None:
        queries = token_list("tokens", tokens)
        keys = queries if key_tokens is None else token_list("key_tokens", key_tokens)
        given = shares(weights, len(queries), len(keys))
        n_heads = min(given.shape[1], MAX_HEADS)
        if names and len(names) != given.shape[1]:
            raise ValueError(f"names has {len(names)} names, expected one for each of {given.shape[1]} heads")
        if products is None and writes is not None:
            products = write_products(*vectors(writes, rest, given.shape), n_heads)
        (n_queries, n_keys), shown, left_out = what_fits(given.shape, layers, products is not None)
        score_names, measured = head_scores(given[shown, :n_heads], queries, keys == queries)
        scores, labels = _named(score_names, measured, keys_by_chance(given[shown, :n_heads]))
        cut = given[shown, :n_heads, :n_queries, :n_keys]
        super().__init__(
            tokens=queries[:n_queries],
            key_tokens=keys[:n_keys],
            weights=rounded_array("weights", cut, cut.shape, 3, axes="layers, heads, queries, keys"),
            products=[] if products is None else _rounded_products(products, shown, n_queries),
            score_names=score_names,
            scores=scores,
            labels=labels,
            layers=shown,
            note=" ".join(filter(None, [caption, left_out])),
            names=list(names)[:n_heads],
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
        """
        asset = assets.load("multihead_recording")
        stored, command = asset["sentences"], asset["provenance"]["command"]
        one = stored[within("sentence", sentence, 0, len(stored) - 1, "it numbers the recorded sentences")]
        options = {
            "caption": f"Our translator's encoder, recorded by {command}.",
            "products": one["products"],
            **options,
        }
        return cls([token.removeprefix("▁") for token in one["tokens"]], one["weights"], **options)

    @classmethod
    def translating(cls, sentence: str = EXAMPLES[0], **options: Any) -> "HeadsExplorer":
        """Four of the 16 heads with which the translator that ships reads a sentence; they look different ways.

        In a page without a kernel the figure goes on with the sentence that is typed into a `TranslatorExplorer`.

        Args:
            sentence: what is read.
            options: as for the class.
        """
        from ttutor.translation.packed import load_packed
        from ttutor.widgets.from_model import recorded_attention

        seen = recorded_attention(load_packed().translator, sentence)
        options = {
            "query": min(2, len(seen.tokens) - 1),
            "names": [f"layer {layer}, head {head}" for layer, head in _FOUR],
            "caption": "Four of the 16 heads with which our translator into German reads.",
            **options,
        }
        layers, heads = zip(*_FOUR, strict=True)
        made = cls([token.removeprefix("▁") for token in seen.tokens], seen.weights[layers, heads], **options)
        made.follows = True
        return made

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

    def static_state(self) -> dict[str, Any]:
        state = super().static_state()
        idle = (set() if self.names else {"names", "tapped"}) | (set() if self.follows else {"follows"})
        return {name: value for name, value in state.items() if name not in idle}

    def describe(self) -> str:
        counts = {"layer": len(self.layers), "head": len(self.on)}
        words = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items()]
        return ", ".join([*words, f"{len(self.tokens)} queries", f"{len(self.key_tokens)} keys"])

    def fallback_html(self) -> str:
        """For each layer and head its name, and for each query the key that it looks at most."""
        caption = f"For each head, what it does by measure and the key that each query looks at most. {self.note}"
        rows = []
        for number, weights, labels in zip(self.layers, self.weights, self.labels, strict=True):
            for head, (one, label) in enumerate(zip(weights, labels, strict=True)):
                keys = [self.key_tokens[int(np.argmax(row))] for row in one]
                name = self.names[head] if self.names else f"layer {number}, head {head}"
                rows.append([f"{name}: {label}", *keys])
        table = table_html(caption, ["query", *self.tokens], rows)
        return f'<div style="overflow-x:auto" tabindex="0">{table}</div>'

    @t.validate("layer", "head", "query")
    def _check_place(self, proposal: dict) -> int:
        name = proposal["trait"].name
        counts = {"layer": len(self.layers), "head": len(self.on), "query": len(self.tokens)}
        return within(name, proposal["value"], 0, counts[name] - 1)

    @t.validate("tapped")
    def _check_tapped(self, proposal: dict) -> list[int]:
        return [within("a head of tapped", head, 0, len(self.on) - 1) for head in proposal["value"]]


def _rounded_products(products: Any, shown: list[int], n_queries: int) -> list:
    """The products of the layers and queries shown, to five digits of the largest."""
    chosen = number_array("products", products)[shown, :n_queries]
    largest = np.abs(chosen).max()
    decimals = 4 - math.floor(math.log10(largest)) if 0 < largest < math.inf else 4
    return rounded_array("products", chosen, chosen.shape, decimals, axes="layers, queries, pairs of parts")


def _named(names: list[str], scores: np.ndarray, n_keys: float) -> tuple[list, list]:
    """Scores, rounded, and what each head is called after them."""
    rounded = rounded_array("scores", scores, (None,) * 3, 3, axes="layers, heads, scores")
    return rounded, [[label_of(names, one, n_keys) for one in heads] for heads in rounded]
