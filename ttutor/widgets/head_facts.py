"""What an explorer says about heads: scores of where they look, and the geometry of what they write."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ttutor.inside import attention_entropy, first_token_score, induction_score, previous_token_score, weight_on

__all__ = ["WriteParts", "head_scores", "keys_by_chance", "label_of", "write_parts", "write_products"]

MOSTLY, PARTLY = 0.5, 0.25
"""A head is called after the rule that takes the most of its weight, if that is at least so much."""


class WriteParts(NamedTuple):
    """The vectors that add up to a layer's output for one query: each head's, then the rest."""

    norms: np.ndarray
    along: np.ndarray
    total: float


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
    vectors = np.moveaxis(_array(writes), 1, 2)
    n_heads = vectors.shape[2] if n_heads is None else n_heads
    others = vectors[:, :, n_heads:].sum(axis=2) + (0.0 if rest is None else _array(rest))
    parts = np.concatenate([vectors[:, :, :n_heads], others[:, :, None]], axis=2)
    products = parts @ np.swapaxes(parts, -1, -2)
    rows, columns = np.tril_indices(parts.shape[2])
    return products[..., rows, columns]


def write_parts(products: Any, on: Sequence[bool]) -> WriteParts:
    """How long each part is, how much of it points along the sum of those that are on, and how long the sum is.

    What points along the sum adds up to the sum's length: $\\sum_h w_h \\cdot s / \\|s\\| = \\|s\\|$ with
    $s = \\sum_h w_h$. Lengths add up to at least as much.

    Args:
        products: of one layer and query, as `write_products` gives them.
        on: which parts are in the sum, the rest being the last.

    >>> write_parts([25.0, 3.0, 1.0, 0.0, 0.0, 0.0], [True, True, True]).along.round(3).tolist()
    [4.95, 0.707, 0.0]
    """
    matrix = np.zeros((len(on), len(on)))
    rows, columns = np.tril_indices(len(on))
    matrix[rows, columns] = matrix[columns, rows] = products
    chosen = np.asarray(on, dtype=float)
    total = float(np.sqrt(max(chosen @ matrix @ chosen, 0.0)))
    along = chosen * (matrix @ chosen) / total if total > 0 else np.zeros(len(on))
    return WriteParts(np.sqrt(np.diag(matrix).clip(min=0.0)), along, total)


def head_scores(weights: Any, tokens: Sequence[str], is_self: bool) -> tuple[list[str], np.ndarray]:
    """What each head looks at, by the measures of `ttutor.inside`, on this text.

    Args:
        weights: ``layers heads queries keys``.
        tokens: the queries' tokens, which tell what occurs again.
        is_self: whether queries and keys are the same tokens.

    Returns:
        The names of the scores and ``layers heads scores``; the last is e to the entropy, a number of keys.
    """
    given = torch.as_tensor(_array(weights))[:, None]
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
    given = _array(weights)
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


def _array(values: Any) -> np.ndarray:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, dtype=np.float64)
