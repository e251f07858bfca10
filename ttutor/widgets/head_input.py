"""Reads what a `HeadsExplorer` is given, and decides how much of it one figure holds."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ttutor.widgets.base import number_array

__all__ = ["MAX_HEADS", "MAX_NUMBERS", "MAX_TOKENS", "product_table", "shares", "vectors", "what_fits"]

MAX_TOKENS, MAX_HEADS, MAX_NUMBERS = 24, 16, 3600


def shares(weights: Any, n_queries: int, n_keys: int) -> np.ndarray:
    """Attention weights with an axis for layers, each a share from 0 to 1."""
    given = number_array("weights", weights)
    given = given[None] if given.ndim == 3 else given
    if given.ndim != 4 or given.shape[2:] != (n_queries, n_keys) or 0 in given.shape:
        raise ValueError(
            f"weights has shape {given.shape}, expected (layers, heads, {n_queries}, {n_keys}) or (heads, {n_queries}, "
            f"{n_keys}): queries and keys are the tokens, of one text"
        )
    wrong = ~((given > -1e-3) & (given < 1.001))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"weights{''.join(f'[{i}]' for i in place)} is {given[place]}; weights are shares from 0 to 1, after the "
            "softmax"
        )
    return given.clip(0.0, 1.0)


def vectors(writes: Any, rest: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray | None]:
    """Writes and rest with an axis for layers, of the sizes that the weights have."""
    read = [None if one is None else number_array(name, one) for name, one in (("writes", writes), ("rest", rest))]
    given, further = (
        one[None] if one is not None and one.ndim == n else one for one, n in zip(read, (3, 2), strict=True)
    )
    if given.ndim != 4 or given.shape[:3] != shape[:3]:
        raise ValueError(f"writes has shape {given.shape}, expected {shape[:3]} and d_model (layers, heads, queries)")
    for name, one in (("writes", given), ("rest", further)):
        if one is not None and not np.isfinite(one).all():
            raise ValueError(f"{name} holds a number that is NaN or infinite; every entry has to be finite")
    wanted = (shape[0], shape[2], given.shape[3])
    if further is not None and further.shape != wanted:
        raise ValueError(f"rest has shape {further.shape}, expected {wanted} (layers, queries, d_model)")
    return given, further


def product_table(products: Any, shape: tuple[int, ...], n_heads: int) -> np.ndarray:
    given, n_parts = number_array("products", products), n_heads + 1
    wanted = (shape[0], shape[2], n_parts * (n_parts + 1) // 2)
    if given.shape != wanted:
        raise ValueError(f"products has shape {given.shape}, expected {wanted}; make it with write_products")
    return given


def what_fits(
    shape: tuple[int, ...], layers: Sequence[int] | None, with_writes: bool
) -> tuple[tuple[int, int], list[int], str]:
    """How many queries and keys are shown, which layers, and in words what is left out (nothing if all is shown).

    Raises:
        IndexError: there is no such layer.
    """
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
