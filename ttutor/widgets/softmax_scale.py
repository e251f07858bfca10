"""Softmax and scale: what the width of a head does to the spread of its scores, and the spread to softmax."""

import math
from functools import cache

import numpy as np
import torch
import traitlets as t

from ttutor.attention import attention_weights
from ttutor.inside.heads import attention_entropy
from ttutor.widgets.base import Explorer, one_of, rounded_array, table_html, within

WIDTHS = tuple(2**power for power in range(11))
N_KEYS = (4, 8, 16, 32, 64)
N_DRAWS = 200
DEAD = 0.01
"""A gradient below this is called dead, as in chapter 2."""
_LOOK = (
    "Drag the width. Across the grey band, from −1 to 1, a weight grows 7.4 times (e²). Without the scale the scores "
    "outgrow the band, and one key takes all. Divide by √d_head, or set the temperature to it: only the spread matters."
)
_LESSON = [
    _LOOK,
    f"Gradient: the Frobenius norm of diag(p) − ppᵀ, at most 0.5. Dead: below {DEAD}.",
    f"Mean of {N_DRAWS} draws, T = 1",
]
"""What to look at, what the gradient is, and what the lines are."""
_LAST_DRAW = 2**20
_WORD = 2**32


class SoftmaxScaleExplorer(Explorer):
    """One query and its keys: the scores, their softmax, and what is left of its gradient, as the head gets wider.

    The entries of query and keys are random with mean 0 and variance 1, drawn by a small generator that Python and the
    figure share. A wider head adds features to the same query and keys, so that one draw can be followed through all
    widths. The lines over the width are averages of 200 draws, computed when the figure is made, at temperature 1.

    Args:
        width: ``d_head``, a power of two from 1 to 1024.
        n_keys: 4, 8, 16, 32 or 64.
        scaled: whether the scores are divided by the square root of ``d_head``.
        temperature: what the scores are divided by besides.
        draw: which random query and keys, counted from 0.
        quantity: the line that is shown: "entropy", "gradient" or "dead" (the share of draws whose gradient is dead).

    >>> explorer = SoftmaxScaleExplorer(width=64)
    >>> explorer
    SoftmaxScaleExplorer(width 64, 16 keys, not scaled, temperature 1.0, draw 0)
    >>> explorer.scaled = True
    >>> bool(explorer.weights.max() < 0.5)
    True
    """

    _module = "softmax_scale"
    _title = "Softmax and scale"
    _state_keys = ("width", "n_keys", "scaled", "temperature", "draw", "quantity", "curves", "lesson")

    width = t.Int(16).tag(sync=True)
    n_keys = t.Int(16).tag(sync=True)
    scaled = t.Bool(False).tag(sync=True)
    temperature = t.Float(1.0).tag(sync=True)
    draw = t.Int(0).tag(sync=True)
    quantity = t.Unicode("entropy").tag(sync=True)
    curves = t.Dict(read_only=True).tag(sync=True)
    lesson = t.List(t.Unicode(), _LESSON, read_only=True).tag(sync=True)

    def __init__(
        self,
        *,
        width: int = 16,
        n_keys: int = 16,
        scaled: bool = False,
        temperature: float | int = 1.0,
        draw: int = 0,
        quantity: str = "entropy",
    ) -> None:
        super().__init__(
            width=width,
            n_keys=n_keys,
            scaled=scaled,
            temperature=float(temperature),
            draw=draw,
            quantity=quantity,
        )

    @property
    def scores(self) -> np.ndarray:
        """What goes into the softmax: dot products of the query with each key, divided as the settings say."""
        return running_products(self.draw)[WIDTHS.index(self.width), : self.n_keys] * self._factor()

    @property
    def weights(self) -> np.ndarray:
        """The softmax of the scores, by ``ttutor.attention``."""
        return weigh(running_products(self.draw)[WIDTHS.index(self.width), : self.n_keys], self._factor())

    @property
    def entropy(self) -> float:
        """Entropy of the weights, in bits."""
        return float(measure(self.weights)["entropy"])

    @property
    def gradient(self) -> float:
        """Size of the softmax's gradient: the Frobenius norm of diag(p) - p pᵀ."""
        return float(measure(self.weights)["gradient"])

    def describe(self) -> str:
        """The settings."""
        scaled = "scaled" if self.scaled else "not scaled"
        return f"width {self.width}, {self.n_keys} keys, {scaled}, temperature {self.temperature}, draw {self.draw}"

    def fallback_html(self) -> str:
        """The averages by width, as a table."""
        lines, rows = self.curves[str(self.n_keys)], []
        for i, width in enumerate(WIDTHS):
            cells = [f"{lines[name][which][i]:.2f}" for which in (0, 1) for name in ("entropy", "gradient", "dead")]
            rows.append([width, *cells])
        heads = [
            f"{name}, {which}"
            for which in ("not scaled", "scaled")
            for name in ("entropy (bits)", "gradient", "share dead")
        ]
        caption = (
            f"Softmax over {self.n_keys} keys by width d_head, mean of {N_DRAWS} draws at temperature 1. The entropy "
            f"is at most log₂ {self.n_keys} = {math.log2(self.n_keys):.0f} bits; the gradient is the Frobenius norm of "
            f"diag(p) − ppᵀ, dead below {DEAD}."
        )
        return table_html(caption, ["d_head", *heads], rows)

    def _factor(self) -> float:
        return (self.width**-0.5 if self.scaled else 1.0) / self.temperature

    @t.default("curves")
    def _average_curves(self) -> dict:
        return average_curves()

    @t.validate("width", "n_keys", "quantity")
    def _check_choice(self, proposal: dict) -> int | str:
        name = proposal["trait"].name
        allowed = {"width": WIDTHS, "n_keys": N_KEYS, "quantity": ("entropy", "gradient", "dead")}[name]
        return one_of(name, proposal["value"], allowed)

    @t.validate("temperature")
    def _check_temperature(self, proposal: dict) -> float:
        return within("temperature", proposal["value"], 0.001, 1_000_000)

    @t.validate("draw")
    def _check_draw(self, proposal: dict) -> int:
        return within("draw", proposal["value"], 0, _LAST_DRAW - 1)


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
def running_products(draw: int) -> np.ndarray:
    """``widths keys``: the query's dot product with each key over the first ``width`` features of one draw."""
    numbers = normal_numbers(draw, WIDTHS[-1] * (1 + N_KEYS[-1])).reshape(WIDTHS[-1], -1)
    return (numbers[:, :1] * numbers[:, 1:]).cumsum(axis=0)[np.array(WIDTHS) - 1]


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
def average_curves() -> dict[str, dict[str, list]]:
    """For each number of keys and each quantity: the mean of 200 draws at every width, not scaled and scaled."""
    products = np.stack([running_products(draw) for draw in range(N_DRAWS)])
    curves: dict[str, dict[str, list]] = {}
    for n_keys in N_KEYS:
        lines: dict[str, list] = {"entropy": [], "gradient": [], "dead": []}
        for power in (0.0, -0.5):
            rows = []
            for i, width in enumerate(WIDTHS):
                found = measure(weigh(products[:, i, :n_keys], width**power))
                found["dead"] = found["gradient"] < DEAD
                rows.append({name: float(values.mean()) for name, values in found.items()})
            for name, line in lines.items():
                means = [row[name] for row in rows]
                line.append(rounded_array(name, means, (len(WIDTHS),), 3, axes="widths"))
        curves[str(n_keys)] = lines
    return curves
