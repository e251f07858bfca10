"""What every plot shares: title, axes, levels to compare with, colours; and several plots in one figure."""

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ttutor.figures.svg import to_svg
from ttutor.measurement import format_number
from ttutor.widgets.style import PAGE, PALETTE, STYLE_FILE

WIDTH = 4.6  # inches: letters of ten points can still be read when the figure shrinks to a phone's width
PARTS = ("query", "key", "value", "loss", "memory", "weights", "decoder")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LETTERS_OF_A_TITLE = 46
_LOOK = {
    "svg.fonttype": "none",
    "axes.edgecolor": PAGE["muted"],
    "grid.color": PAGE["border"],
    "grid.linewidth": 0.5,
}


@dataclass(kw_only=True, repr=False, eq=False)
class Plot(ABC):
    """One pair of axes. The words that every plot takes, all by name:

    Args:
        title: what is seen, as a sentence.
        x: what the horizontal axis shows, with its unit.
        y: what the vertical axis shows, with its unit.
        log: the axes with a logarithmic scale: ``"x"``, ``"y"`` or ``"xy"``.
        x_range: first and last value of the horizontal axis; by default what the data need.
        y_range: the same of the vertical axis.
        levels: name to a value on the axis of the values, drawn as a dotted line: guessing, the best possible.
        marks: name to a value on the other axis, drawn as a dotted line: where training ended.
        colours: parts of the palette (``query``, ``key``, ...): name to part, or a list in the order of what is drawn.
        height: of the plot in inches.
    """

    title: str = ""
    x: str = ""
    y: str = ""
    log: str = ""
    x_range: tuple[Any, Any] | None = None
    y_range: tuple[Any, Any] | None = None
    levels: Mapping[str, float] = field(default_factory=dict)
    marks: Mapping[str, float] = field(default_factory=dict)
    colours: Mapping[str, str] | Sequence[str] = field(default_factory=dict)
    height: float = 3.0

    @abstractmethod
    def draw(self, ax: Any) -> None:
        """Draw the data on Matplotlib's axes."""

    @abstractmethod
    def kind(self) -> str:
        """What is drawn, in words."""

    @abstractmethod
    def names(self) -> list[str]:
        """Of what there is a line, a row or a group."""

    @abstractmethod
    def data(self) -> str:
        """What the data show, with a few rounded numbers."""

    def part_of(self, name: str, index: int) -> str:
        """The part of the palette in whose colour a series is drawn.

        Raises:
            ValueError: the palette has no such part.
        """
        if isinstance(self.colours, Mapping):
            part = self.colours.get(name, PARTS[index % len(PARTS)])
        else:
            part = self.colours[index % len(self.colours)]
        if part not in PALETTE:
            raise ValueError(f"no part is called {part!r}; the palette has {', '.join(PALETTE)}")
        return part

    def colour_of(self, name: str, index: int) -> str:
        """The colour of that part, by day; on a page it follows light and dark."""
        return PALETTE[self.part_of(name, index)]

    def finish(self, ax: Any, letters: int = _LETTERS_OF_A_TITLE) -> None:
        """Title, axes and scales; so many letters of the title fit into a line."""
        ax.set(xlabel=textwrap.fill(self.x, letters), ylabel=textwrap.fill(self.y, letters))
        ax.set_title(textwrap.fill(self.title, letters))
        for axis in "xy":
            if axis in self.log:
                getattr(ax, f"set_{axis}scale")("log")
                ax.minorticks_off()
        if self.x_range:
            ax.set_xlim(*self.x_range)
        if self.y_range:
            ax.set_ylim(*self.y_range)

    def rule(self, ax: Any, upright: bool, lines: Mapping[str, float], first: int = 0) -> None:
        """Dotted lines across the axes, each named in the legend."""
        for index, (name, value) in enumerate(lines.items(), start=first):
            look = {"color": PAGE["muted"], "linestyle": (0, (1, 1.5 + 2 * index)), "linewidth": 1.2, "label": name}
            (ax.axvline if upright else ax.axhline)(value, **look)

    def describe(self) -> str:
        """What a reader would see who sees it."""
        references = {**self.levels, **self.marks}
        drawn = [f"{name} at {format_number(value)}" for name, value in references.items()]
        lines = f" Dotted lines: {', '.join(drawn)}." if drawn else ""
        return f"{_sentence(self.title)}{self.kind()}: {self.data()}.{lines}"

    def __repr__(self) -> str:
        return f"Figure: {_sentence(self.title)}{self.kind()}: {', '.join(self.names())}."

    def _repr_html_(self) -> str:
        return Panels(self)._repr_html_()


