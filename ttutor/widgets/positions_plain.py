"""The positions explorer for readers without scripts: the numbers of each view as a table."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from ttutor.positions import alibi_slopes, rotary_frequencies

if TYPE_CHECKING:
    from ttutor.widgets.positions import PositionsExplorer

Plain = tuple[str, list[str], list[list[str]]]
"""A caption, the heads of the columns, and the rows."""


def plain_view(explorer: PositionsExplorer) -> str:
    """The numbers of the view that is chosen, as an HTML table."""
    caption, heads, rows = _MAKERS[explorer.view](explorer)
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in heads)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>' for name, *cells in rows
    )
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _table(explorer: PositionsExplorer) -> Plain:
    shown = explorer.encoding[:16, :8]
    what = "A table of positions" if explorer.table else "Sinusoidal positions"
    n_positions, n_features = explorer.total or [explorer.length, explorer.d_model]
    caption = (
        f"{what}: each row is a position's vector, each column a feature; {len(shown)} of {n_positions} positions and "
        f"{shown.shape[1]} of {n_features} features."
    )
    rows = [[str(p), *(f"{value:.3f}" for value in row)] for p, row in enumerate(shown)]
    return caption, ["position", *map(str, range(shown.shape[1]))], rows


def _clocks(explorer: PositionsExplorer) -> Plain:
    names = {"fast": "fastest", "turn": "first that does not repeat", "slow": "slowest", "all": "all"}
    rows = [[name, ", ".join(map(str, explorer.look_alike(reads)))] for reads, name in names.items()]
    caption = (
        f"Each pair of features is a hand of a clock. Which of {explorer.length} positions look like position "
        f"{min(explorer.position, explorer.length - 1)} if tips closer than {explorer.tolerance:g} look the same?"
    )
    return caption, ["hands read", "positions that look alike"], rows


def _similarity(explorer: PositionsExplorer) -> Plain:
    products = explorer.similarity
    lines = [np.diagonal(products, k) for k in range(min(explorer.length, 16))]
    rows = [[str(k), f"{line.mean():.3f}", f"{line.std():.3f}"] for k, line in enumerate(lines)]
    what = "after random projections to queries and keys" if explorer.projected else "of the position vectors"
    caption = f"Products {what} that stand k apart: the mean over all positions, and how far they differ."
    return caption, ["distance k", "mean", "standard deviation"], rows


def _rotary(explorer: PositionsExplorer) -> Plain:
    turn = rotary_frequencies(8)[explorer.pair].item()
    m, n = explorer.query_position, explorer.key_position
    rows = [[str(m + by), str(n + by), str(m - n), f"{explorer.score_at(m + by, n + by):.3f}"] for by in (0, 1, 10)]
    rows.append([str(m + 1), str(n), str(m + 1 - n), f"{explorer.score_at(m + 1, n):.3f}"])
    radians = "radian" if turn == 1 else "radians"
    caption = (
        f"Rotary positions: query {explorer.query} and key {explorer.key} turn by {turn:g} {radians} a position. The "
        f"score stays while both move together."
    )
    return caption, ["query position m", "key position n", "m − n", "score"], rows


def _alibi(explorer: PositionsExplorer) -> Plain:
    slopes = alibi_slopes(explorer.n_heads).tolist()
    rows = [[str(h), f"{m:.4f}", f"{-m * explorer.distance:.3f}"] for h, m in enumerate(slopes, start=1)]
    caption = f"ALiBi with {explorer.n_heads} heads: each takes its slope times the distance off the score."
    return caption, ["head", "slope", f"added at distance {explorer.distance}"], rows


_MAKERS = {"table": _table, "clocks": _clocks, "similarity": _similarity, "rotary": _rotary, "alibi": _alibi}
