"""Attention, step by step: every matrix between the tokens' vectors and the blend, and the sum behind every number."""

import html
import warnings
from typing import Any

import numpy as np
import torch
import traitlets as t
from einops import einsum

from ttutor.attention import attention_weights, scaled_dot_product_attention
from ttutor.masks import causal_mask
from ttutor.widgets.base import Explorer, one_of, rounded_array, table_html, token_list

LESSON: dict[str, Any] = {
    "steps": [  # name, title, what to see, formulas, matrices that it makes (each with one to show below)
        ["embed", "Vectors", "Each token is one row of d_model numbers. All the rest is made from these rows.",
         ["X"], [["X"]]],
        ["project", "Three views", "Three matrices turn each row into what it asks, how it is found and what it gives.",
         ["Q = X W_Q^T", "K = X W_K^T", "V = X W_V^T"], [["Q", "W_Q"], ["K", "W_K"], ["V", "W_V"]]],
        ["scores", "Compare", "Every query meets every key: one dot product a pair. Queries are rows, keys columns.",
         ["Q K^T"], [["QK"]]],
        ["scale", "Scale", "A dot product sums d_head terms: the more, the wider it spreads. Dividing undoes it.",
         ["S = Q K^T / √d_head"], [["S"]]],
        ["mask", "Mask", "No query may look at a later key: those scores become −∞.",
         ["S_masked : S_ij → −∞ if j > i"], [["M"]]],
        ["softmax", "Softmax", "Each row of scores becomes shares: none is negative, and a row sums to 1.",
         ["A = softmax( S )"], [["A"]]],
        ["blend", "Blend", "Each token receives the blend of all values, each with its weight: the output of the head.",
         ["A V"], [["AV"]]],
    ],
    "hint": "Point at, tap or move to a number for the sum that made it.",
    "parts": {  # what one number is called, rows, columns, colour, symbol
        "X": ["embedding", "tokens", "d_model"],
        "W_Q": ["projection", "d_head", "d_model", "query"],
        "W_K": ["projection", "d_head", "d_model", "key"],
        "W_V": ["projection", "d_value", "d_model", "value"],
        "Q": ["query", "tokens", "d_head", "query"],
        "K": ["key", "tokens", "d_head", "key"],
        "V": ["value", "tokens", "d_value", "value"],
        "QK": ["dot product", "queries", "keys", "", "Q K^T"],
        "S": ["score", "queries", "keys"],
        "M": ["masked score", "queries", "keys", "", "S_masked"],
        "A": ["weight", "queries", "keys", "weights"],
        "AV": ["context", "tokens", "d_value", "value", "A V"],
    },
}  # fmt: skip
"""What the figure and its table both say; in a formula ``_`` lowers and ``^T`` transposes."""
MAX_TOKENS = 8
MAX_D_MODEL = 16
MAX_D_HEAD = 8
LARGEST = 10.0
_DECIMALS = 3
_D_MODEL, _D_HEAD, _SEEDS = 4, 3, (11, 21, 22, 23)
_RANDOM = "to one decimal; the rest follows. Nothing was trained: look at how it is made, not at who attends to whom."
STEPS = tuple(step[0] for step in LESSON["steps"])
"""The steps in their order; ``mask`` is one of them only while the figure is causal."""


