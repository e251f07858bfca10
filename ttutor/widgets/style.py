"""One visual language for Matplotlib figures, explorers and diagrams.

A colour has one meaning throughout the course: queries are blue, keys orange, values green, attention weights purple.
The hues are those of Okabe and Ito (2008), which readers with the common colour-vision deficiencies tell apart. Colours
fill shapes; text stays in the foreground colour; nothing is told by colour alone.
"""

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

PALETTE: dict[str, str] = {
    "query": "#0072B2",
    "key": "#E69F00",
    "value": "#009E73",
    "weights": "#CC79A7",
    "memory": "#56B4E9",
    "decoder": "#7A3E1D",
    "loss": "#D55E00",
    "masked": "#C9CCD1",
}
"""Name of a part to its fill colour on a light page; ``memory`` is the encoder, ``loss`` also gradients and wrong."""

PALETTE_DARK: dict[str, str] = {**PALETTE, "weights": "#A34E7C", "decoder": "#C08A68", "masked": "#3A4048"}
"""The same names on a dark page. Purple is deeper there, so that light text on it keeps a contrast of 4.5:1."""

OUTLINES: dict[str, str] = {**PALETTE, "key": "#8A6100", "memory": "#22739F", "masked": "#767676"}
"""Outlines that keep a 3:1 contrast with a light page, for fills that are lighter than that."""

OUTLINES_DARK: dict[str, str] = {**PALETTE_DARK, "weights": PALETTE["weights"], "masked": "#8A8F98"}
"""Outlines that keep a 3:1 contrast with a dark page."""

PAGE: dict[str, str] = {
    "page": "#FFFFFF",
    "text": "#1F2328",
    "muted": "#57606A",
    "surface": "#F5F6F8",
    "border": "#D0D4DA",
    "link": "#00629B",
}
"""What is no part of a model: the book's page, its text and lines, its links. Text on page or surface: 4.5:1."""

PAGE_DARK: dict[str, str] = {
    "page": "#14181E",
    "text": "#E6EDF3",
    "muted": "#A3ADB8",
    "surface": "#1D232B",
    "border": "#39424D",
    "link": "#6FC1F0",
}
"""The same on a dark page."""

STYLE_FILE = Path(str(files("ttutor.widgets") / "ttutor.mplstyle"))


def use_style() -> None:
    """Make every later Matplotlib figure look like the course's figures.

    White background (readable on a dark page too), the palette as the colour cycle, a resolution that keeps a notebook
    small, and fixed SVG identifiers, so that the same cell writes the same bytes.

    >>> use_style()
    >>> import matplotlib
    >>> matplotlib.rcParams["svg.hashsalt"]
    'ttutor'
    """
    import matplotlib.style

    matplotlib.style.use(STYLE_FILE)


def scheme_css(selector: str) -> str:
    """The palette as CSS variables of an element: of a light page, and of a dark one where the page, Jupyter or the
    system says so.

    >>> "--query:#0072B2" in scheme_css(".picture")
    True
    """
    light, dark = _variables(PALETTE, OUTLINES, PAGE), _variables(PALETTE_DARK, OUTLINES_DARK, PAGE_DARK)
    return (
        f"{selector}{{{light}}}"
        f"@media(prefers-color-scheme:dark){{html:not([data-theme=light]) "
        f"body:not([data-jp-theme-light=true]) {selector}{{{dark}}}}}"
        f"html[data-theme=dark] {selector},body[data-jp-theme-light=false] {selector}{{{dark}}}"
    )


def _variables(fills: dict[str, str], lines: dict[str, str], page: dict[str, str]) -> str:
    parts = "".join(f"--{name}:{fills[name]};--{name}-line:{lines[name]};" for name in fills)
    return parts + "".join(f"--{name}:{page[name]};" for name in ("text", "muted", "border", "page"))


def weights_cmap() -> Any:
    """The purple scale of attention weights: white at 0, the palette's purple at 1; masked entries are grey.

    >>> from matplotlib.colors import to_hex
    >>> to_hex(weights_cmap()(0.0)), to_hex(weights_cmap()(1.0)) == PALETTE["weights"].lower()
    ('#ffffff', True)
    """
    from matplotlib.colors import LinearSegmentedColormap

    scale = LinearSegmentedColormap.from_list("ttutor-weights", ["#FFFFFF", PALETTE["weights"]])
    return scale.with_extremes(bad=PALETTE["masked"])


def heatmap(
    ax: Any,
    weights: Any,
    query_tokens: list[str] | tuple[str, ...],
    key_tokens: list[str] | tuple[str, ...] | None = None,
    *,
    mask: Any = None,
    values: bool | None = None,
) -> Any:
    """Draw attention weights on Matplotlib axes: one row a query, one column a key, purple from 0 to 1.

    Args:
        ax: the Matplotlib axes to draw on.
        weights: ``queries keys``, each entry between 0 and 1 (a tensor, an array or nested lists).
        query_tokens: the labels of the rows.
        key_tokens: the labels of the columns; the same as ``query_tokens`` when left out.
        mask: ``queries keys``, bool, True = may attend; what is False is drawn grey and hatched.
        values: write each weight into its cell; by default up to 8 by 8 cells.

    Returns:
        The image, ready for ``figure.colorbar(image, label="attention weight")``.

    >>> import matplotlib.pyplot as plt
    >>> figure, ax = plt.subplots()
    >>> image = heatmap(ax, [[1.0, 0.0], [0.5, 0.5]], ["I", "sleep"])
    >>> ax.get_xlabel(), [label.get_text() for label in ax.get_yticklabels()]
    ('keys (attended to)', ['I', 'sleep'])
    >>> plt.close(figure)
    """
    key_tokens = query_tokens if key_tokens is None else key_tokens
    grid = _grid("weights", weights, query_tokens, key_tokens).astype(float)
    allowed = np.ones(grid.shape, bool) if mask is None else _grid("mask", mask, query_tokens, key_tokens).astype(bool)
    image = ax.imshow(np.ma.masked_where(~allowed, grid), cmap=weights_cmap(), vmin=0.0, vmax=1.0, aspect="equal")
    ax.set_xticks(range(len(key_tokens)), key_tokens, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(query_tokens)), query_tokens)
    ax.set_xlabel("keys (attended to)")
    ax.set_ylabel("queries (attending)")
    ax.grid(False)
    _hatch(ax, ~allowed)
    if values if values is not None else max(grid.shape) <= 8:
        for row, column in np.argwhere(allowed):
            ax.text(column, row, f"{grid[row, column]:.2f}", ha="center", va="center", fontsize="small")
    return image


def _grid(name: str, values: Any, rows: Any, columns: Any) -> np.ndarray:
    """Turn anything array-like into an array of the size that the labels ask for."""
    grid = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    if grid.shape != (len(rows), len(columns)):
        raise ValueError(
            f"{name} has shape {grid.shape}, but there are {len(rows)} query tokens and {len(columns)} key tokens; "
            f"give one row per query and one column per key (one head of one sentence)"
        )
    return grid


def _hatch(ax: Any, cells: np.ndarray) -> None:
    """Hatch the cells that are True, so that masked is told by more than its colour."""
    from matplotlib.patches import Rectangle

    for row, column in np.argwhere(cells):
        corner = (column - 0.5, row - 0.5)
        ax.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="////", edgecolor=OUTLINES["masked"], linewidth=0))
