"""Single results: a point for each seed in rows, and points of two numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ttutor.figures.plot import MARKERS, Plot, array, number
from ttutor.widgets.style import PAGE

_ROOM = 0.42  # of the way to the next row


def in_rows(results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Rows to series to values, from rows to values (one series without a name) or rows to series to values."""
    return {row: dict(values) if isinstance(values, Mapping) else {"": values} for row, values in results.items()}


def row_colour(plot: Plot, series: str, row: str, index: int, at: int) -> str:
    """The colour of a series; where there is one without a name, rows may have colours of their own."""
    if series:
        return plot.colour_of(series, index)
    return plot.colour_of(row, 0 if isinstance(plot.colours, Mapping) else at)


def series_of(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The names of all series, in the order in which they first come."""
    return list(dict.fromkeys(name for row in rows.values() for name in row))


@dataclass(repr=False, eq=False)
class Points(Plot):
    """A row for each name, and in it a point for each seed; points that would hide one another stand apart.

    Args:
        results: row to the values of its seeds, or row to series to values. Series differ in colour and marker.

    >>> Points({"RNN": [0.2, 0.3], "LSTM": [0.9, 0.8]}, title="Gates help", x="share right").describe()
    'Gates help. Points of share right: RNN 0.2 to 0.3; LSTM 0.8 to 0.9.'
    """

    results: Mapping[str, Any]

    def draw(self, ax: Any) -> None:
        rows = in_rows(self.results)
        series = series_of(rows)
        everything = np.concatenate([array(values) for row in rows.values() for values in row.values()])
        scale = np.log if "x" in self.log else np.asarray
        ends = scale(np.asarray(self.x_range or (everything.min(), everything.max()), dtype=float))
        for index, name in enumerate(series):
            shift = 0.6 * ((index + 0.5) / len(series) - 0.5)
            places, values, colours = [], [], []
            for at, (row, found) in enumerate(rows.items()):
                for value, aside in _apart(array(found.get(name, [])), scale, (ends[1] - ends[0]) / 40):
                    places.append(at + shift + aside / len(series) ** 0.5)
                    values.append(value)
                    colours.append(row_colour(self, name, row, index, at))
            look = {"marker": MARKERS[index % len(MARKERS)], "s": 26, "linewidths": 1.2, "edgecolors": colours}
            filled = {"c": colours} if index == len(series) - 1 else {"facecolors": PAGE["page"]}
            ax.scatter(values, places, label=name or None, **look, **filled, zorder=3)
        self.rule(ax, True, self.levels)
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.grid(False, axis="y")

    def kind(self) -> str:
        return f"Points of {self.x or 'values'}"

    def names(self) -> list[str]:
        return list(self.results)

    def data(self) -> str:
        return "; ".join(
            f"{row} " + ", ".join(f"{name} {_ends(values)}".strip() for name, values in found.items())
            for row, found in in_rows(self.results).items()
        )


@dataclass(repr=False, eq=False)
class Scatter(Plot):
    """Points of two numbers, a colour and a marker for each group.

    Args:
        groups: name to a pair ``(x values, y values)``.
        texts: words beside points of the plot: text to ``(x, y)``.

    >>> Scatter({"bank": ([1.0, 2.0], [3.0, 4.0])}, title="Two senses", x="first", y="second").describe()
    'Two senses. Points of second against first: bank, 2 points around (1.5, 3.5).'
    """

    groups: Mapping[str, Any]
    texts: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def draw(self, ax: Any) -> None:
        for index, (name, (across, up)) in enumerate(self.groups.items()):
            look = {"color": self.colour_of(name, index), "marker": MARKERS[index % len(MARKERS)], "label": name}
            ax.scatter(array(across), array(up), s=26, **look, zorder=3)
        for text, spot in self.texts.items():
            ax.annotate(text, spot, (5, 4), textcoords="offset points")
        self.rule(ax, False, self.levels)
        self.rule(ax, True, self.marks, first=len(self.levels))

    def kind(self) -> str:
        return f"Points of {self.y or 'values'} against {self.x or 'values'}"

    def names(self) -> list[str]:
        return list(self.groups)

    def data(self) -> str:
        return "; ".join(
            f"{name}, {len(array(across))} point{'s'[: len(array(across)) != 1]} around "
            f"({number(array(across).mean())}, {number(array(up).mean())})"
            for name, (across, up) in self.groups.items()
        )


def _apart(values: np.ndarray, scale: Any, near: float) -> list[tuple[float, float]]:
    """Each value with a step aside, none for the first of those that lie close together; all stay in their row."""
    placed: list[tuple[float, float]] = []
    for value in values:
        close = sum(abs(scale(value) - scale(other)) < near for other, _ in placed)
        placed.append((float(value), 0.1 * ((close + 1) // 2) * (-1) ** close))
    widest = max((abs(aside) for _, aside in placed), default=0.0)
    narrower = _ROOM / max(widest, _ROOM)
    return [(value, narrower * aside) for value, aside in placed]


def _ends(values: Any) -> str:
    numbers = array(values)
    low, high = number(numbers.min()), number(numbers.max())
    return low if low == high else f"{low} to {high}"