class AttentionStepsExplorer(Explorer):
    """One head of attention in slow motion: go on step by step, and point at a number for the sum that made it.

    Args:
        tokens: up to 8 tokens; of more, the first 8 are shown, with a warning and a label.
        embeddings: ``tokens d_model``, one vector for each token (a tensor, an array or nested lists). Left out, they
            are random and rounded to one decimal, the same on every machine; equal tokens have equal vectors.
        w_query: ``d_head d_model``, as `torch.nn.Linear` stores it: queries are ``embeddings @ w_query.T``.
        w_key: ``d_head d_model``.
        w_value: ``d_value d_model``.
        causal: whether a query may attend only to keys up to its own position.
        step: the step to begin with, one of ``STEPS``.
        note: a line below the figure, such as where the numbers come from.

    Everything is rounded to three decimals and has to lie between -10 and 10; ``d_model`` is at most 16, ``d_head`` and
    ``d_value`` at most 8, so that every sum can be written out.

    >>> explorer = AttentionStepsExplorer("I love ML !".split())
    >>> explorer
    AttentionStepsExplorer(4 tokens, d_model 4, d_head 3)
    >>> explorer.trace()["A"][1].round(2).tolist()
    [0.14, 0.05, 0.0, 0.8]
    """

    _module = "attention_steps"
    _title = "Attention, step by step"
    _state_keys = (
        "tokens", "embeddings", "w_query", "w_key", "w_value", "causal", "step", "selected", "note", "lesson",
    )  # fmt: skip

    tokens = t.List(t.Unicode()).tag(sync=True)
    embeddings = t.List(t.List(t.Float())).tag(sync=True)
    w_query = t.List(t.List(t.Float())).tag(sync=True)
    w_key = t.List(t.List(t.Float())).tag(sync=True)
    w_value = t.List(t.List(t.Float())).tag(sync=True)
    causal = t.Bool(False).tag(sync=True)
    step = t.Unicode("embed").tag(sync=True)
    selected: t.List[Any] = t.List().tag(sync=True)
    note = t.Unicode("").tag(sync=True)
    lesson = t.Dict(LESSON, read_only=True).tag(sync=True)

    def __init__(
        self,
        tokens: Any = ("I", "love", "ML", "!"),
        embeddings: Any = None,
        w_query: Any = None,
        w_key: Any = None,
        w_value: Any = None,
        *,
        causal: bool = False,
        step: str = "embed",
        note: str | None = None,
    ) -> None:
        listed = token_list("tokens", tokens)
        total = len(listed)
        if embeddings is not None:  # before the cut, so that a wrong number of rows is seen
            embeddings = _table("embeddings", embeddings, (total, None), "tokens, d_model")[:MAX_TOKENS]
        if total > MAX_TOKENS:
            warnings.warn(
                f"{total} tokens are more than fit a screen with all their sums; showing the first {MAX_TOKENS}, "
                "which attend to one another only",
                stacklevel=2,
            )
            listed = listed[:MAX_TOKENS]
        if note is None:
            drawn = "X and the matrices W are" if w_query is w_key is w_value is None else "X is"
            note = f"{drawn} random, {_RANDOM}" if embeddings is None else ""
        if total > MAX_TOKENS:
            note = f"The first {MAX_TOKENS} of {total} tokens, which attend to one another only. {note}"
        embeddings = _random_embeddings(listed) if embeddings is None else embeddings
        width = len(embeddings[0])
        matrices = zip((w_query, w_key, w_value), _SEEDS[1:], strict=True)
        query, key, value = (_random(_D_HEAD, width, seed=seed) if one is None else one for one, seed in matrices)
        query = _table("w_query", query, (None, width), "d_head, d_model")
        super().__init__(
            tokens=listed,
            embeddings=embeddings,
            w_query=query,
            w_key=_table("w_key", key, (len(query), width), "d_head, d_model"),
            w_value=_table("w_value", value, (None, width), "d_value, d_model"),
            causal=causal,
            step=step,
            note=note,
        )

    def trace(self) -> dict[str, np.ndarray]:
        """Every matrix by its name, in float64, by ``ttutor.attention``; ``M`` only while the figure is causal."""
        x, *matrices = (
            torch.tensor(table, dtype=torch.float64)
            for table in (self.embeddings, self.w_query, self.w_key, self.w_value)
        )
        query, key, value = (einsum(x, w, "tokens d_model, d_head d_model -> tokens d_head") for w in matrices)
        products = einsum(query, key, "queries d_head, keys d_head -> queries keys")
        scores = products / query.shape[-1] ** 0.5
        made = {"X": x, "Q": query, "K": key, "V": value, "QK": products, "S": scores}
        if self.causal:
            made["M"] = scores.masked_fill(~causal_mask(*scores.shape), -torch.inf)
        made["A"] = attention_weights(query, key, causal=self.causal)
        made["AV"] = scaled_dot_product_attention(query, key, value, causal=self.causal)
        return {name: table.numpy() for name, table in made.items()}

    def describe(self) -> str:
        """The sizes and the settings."""
        parts = [f"{len(self.tokens)} tokens", f"d_model {len(self.embeddings[0])}", f"d_head {len(self.w_query)}"]
        return ", ".join(parts + (["causal"] if self.causal else []))

    def fallback_html(self) -> str:
        """The steps as a list, each with the matrices that it makes."""
        made, parts = self.trace(), []
        for step, title, why, formulas, groups in self.lesson["steps"]:
            if step != "mask" or self.causal:
                tables = "".join(self._fallback_table(name, made[name]) for name, *_ in groups)
                written = ", ".join(formulas).replace("^T", "ᵀ")
                written = written.replace("( S )", "( S_masked )") if self.causal else written
                parts.append(f"<li><p>{title}: {html.escape(written)}. {why}</p>{tables}</li>")
        return f"<p>{self._title}. {html.escape(self.note)}</p><ol>{''.join(parts)}</ol>"

    def _fallback_table(self, name: str, table: np.ndarray) -> str:
        kind, _, across, *_ = self.lesson["parts"][name]
        columns = self.tokens if across == "keys" else [str(i) for i in range(table.shape[1])]
        rows = [[token, *map(_written, line)] for token, line in zip(self.tokens, table, strict=True)]
        return table_html(f"{name}: {kind}, tokens × {across}", ["", *columns], rows)

    @t.validate("tokens")
    def _check_tokens(self, proposal: dict) -> list[str]:
        tokens = token_list("tokens", proposal["value"])
        if len(tokens) != len(self.embeddings):
            raise ValueError(
                f"tokens has {len(tokens)} entries for {len(self.embeddings)} rows of embeddings; to change both, "
                "set them within hold_trait_notifications()"
            )
        return tokens

    @t.validate("embeddings")
    def _check_embeddings(self, proposal: dict) -> list:
        return _table("embeddings", proposal["value"], (len(self.tokens), len(self.w_query[0])), "tokens, d_model")

    @t.validate("w_query", "w_key", "w_value")
    def _check_matrix(self, proposal: dict) -> list:
        name = proposal["trait"].name
        rows = {"w_query": len(self.w_key), "w_key": len(self.w_query)}.get(name)
        return _table(name, proposal["value"], (rows, len(self.embeddings[0])), "d_head, d_model")

    @t.validate("step")
    def _check_step(self, proposal: dict) -> str:
        return one_of("step", proposal["value"], STEPS)

    @t.validate("selected")
    def _check_selected(self, proposal: dict) -> list:
        value = proposal["value"]
        names = LESSON["parts"]
        places = value[1:]
        if value and not (len(value) == 3 and value[0] in names and all(type(i) is int and i >= 0 for i in places)):
            raise ValueError(f"selected has to be empty or [matrix, row, column], such as ['A', 1, 2], not {value}")
        return value


