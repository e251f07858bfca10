"""Two races: what a head's width does to the softmax of raw scores, and of scores divided by the root of the width."""

import math
from functools import cache

import numpy as np
import torch
import traitlets as t

from ttutor.attention import attention_weights
from ttutor.inside.heads import attention_entropy
from ttutor.widgets.base import Explorer, rounded_array, table_html

WIDTHS = tuple(2**power for power in range(11))
N_KEYS = 8
N_DRAWS = 200
DEAD = 0.01
"""A gradient below this is called dead, as in chapter 2."""
_WORD = 2**32


class SoftmaxScaleExplorer(Explorer):
    """One query and its eight keys twice, raw and divided by the root of the width, as the head gets wider.

    The entries of query and keys are random with mean 0 and variance 1, drawn by a small generator that Python and the
    figure share. A wider head adds features to the same query and keys, so that one draw can be followed through all
    widths. What is left of the gradient is the mean of 200 draws.

    Args:
        width: ``d_head``, from 1 to 1024.
        draw: which random query and keys, counted from 0.

    >>> explorer = SoftmaxScaleExplorer(width=512)
    >>> explorer
    SoftmaxScaleExplorer(width 512, draw 3)
    >>> explorer.weights.max(axis=1).round(2).tolist()
    [1.0, 0.26]
    """

    _module = "softmax_scale"
    _title = "Two races"

    width = t.Int(4, min=1, max=WIDTHS[-1]).tag(sync=True)
    draw = t.Int(3, min=0, max=2**20 - 1).tag(sync=True)
    gradients = t.List(t.List(t.Float()), read_only=True).tag(sync=True)

    def __init__(self, *, width: int = 4, draw: int = 3) -> None:
        super().__init__(width=width, draw=draw)

    @property
    def scores(self) -> np.ndarray:
        """Raw and scaled dot products of the query with each key: ``2 keys``."""
        products = running_products(self.draw, N_KEYS)[self.width - 1]
        return np.stack([products, products / math.sqrt(self.width)])

    @property
    def weights(self) -> np.ndarray:
        """The softmax of both rows of scores, by ``ttutor.attention``."""
        return weigh(self.scores, 1.0)

    def describe(self) -> str:
        return f"width {self.width}, draw {self.draw}"

    def fallback_html(self) -> str:
        """What is left of the gradient by width, as a table."""
        rows = [
            [width, *(f"{value:.0%}" for value in pair)] for width, *pair in zip(WIDTHS, *self.gradients, strict=True)
        ]
        caption = (
            f"The softmax's gradient over {N_KEYS} keys, mean of {N_DRAWS} draws, as a share of the most that "
            "scaled scores have. It is the Frobenius norm of diag(p) − ppᵀ."
        )
        return table_html(caption, ["width of the head", "raw scores", "divided by √d"], rows)

    @t.default("gradients")
    def _mean_gradients(self) -> list[list[float]]:
        raw, scaled = average_curves(N_KEYS)["gradient"]
        return [[round(value / max(scaled), 3) for value in line] for line in (raw, scaled)]


def normal_numbers(draw: int, count: int) -> np.ndarray:
    """Numbers of mean 0 and variance 1: mulberry32 and Box-Muller, bit for bit the integers that the figure draws."""
    steps = np.arange(1, 2 * count + 1, dtype=np.uint64)
    seed = (draw * 0x9E3779B9) % _WORD
    a = ((seed + steps * 0x6D2B79F5) % _WORD).astype(np.uint32)
    b = (a ^ (a >> 15)) * (a | np.uint32(1))
    b = (b + (b ^ (b >> 7)) * (b | np.uint32(61))) ^ b
    uniform = (b ^ (b >> 14)).astype(np.float64) / _WORD
    return np.sqrt(-2 * np.log1p(-uniform[::2])) * np.cos(2 * np.pi * uniform[1::2])


@cache
def running_products(draw: int, n_keys: int) -> np.ndarray:
    """``features keys``: the query's dot product with each key over the first features of one draw."""
    numbers = normal_numbers(draw, WIDTHS[-1] * (1 + n_keys)).reshape(WIDTHS[-1], -1)
    return (numbers[:, :1] * numbers[:, 1:]).cumsum(axis=0)


def weigh(products: np.ndarray, factor: float) -> np.ndarray:
    """The softmax over the last axis of products times a factor, by ``ttutor.attention``."""
    # With the identity as keys, the product of query and key is the score itself.
    scores = torch.tensor(np.atleast_2d(products), dtype=torch.float64)
    identity = torch.eye(scores.shape[-1], dtype=torch.float64)
    return attention_weights(scores, identity, scale=factor).numpy().reshape(products.shape)


def measure(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Entropy in bits and size of the gradient of each row of weights."""
    rows = torch.tensor(weights, dtype=torch.float64).reshape(1, -1, 1, weights.shape[-1])  # each row as one head
    entropy = attention_entropy(rows).reshape(weights.shape[:-1])
    # the sum of squares of diag(p) - p pᵀ: its diagonal is p (1 - p), the rest -p p'
    squares = weights**2
    others = (squares.sum(axis=-1, keepdims=True) - squares).clip(min=0)
    gradient = np.sqrt((squares * ((1 - weights) ** 2 + others)).sum(axis=-1))
    return {"entropy": np.asarray(entropy.numpy() / math.log(2)), "gradient": np.asarray(gradient)}


@cache
def average_curves(n_keys: int) -> dict[str, list]:
    """Mean entropy in bits, mean gradient and share of dead gradients of 200 draws at every width, raw and scaled."""
    places = np.array(WIDTHS) - 1
    products = np.stack([running_products(draw, n_keys)[places] for draw in range(N_DRAWS)])
    lines: dict[str, list] = {"entropy": [], "gradient": [], "dead": []}
    for power in (0.0, -0.5):
        rows = []
        for i, width in enumerate(WIDTHS):
            found = measure(weigh(products[:, i], width**power))
            found["dead"] = found["gradient"] < DEAD
            rows.append({name: float(values.mean()) for name, values in found.items()})
        for name, line in lines.items():
            line.append(rounded_array(name, [row[name] for row in rows], (len(WIDTHS),), 3, axes="widths"))
    return lines
