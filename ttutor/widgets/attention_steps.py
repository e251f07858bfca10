"""One word looks up: its query against every key, the shares that follow, and the blend of the values."""

from typing import Any

import numpy as np
import torch
import traitlets as t
from einops import einsum

from ttutor.attention import attention_weights, scaled_dot_product_attention
from ttutor.widgets.base import Explorer, rounded_array, table_html, token_list, within

STEPS = ("project", "scores", "scale", "softmax", "blend")
MAX_TOKENS = 8
MAX_D_HEAD = 8
LARGEST = 10.0
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


class AttentionStepsExplorer(Explorer):
    """One word looks up: turn its query and see where its attention goes, and how, step by step.

    Without arguments the sentence and its vectors of two features are made by hand, so that every arrow can be drawn
    and pulled. With more features, keys are drawn at their length and at their angle from the query.

    Args:
        tokens: up to 8 tokens.
        embeddings: ``tokens d_model``, one vector for each token (a tensor, an array or nested lists).
        w_query: ``d_head d_model``, as `torch.nn.Linear` stores it: queries are ``embeddings @ w_query.T``.
        w_key: ``d_head d_model``.
        w_value: ``d_value d_model``.
        step: the step to begin with, one of ``STEPS``.
        note: a line below the figure, such as where the numbers come from.

    Queries, keys and values are rounded to three decimals and have to lie between -10 and 10.

    >>> explorer = AttentionStepsExplorer()
    >>> explorer
    AttentionStepsExplorer(8 tokens, "it" looks up, d_head 2)
    >>> explorer.trace()["A"][7].round(2).tolist()
    [0.01, 0.12, 0.07, 0.01, 0.69, 0.01, 0.06, 0.03]
    """

    _module = "attention_steps"
    _title = "One word looks up"

    tokens = t.List(t.Unicode(), read_only=True).tag(sync=True)
    query = t.List(t.List(t.Float()), read_only=True).tag(sync=True)
    key = t.List(t.List(t.Float()), read_only=True).tag(sync=True)
    value = t.List(t.List(t.Float()), read_only=True).tag(sync=True)
    features = t.List(t.Unicode(), read_only=True).tag(sync=True)
    selected = t.Int(0).tag(sync=True)
    asked = t.Int(-1).tag(sync=True)
    pulled: t.List[Any] = t.List().tag(sync=True)
    step = t.Enum(STEPS, "project").tag(sync=True)
    note = t.Unicode("").tag(sync=True)

    def __init__(
        self,
        tokens: Any = None,
        embeddings: Any = None,
        w_query: Any = None,
        w_key: Any = None,
        w_value: Any = None,
        *,
        step: str = "project",
        note: str = "",
    ) -> None:
        given = (embeddings, w_query, w_key, w_value)
        if tokens is None and all(one is None for one in given):
            listed = list(_SENTENCE)
            made = [[_SENTENCE[token][i] for token in listed] for i in range(3)]
            note = (
                note or "Vectors made by hand: how much of a person, and of a thing, each word asks for, is and gives."
            )
        elif any(one is None for one in (tokens, *given)):
            raise TypeError("give tokens, embeddings, w_query, w_key and w_value together, or none of them")
        else:
            listed = token_list("tokens", tokens)
            made = _project(listed, *given)
        within("the number of tokens", len(listed), 1, MAX_TOKENS)
        self.set_trait("tokens", listed)
        for name, table in zip(("query", "key", "value"), made, strict=True):
            self.set_trait(name, table)
        self.set_trait("features", _FEATURES if tokens is None else [])
        super().__init__(selected=len(listed) - 1, step=step, note=note)

    def trace(self) -> dict[str, np.ndarray]:
        """Q, K, V, the products QK, the scores S, the weights A and the outputs AV, by ``ttutor.attention``."""
        query, key, value = (torch.tensor(table, dtype=torch.float64) for table in (self.query, self.key, self.value))
        if self.pulled:
            query[self.selected] = torch.tensor(self.pulled, dtype=torch.float64)
        products = einsum(query, key, "queries d_head, keys d_head -> queries keys")
        made = {
            "Q": query,
            "K": key,
            "V": value,
            "QK": products,
            "S": products / query.shape[-1] ** 0.5,
            "A": attention_weights(query, key),
            "AV": scaled_dot_product_attention(query, key, value),
        }
        return {name: table.numpy() for name, table in made.items()}

    def describe(self) -> str:
        return f'{len(self.tokens)} tokens, "{self.tokens[self.selected]}" looks up, d_head {len(self.query[0])}'

    def fallback_html(self) -> str:
        """For the word that looks up: each key's product, score and weight; and the output."""
        made, i = self.trace(), self.selected
        columns = zip(self.tokens, made["QK"][i], made["S"][i], made["A"][i], strict=True)
        rows = [[token, *(_written(number) for number in numbers)] for token, *numbers in columns]
        output = ", ".join(map(_written, made["AV"][i]))
        caption = f"“{self.tokens[i]}” looks up. The values, blended by the weights, give ({output}). {self.note}"
        return table_html(caption, ["key of", "query · key", "divided by √d_head", "weight (softmax)"], rows)

    @t.validate("selected", "asked")
    def _check_place(self, proposal: dict) -> int:
        name = proposal["trait"].name
        return within(name, proposal["value"], -1 if name == "asked" else 0, len(self.tokens) - 1, "it counts tokens")

    @t.validate("pulled")
    def _check_pulled(self, proposal: dict) -> list:
        value = proposal["value"]
        return value and rounded_array("pulled", value, (len(self.query[0]),), _DECIMALS, axes="d_head")


def _project(tokens: list[str], embeddings: Any, w_query: Any, w_key: Any, w_value: Any) -> list[list]:
    """Queries, keys and values, rounded, of a size and a range that the figure can show."""
    x = torch.tensor(rounded_array("embeddings", embeddings, (len(tokens), None), 9, axes="tokens, d_model"))
    made: list[list] = []
    for name, given in (("w_query", w_query), ("w_key", w_key), ("w_value", w_value)):
        rows = len(made[0][0]) if name == "w_key" else None
        matrix = rounded_array(name, given, (rows, x.shape[1]), 9, axes="d_head, d_model")
        if len(matrix) > MAX_D_HEAD:
            raise ValueError(f"{name} has {len(matrix)} rows, at most {MAX_D_HEAD} can be shown; take a narrower head")
        table = einsum(x, torch.tensor(matrix), "tokens d_model, d_head d_model -> tokens d_head")
        if (largest := table.abs().max().item()) > LARGEST:
            raise ValueError(f"embeddings @ {name}.T holds {largest:g}; it has to lie between -10 and 10: divide it")
        made.append(rounded_array(name, table, (None, None), _DECIMALS, axes="tokens, d_head"))
    return made


def _written(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