def _written(value: float) -> str:
    return "−∞" if np.isneginf(value) else f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def _random(*shape: int, seed: int) -> torch.Tensor:
    """Numbers of mean 0 and variance 1 with one decimal: those of chapter 2's worked example."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).round(decimals=1)


def _random_embeddings(tokens: list[str]) -> list[list[float]]:
    """A vector for each token, the same for the same token."""
    kinds = list(dict.fromkeys(tokens))
    table = _random(len(kinds), _D_MODEL, seed=_SEEDS[0]).tolist()
    return [table[kinds.index(token)] for token in tokens]


def _table(name: str, values: Any, shape: tuple[int | None, int | None], axes: str) -> list:
    """Rounded numbers of a size and a range that the figure can write out."""
    table = rounded_array(name, values, shape, _DECIMALS, axes=axes)
    if len(table[0]) > MAX_D_MODEL:
        raise ValueError(
            f"{name} has d_model = {len(table[0])}, at most {MAX_D_MODEL} can be shown; take a smaller model"
        )
    if name.startswith("w_") and len(table) > MAX_D_HEAD:
        raise ValueError(f"{name} has {len(table)} rows, at most {MAX_D_HEAD} can be shown; take a narrower head")
    largest = max(abs(value) for row in table for value in row)
    if largest > LARGEST:
        raise ValueError(f"{name} holds {largest:g}; numbers have to lie between -10 and 10: divide it by a constant")
    return table
