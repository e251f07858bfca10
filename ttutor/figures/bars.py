"""Bars that lie, so that their names can be long, each with its number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ttutor.figures.plot import Plot, number
from ttutor.figures.points import in_rows, row_colour, series_of
from ttutor.widgets.style import PAGE

_HATCHES = ("", "////", "....", "xxxx")


@dataclass(repr=False, eq=False)
class Bars(Plot):
    """One bar for each name.

    Args:
        results: row to a value, or row to series to values; series differ in colour and hatching.
        numbers: how the value is written at its bar's end, such as ``".0%"``; empty for none.

    >>> Bars({"attention": 0.25, "MLP": 0.75}, title="Where the work is", x="share").describe()
    'Where the work is. Bars of share: attention 0.25; MLP 0.75.'
    """

    results: Mapping[str, Any]
    numbers: str = ""

    def draw(self, ax: Any) -> None:
        rows = in_rows(self.results)
        series = series_of(rows)
        thick = 0.76 / len(series)
        for index, name in enumerate(series):
            have = {at: (row, found[name]) for at, (row, found) in enumerate(rows.items()) if name in found}
            places = [at + thick * (index - (len(series) - 1) / 2) for at in have]
            values = [float(value) for _, value in have.values()]
            colours = [row_colour(self, name, row, index, at) for at, (row, _) in have.items()]
            look = {"color": colours, "edgecolor": PAGE["page"], "hatch": _HATCHES[index % len(_HATCHES)]}
            drawn = ax.barh(places, values, 0.92 * thick, label=name or None, linewidth=0, **look)
            if self.numbers:
                ax.bar_label(drawn, [format(value, self.numbers) for value in values], padding=3, fontsize="small")
        self.rule(ax, True, self.levels)
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set_ylim(len(rows) - 0.45, -0.55)
        ax.grid(False, axis="y")
        if self.numbers:
            ax.margins(x=0.14)

    def kind(self) -> str:
        return f"Bars of {self.x or 'values'}"

    def names(self) -> list[str]:
        return list(self.results)

    def data(self) -> str:
        return "; ".join(
            f"{row} " + ", ".join(f"{name} {number(value)}".strip() for name, value in found.items())
            for row, found in in_rows(self.results).items()
        )
