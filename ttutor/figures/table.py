"""Numbers in rows and columns, with lines between."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ttutor.figures.plot import array


def span(values: Any, form: str = ".2f") -> str:
    """The lowest and the highest of several results, as text; one number where both read the same.

    >>> span([0.912, 0.871, 0.953]), span([0.5, 0.5], ".0%")
    ('0.87 to 0.95', '50%')
    """
    numbers = array(values)
    low, high = format(numbers.min(), form), format(numbers.max(), form)
    return low if low == high else f"{low} to {high}"


class Table:
    """A table with named rows and columns.

    Args:
        rows: name to the cells of its row: numbers, texts, or several results, which are shown as `span`.
        columns: their names.
        corner: what the rows are.
        numbers: how numbers are written: one form such as ``".2f"``, or one for each column.

    Raises:
        ValueError: a row has another number of cells than there are columns.

    >>> Table({"RNN": [0.25, [0.2, 0.3]], "LSTM": [0.75, "all"]}, ["mean", "seeds"], corner="cell")
    cell  mean         seeds
    RNN   0.25  0.20 to 0.30
    LSTM  0.75           all
    """

    def __init__(
        self, rows: Mapping[str, Sequence[Any]], columns: Sequence[str], *, corner: str = "", numbers: Any = ".2f"
    ) -> None:
        forms = [numbers] * len(columns) if isinstance(numbers, str) else list(numbers)
        self.head = [corner, *columns]
        self.body = []
        for name, cells in rows.items():
            if len(cells) != len(columns):
                raise ValueError(f"the row {name!r} has {len(cells)} cells for {len(columns)} columns")
            self.body.append([name, *map(_write, cells, forms)])

    def __repr__(self) -> str:
        lines = [self.head, *self.body]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [[text.rjust(width) for text, width in zip(line, widths, strict=True)] for line in lines]
        names = [line[0].ljust(widths[0]) for line in lines]
        return "\n".join("  ".join([name, *cells[1:]]).rstrip() for name, cells in zip(names, padded, strict=True))

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{escape(text)}</th>' for text in self.head[1:])
        corner = f'<th scope="col">{escape(self.head[0])}</th>' if self.head[0] else "<td></td>"
        body = "".join(
            f'<tr><th scope="row">{escape(line[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in line[1:])}</tr>'
            for line in self.body
        )
        return f'<table class="ttutor-table"><thead><tr>{corner}{head}</tr></thead><tbody>{body}</tbody></table>'


def _write(cell: Any, form: str) -> str:
    if isinstance(cell, str):
        return cell
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, Sequence):
        return span(cell, form)
    return format(cell, "," if isinstance(cell, int) and "f" in form else form)
