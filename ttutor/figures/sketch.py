"""A plot that is drawn by hand, for what the other words do not say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ttutor.figures.plot import Plot


@dataclass(repr=False, eq=False)
class Sketch(Plot):
    """A plot that a function draws on Matplotlib's axes, in colours of ``PALETTE``, which follow the page.

    Args:
        paint: draws on the axes that it is given.
        seen: what a reader would see who sees it.

    >>> Sketch(lambda ax: ax.plot([0, 1]), "A line that rises", title="Up").describe()
    'Up. A line that rises.'
    """

    paint: Callable[[Any], Any]
    seen: str

    def draw(self, ax: Any) -> None:
        self.paint(ax)

    def kind(self) -> str:
        return "Drawn by hand"

    def names(self) -> list[str]:
        return [self.title] if self.title else []

    def data(self) -> str:
        return self.seen

    def describe(self) -> str:
        return super().describe().replace(f"{self.kind()}: ", "", 1)
