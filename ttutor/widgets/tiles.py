"""The moving tile: a softmax over whole rows, though only one tile of the scores exists at a time."""

import numpy as np
import torch
import traitlets as t

from ttutor.widgets.base import Explorer, rounded_matrix, table_html, within

N_TOKENS, TILE = 12, 4
N_STEPS = (N_TOKENS // TILE) ** 2


class TilesExplorer(Explorer):
    """Attention in tiles, as FlashAttention computes it: drag the step, and watch the running maxima and sums.

    A row's softmax needs the sum of all its powers. The tile sees four keys at a time; when a larger score comes, what
    was summed before is multiplied by e to (old maximum − new maximum), and nothing else has to be kept.

    Args:
        step: how many of the nine tiles are done.
        seed: which random scores, of variance 2.

    >>> explorer = TilesExplorer(step=9)
    >>> explorer
    TilesExplorer(9 of 9 tiles of 4 x 4)
    >>> maximum, total = explorer.running()
    >>> weights = np.exp(np.array(explorer.scores) - maximum[:, None]) / total[:, None]
    >>> np.allclose(weights, torch.tensor(explorer.scores).softmax(-1))
    True
    """

    _module = "tiles"
    _title = "The moving tile"
    _state_keys = ("scores", "step")

    scores = t.List(t.List(t.Float()), read_only=True).tag(sync=True)
    step = t.Int(0).tag(sync=True)

    def __init__(self, *, step: int = 1, seed: int = 0) -> None:
        drawn = 2**0.5 * torch.randn(
            N_TOKENS, N_TOKENS, generator=torch.Generator().manual_seed(seed), dtype=torch.float32
        )
        self.set_trait("scores", rounded_matrix("scores", drawn, (N_TOKENS, N_TOKENS), 2))
        super().__init__(step=step)

    def running(self, step: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Each row's largest score and the sum of its powers, corrected tile by tile, up to the step that is shown."""
        table = np.array(self.scores)
        maximum, total = np.full(N_TOKENS, -np.inf), np.zeros(N_TOKENS)
        for place in range(self.step if step is None else step):
            row, column = divmod(place, N_TOKENS // TILE)
            rows = slice(row * TILE, (row + 1) * TILE)
            tile = table[rows, column * TILE : (column + 1) * TILE]
            larger = np.maximum(maximum[rows], tile.max(axis=1))
            total[rows] = total[rows] * np.exp(maximum[rows] - larger) + np.exp(tile - larger[:, None]).sum(axis=1)
            maximum[rows] = larger
        return maximum, total

    def describe(self) -> str:
        """How far it is."""
        return f"{self.step} of {N_STEPS} tiles of {TILE} x {TILE}"

    def fallback_html(self) -> str:
        """The running maximum and sum of the first row, tile by tile."""
        rows = []
        for step in range(1, N_TOKENS // TILE + 1):
            maximum, total = self.running(step)
            rows.append([f"after tile {step}", f"{maximum[0]:.2f}", f"{total[0]:.3f}"])
        caption = (
            f"Attention in tiles: {TILE} x {TILE} of {N_TOKENS} x {N_TOKENS} scores at a time. When the maximum rises, "
            "the sum so far is multiplied by e to the old maximum minus the new one."
        )
        return table_html(caption, ["first row", "largest score so far", "sum of powers so far"], rows)

    @t.validate("step")
    def _check_step(self, proposal: dict) -> int:
        return within("step", proposal["value"], 0, N_STEPS, "it counts the tiles that are done")
