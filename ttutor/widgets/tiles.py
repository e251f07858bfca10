"""The moving tile: a softmax over a whole row, though only one tile of its scores exists at a time."""

from typing import Any

import numpy as np
import traitlets as t

from ttutor.widgets.base import Explorer, number_array, rounded_array, table_html, within

TILE = 4
SCORES = (2, 3, 1, 2, 4, 2, 3, 1, 3, 4, 2, 0, 1, 5, 3, 4)


class TilesExplorer(Explorer):
    """Attention in tiles, as FlashAttention computes it: set the scores, move the tile, and see the sum come out.

    A row's softmax needs the sum of all its powers. The tile sees four keys at a time; when a larger score comes, what
    was summed before is multiplied by e to (old maximum − new maximum), and nothing else has to be kept.

    Args:
        scores: a query's score with each key, the keys a multiple of four.
        step: how many tiles are done.

    >>> explorer = TilesExplorer(step=4)
    >>> explorer
    TilesExplorer(4 of 4 tiles of 4)
    >>> maximum, total = explorer.running()
    >>> weights = np.exp(np.array(explorer.scores) - maximum) / total
    >>> powers = np.exp(explorer.scores)
    >>> np.allclose(weights, powers / powers.sum())
    True
    """

    _module = "tiles"
    _title = "The moving tile"

    scores = t.List(t.Float(), help="as many as there were at first").tag(sync=True)
    step = t.Int(0).tag(sync=True)

    def __init__(self, scores: Any = SCORES, *, step: int = 1) -> None:
        row = number_array("scores", scores)
        if row.ndim != 1 or not row.size or row.size % TILE:
            raise ValueError(f"scores has shape {row.shape}, expected (keys,), a multiple of {TILE}")
        self.scores = row.tolist()
        super().__init__(step=step)

    @property
    def n_steps(self) -> int:
        """How many tiles there are."""
        return len(self.scores) // TILE

    def running(self, step: int | None = None) -> tuple[float, float]:
        """The largest score and the sum of powers, corrected tile by tile, up to the step that is shown."""
        maximum, total = -np.inf, 0.0
        for tile in np.reshape(self.scores, (-1, TILE))[: self.step if step is None else step]:
            larger = max(maximum, tile.max())
            total = total * np.exp(maximum - larger) + np.exp(tile - larger).sum()
            maximum = larger
        return float(maximum), float(total)

    def describe(self) -> str:
        """How far it is."""
        return f"{self.step} of {self.n_steps} tiles of {TILE}"

    def fallback_html(self) -> str:
        """The running maximum and sum, tile by tile."""
        running = [(step, *self.running(step)) for step in range(1, self.n_steps + 1)]
        rows = [[f"after tile {step}", f"{maximum:.2f}", f"{total:.3f}"] for step, maximum, total in running]
        caption = (
            f"Attention in tiles: {TILE} of {TILE * self.n_steps} scores at a time. When the maximum rises, "
            "the sum so far is multiplied by e to the old maximum minus the new one."
        )
        return table_html(caption, ["", "largest score so far", "sum of powers so far"], rows)

    @t.validate("scores")
    def _check_scores(self, proposal: dict) -> list[float]:
        row = number_array("scores", proposal["value"])
        if self.scores and row.shape != (len(self.scores),):
            raise ValueError(f"there were {len(self.scores)} scores, and now {row.size}; make a new TilesExplorer")
        return rounded_array("scores", row, row.shape, 2, axes="keys")

    @t.validate("step")
    def _check_step(self, proposal: dict) -> int:
        return within("step", proposal["value"], 0, self.n_steps, "it counts the tiles that are done")
