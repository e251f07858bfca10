"""Curves over steps, lengths or layers; several runs of one thing as a line with a band."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ttutor.figures.plot import DASHES, MARKERS, Plot, array, number

_MOST_MARKED = 16


@dataclass(repr=False, eq=False)
class Lines(Plot):
    """One line for each name.

    Args:
        curves: name to its values; a matrix ``runs points`` gives the median of the runs and a band from the lowest to
            the highest; a pair ``(positions, values)`` has its own positions, as has a mapping of the one to the other.
        at: the positions of all other curves; by default 0, 1, 2, ...
        dots: names of curves of which only the points are drawn.

    Raises:
        ValueError: a curve has another number of values than of positions.

    >>> Lines({"RNN": [[3.0, 2.9], [3.0, 2.7]]}, at=[0, 100], title="It learns", x="step", y="loss").describe()
    'It learns. Lines of loss over step, 0 to 100: RNN from 3 to 2.8 (median of 2 runs).'
    """

    curves: Mapping[str, Any]
    at: Any = None
    dots: Sequence[str] = ()

    def points(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Positions and ``runs points`` of one curve."""
        curve, at = self.curves[name], self.at
        if isinstance(curve, Mapping):
            at, curve = list(curve), list(curve.values())
        elif isinstance(curve, tuple):
            at, curve = curve
        values = np.atleast_2d(array(curve))
        places = np.arange(values.shape[1], dtype=float) if at is None else array(list(at))
        if len(places) != values.shape[1]:
            raise ValueError(f"the curve {name!r} has {values.shape[1]} values at {len(places)} positions")
        return places, values

    def draw(self, ax: Any) -> None:
        for index, name in enumerate(self.curves):
            places, values = self.points(name)
            look: dict[str, Any] = {"color": self.colour_of(name, index), "linestyle": DASHES[index % len(DASHES)]}
            if name in self.dots:
                look["linestyle"] = ""
            if len(places) <= _MOST_MARKED or name in self.dots:
                look["marker"] = MARKERS[index % len(MARKERS)]
            ax.plot(places, np.median(values, axis=0), label=name, **look)
            if len(values) > 1:
                ax.fill_between(
                    places, values.min(axis=0), values.max(axis=0), color=look["color"], alpha=0.2, linewidth=0
                )
        self.rule(ax, False, self.levels)
        self.rule(ax, True, self.marks, first=len(self.levels))

    def finish(self, ax: Any, letters: int = 46) -> None:
        super().finish(ax, letters)
        places = sorted({place for name in self.curves for place in self.points(name)[0]})
        if len(places) <= 9 and "x" in self.log:
            ax.set_xticks(places, [f"{place:,g}" for place in places])

    def kind(self) -> str:
        places = np.concatenate([self.points(name)[0] for name in self.curves])
        ends = f"{number(places.min())} to {number(places.max())}"
        return f"Lines of {self.y or 'values'} over {self.x or 'positions'}, {ends}"

    def names(self) -> list[str]:
        return list(self.curves)

    def data(self) -> str:
        return "; ".join(self._course(name) for name in self.curves)

    def _course(self, name: str) -> str:
        """Where a curve begins and ends, and where it was further out between."""
        places, values = self.points(name)
        middle = np.median(values, axis=0)
        said = f"{name} from {number(middle[0])} to {number(middle[-1])}"
        room = 0.1 * (middle.max() - middle.min())
        if middle.min() < min(middle[0], middle[-1]) - room:
            said += f", lowest {number(middle.min())} at {number(places[middle.argmin()])}"
        if middle.max() > max(middle[0], middle[-1]) + room:
            said += f", highest {number(middle.max())} at {number(places[middle.argmax()])}"
        return said + (f" (median of {len(values)} runs)" if len(values) > 1 else "")