class Panels:
    """Several plots in one figure, with one legend.

    Args:
        *plots: in the order in which they are read.
        columns: how many stand side by side; on a phone two small ones can be read, no more.
        title: of all together.

    Raises:
        ValueError: there is no plot.
    """

    def __init__(self, *plots: Plot, columns: int = 1, title: str = "") -> None:
        if not plots:
            raise ValueError("panels need at least one plot")
        self.plots, self.columns, self.title = plots, columns, title

    def describe(self) -> str:
        """What a reader would see who sees it."""
        said = " ".join(plot.describe() for plot in self.plots)
        return f"{_sentence(self.title)}{said}"

    def __repr__(self) -> str:
        if len(self.plots) == 1:
            return repr(self.plots[0])
        said = " ".join(repr(plot).removeprefix("Figure: ") for plot in self.plots)
        return f"Figure: {_sentence(self.title)}{said}"

    def _repr_html_(self) -> str:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.style import context

        rows = [self.plots[at : at + self.columns] for at in range(0, len(self.plots), self.columns)]
        heights = [max(plot.height for plot in row) for row in rows]
        look: Any = {**_LOOK, "svg.hashsalt": self.describe()}  # two figures of a page share no id
        with context(STYLE_FILE), matplotlib.rc_context(look):
            figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
            grid = figure.subplots(len(rows), self.columns, squeeze=False, height_ratios=heights)
            for ax, plot in zip(grid.flat, self.plots, strict=False):
                plot.draw(ax)
                plot.finish(ax, _LETTERS_OF_A_TITLE // self.columns)
            for ax in grid.flat[len(self.plots) :]:
                ax.set_axis_off()
            if self.title:
                figure.suptitle(textwrap.fill(self.title, _LETTERS_OF_A_TITLE), weight="bold", fontsize="medium")
            _legend(figure)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            for ax in figure.axes:
                _begin_title_at_the_left(ax)
            return to_svg(figure, self.describe())


def _begin_title_at_the_left(ax: Any) -> None:
    """A title above the names of the rows, too, where these are long and the axes narrow."""
    whole = ax.get_tightbbox(for_layout_only=True)
    inside = ax.get_window_extent()
    title = ax.set_title(ax.get_title(loc="left"), loc="left")
    title.set_x((whole.x0 - inside.x0) / inside.width)


def _legend(figure: Any) -> None:
    """One legend below all axes, with each name once; none for one series alone."""
    found: dict[str, Any] = {}
    for ax in figure.axes:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if len(found) < 2:
        return
    widest = 4.6 * max(map(len, found)) + 32  # points, of a name and the line before it
    columns = max(1, min(len(found), int(72 * WIDTH // widest)))
    extra = figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, fontsize="small")
    height = 15 * -(-len(found) // columns) + 8
    figure.set_figheight(figure.get_figheight() + height / 72)
    extra.set_in_layout(True)


def array(values: Any) -> np.ndarray:
    """Numbers of any kind (tensor, list, generator) as an array of floats."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    elif isinstance(values, Sequence):
        values = [
            array(value) if isinstance(value, Sequence) or hasattr(value, "detach") else value for value in values
        ]
    return np.asarray(values, dtype=float)


def number(value: float) -> str:
    """A number as a description says it, to two digits."""
    return format_number(float(value), 2)


def _sentence(title: str) -> str:
    return f"{title.rstrip('.')}. " if title else ""
