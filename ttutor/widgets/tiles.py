"""The moving tile: a softmax over whole rows, though only one tile of the scores exists at a time."""

from typing import Any

import numpy as np
import traitlets as t

from ttutor.widgets.base import Explorer, number_array, rounded_array, table_html, within

TILE = 4
SCORES = (
    (4, 3, 1, 2, 5, 4, 2, 0, 3, 4, 4, 6),
    (3, 1, 3, 0, 3, 3, 3, 1, 3, 0, 4, 5),
    (2, 0, 4, 1, 0, 0, 6, 2, 5, 1, 1, 5),
)


class TilesExplorer(Explorer):
    """Attention in tiles, as FlashAttention computes it: drag the step, and watch a row's running maximum and sum.

    A row's softmax needs the sum of all its powers. The tile sees four keys at a time; when a larger score comes, what
    was summed before is multiplied by e to (old maximum − new maximum), and nothing else has to be kept.

    Args:
        scores: ``queries keys``, the keys a multiple of four.
        step: how many tiles are done.

    >>> explorer = TilesExplorer(step=9)
    >>> explorer
    TilesExplorer(9 of 9 tiles of 1 x 4)
    >>> maximum, total = explorer.running()
    >>> weights = np.exp(np.array(explorer.scores) - maximum[:, None]) / total[:, None]
    >>> powers = np.exp(explorer.scores)
    >>> np.allclose(weights, powers / powers.sum(axis=1, keepdims=True))
    True
    """

    _module = "tiles"
    _title = "The moving tile"

    scores = t.List(t.List(t.Float()), read_only=True).tag(sync=True)
    step = t.Int(0).tag(sync=True)

    def __init__(self, scores: Any = SCORES, *, step: int = 1) -> None:
        table = number_array("scores", scores)
        if table.ndim != 2 or not table.size or table.shape[1] % TILE:
            raise ValueError(f"scores has shape {table.shape}, expected (queries, keys), keys a multiple of {TILE}")
        self.set_trait("scores", rounded_array("scores", table, table.shape, 2, axes="queries, keys"))
        super().__init__(step=step)

    @property
    def n_steps(self) -> int:
        """How many tiles there are, row by row."""
        return len(self.scores) * len(self.scores[0]) // TILE

    def running(self, step: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Each row's largest score and the sum of its powers, corrected tile by tile, up to the step that is shown."""
        table = np.array(self.scores)
        maximum, total = np.full(len(table), -np.inf), np.zeros(len(table))
        for place in range(self.step if step is None else step):
            row, column = divmod(place, table.shape[1] // TILE)
            tile = table[row, column * TILE : (column + 1) * TILE]
            larger = max(maximum[row], tile.max())
            total[row] = total[row] * np.exp(maximum[row] - larger) + np.exp(tile - larger).sum()
            maximum[row] = larger
        return maximum, total

    def describe(self) -> str:
        """How far it is."""
        return f"{self.step} of {self.n_steps} tiles of 1 x {TILE}"

    def fallback_html(self) -> str:
        """The running maximum and sum of the first row, tile by tile."""
        rows = []
        for step in range(1, len(self.scores[0]) // TILE + 1):
            maximum, total = self.running(step)
            rows.append([f"after tile {step}", f"{maximum[0]:.2f}", f"{total[0]:.3f}"])
        caption = (
            f"Attention in tiles: {TILE} of {TILE * self.n_steps} scores at a time. When the maximum rises, "
            "the sum so far is multiplied by e to the old maximum minus the new one."
        )
        return table_html(caption, ["first row", "largest score so far", "sum of powers so far"], rows)

    @t.validate("step")
    def _check_step(self, proposal: dict) -> int:
        return within("step", proposal["value"], 0, self.n_steps, "it counts the tiles that are done")
