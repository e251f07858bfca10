r"""Rotary positions on a grid: a patch of an image has a row and a column, and queries and keys are turned by both.

$$\langle R_{(r,c)}\,q,\; R_{(r',c')}\,k\rangle = \langle q,\; R_{(r'-r,\,c'-c)}\,k\rangle$$

Half of the pairs of features are turned by the row, half by the column: the axial form in Heo et al. (2024), section
3.1. A model can then be shown larger images than in training, though not without loss.
"""

import torch
from einops import rearrange, repeat
from torch import nn

from ttutor.positions.rotary import Rotation, rotary_frequencies

__all__ = ["RotaryGrid"]


class RotaryGrid(nn.Module):
    """Gives the rotation of each patch of a grid, row by row; it has no parameters and no last row.

    Args:
        d_head: width of a head, a multiple of four.
        base: the larger, the slower the last pairs of each half turn; 100 in the paper, for grids are short.

    Example:
        >>> from ttutor.encoder import Encoder
        >>> rotation = RotaryGrid(d_head=4)(n_rows=2, n_columns=3, n_first=1)  # for six patches and a class token
        >>> Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=1)(torch.randn(5, 7, 8), rotation=rotation).shape
        torch.Size([5, 7, 8])
    """

    def __init__(self, d_head: int, *, base: float = 100.0) -> None:
        super().__init__()
        if d_head < 4 or d_head % 4:
            raise ValueError(f"rows and columns both need pairs of features, so d_head must be 4, 8, ..., not {d_head}")
        self.frequencies = tuple(rotary_frequencies(d_head // 2, base).tolist())  # a tuple, as in RotaryPositions

    def forward(self, n_rows: int, n_columns: int, *, n_first: int = 0, device: torch.device | None = None) -> Rotation:
        """The turns of the patches of such an image.

        Args:
            n_rows, n_columns: how many patches stand one below, and one beside, another.
            n_first: how many tokens stand before the patches (class token, registers); they are not turned.
            device: where the rotation is made.
        """
        frequencies = torch.tensor(self.frequencies, dtype=torch.float64)
        rows, columns = (torch.arange(n, dtype=torch.float64) for n in (n_rows, n_columns))
        of_row = repeat(rows[:, None] * frequencies, "rows pairs -> (rows columns) pairs", columns=n_columns)
        of_column = repeat(columns[:, None] * frequencies, "columns pairs -> (rows columns) pairs", rows=n_rows)
        angle = torch.cat([of_row, of_column], dim=-1)
        angle = torch.cat([angle.new_zeros(n_first, angle.shape[-1]), angle])
        angle = rearrange(angle, "tokens pairs -> 1 1 tokens pairs").to(device)
        return Rotation(angle.cos(), angle.sin())
