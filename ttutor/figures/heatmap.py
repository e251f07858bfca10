"""A table of numbers as shades: attention weights, correlations, losses by layer and position."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ttutor.figures.plot import Plot, array, number
from ttutor.widgets.style import OUTLINES, PAGE, PALETTE

_MOST_NUMBERS = 8
_MOST_SHAPES = 200  # beyond, the cells are one picture; hatching needs shapes up to twice as many
_MOST_NAMES = 15
_DEEPEST = {"weights": 1.0}
_DEEP = 0.75  # of the darker hues, so that the numbers on them can be read


@dataclass(repr=False, eq=False)
class Heatmap(Plot):
    """Rows by columns, the deeper the larger; queries are rows. Negative numbers are vermilion.

    Args:
        values: ``rows columns``.
        rows: their names.
        columns: their names; the same as the rows' when left out.
        mask: ``rows columns``, bool, True = may attend; what is False is hatched and has no number.
        numbers: how a number is written into its cell; by default ``".2f"`` up to 8 columns, and not beyond.
        part: whose colour of the palette it has.
        top: the number with the full colour; by default 1, or the largest in size if that is more.
        rings: cells, each a row and a column, that are outlined.

    Raises:
        ValueError: the names do not fit the values.

    >>> Heatmap([[1.0, 0.0], [0.5, 0.5]], ["I", "sleep"], title="Weights", x="keys", y="queries").describe()
    'Weights. Heat map of 2 rows (queries) by 2 columns (keys): I largest at I (1), sleep largest at I (0.5).'
    """

    values: Any
    rows: Sequence[str]
    columns: Sequence[str] | None = None
    mask: Any = None
    numbers: str | None = None
    part: str = "weights"
    top: float | None = None
    rings: Sequence[tuple[int, int]] = ()

    def table(self) -> np.ma.MaskedArray:
        """The values, masked where a query may not attend."""
        table = array(self.values)
        size = (len(self.rows), len(self.columns or self.rows))
        if table.shape != size:
            raise ValueError(
                f"values has shape {table.shape}, but there are {size[0]} names of rows and {size[1]} of columns"
            )
        return np.ma.masked_array(table, mask=False if self.mask is None else ~array(self.mask).astype(bool))

    def draw(self, ax: Any) -> None:
        from matplotlib.patches import Rectangle

        table = self.table()
        top = self.top or max(1.0, float(np.abs(table).max()))
        if table.size > (_MOST_SHAPES if self.mask is None else 2 * _MOST_SHAPES):
            self._draw_picture(ax, table / top)
        else:
            self._draw_cells(ax, table, top)
        for row, column in self.rings:
            ring: Any = {"fill": False, "edgecolor": PAGE["text"], "linewidth": 1.4}
            ax.add_patch(Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, **ring))
        columns = self.columns or self.rows
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        named = range(0, len(columns), 1 + len(columns) // _MOST_NAMES)
        ax.set_xticks(named, [columns[at] for at in named], **(slanted if max(map(len, columns)) > 3 else {}))
        named = range(0, len(self.rows), 1 + len(self.rows) // _MOST_NAMES)
        ax.set_yticks(named, [self.rows[at] for at in named])
        ax.set_xlim(-0.5, len(columns) - 0.5)
        ax.set_ylim(len(self.rows) - 0.5, -0.5)
        ax.grid(False)

    def _draw_cells(self, ax: Any, table: Any, top: float) -> None:
        from matplotlib.patches import Rectangle

        written = self.numbers if self.numbers is not None else (".2f" if table.shape[1] <= _MOST_NUMBERS else "")
        for (row, column), value in np.ndenumerate(table.data):
            corner = (column - 0.5, row - 0.5)
            if np.ma.getmaskarray(table)[row, column]:
                look: Any = {"fill": False, "hatch": "////", "edgecolor": OUTLINES["masked"]}
                ax.add_patch(Rectangle(corner, 1, 1, linewidth=0, **look))
                continue
            part = self.part if value >= 0 else "loss"
            depth = _DEEPEST.get(part, _DEEP) * min(abs(value) / top, 1)
            ax.add_patch(Rectangle(corner, 1, 1, color=PALETTE[part], alpha=depth, linewidth=0))
            if written:
                ax.text(column, row, format(value, written), ha="center", va="center_baseline", fontsize="small")
        for spine in ax.spines.values():
            spine.set(visible=True, color=PAGE["border"])
        ax.set_aspect("auto" if written else "equal")

    def _draw_picture(self, ax: Any, shares: Any) -> None:
        """Many cells as one picture whose colour is the part's and whose opacity is the number."""
        from matplotlib.colors import to_rgb

        positive = np.array(to_rgb(PALETTE[self.part]))
        colour = np.where((shares.filled(0) >= 0)[..., None], positive, np.array(to_rgb(PALETTE["loss"])))
        ax.imshow(np.dstack([colour, np.abs(shares).filled(0).clip(0, 1)]), interpolation="none")

    def kind(self) -> str:
        size = f"{len(self.rows)} rows ({self.y or 'rows'}) by {len(self.columns or self.rows)} columns"
        return f"Heat map of {size} ({self.x or 'columns'})"

    def names(self) -> list[str]:
        return list(self.rows)

    def data(self) -> str:
        table, columns = self.table(), self.columns or self.rows
        if len(self.rows) > 12:
            row, column = np.unravel_index(table.argmax(), table.shape)
            return f"the largest is {self.rows[int(row)]}, {columns[int(column)]} ({number(table.max())})"
        return ", ".join(
            f"{name} hidden"
            if row.mask.all()
            else f"{name} largest at {columns[int(row.argmax())]} ({number(row.max())})"
            for name, row in zip(self.rows, table, strict=True)
        )
