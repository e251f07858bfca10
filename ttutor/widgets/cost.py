"""What attention costs as texts grow: time and memory as measured, multiply-adds and bytes as counted."""

import math
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import traitlets as t

from ttutor import assets
from ttutor.widgets.base import Explorer, one_of, table_html

LINES = {
    "reference": ("full, reference", "masked"),
    "eager": ("full, eager", "decoder"),
    "sdpa": ("full, fused (sdpa)", "query"),
    "tiled": ("full, tiled", "memory"),
    "window": ("window of 256", "value"),
    "linear": ("linear", "key"),
    "recurrent": ("linear, token by token", "loss"),
}
"""What may be drawn: its name in words, and its colour."""
_TIMED = "As many texts at once as make 4,096 tokens, and their time divided by their number."
_PEAK = "What a call adds to the peak memory of a fresh process."
QUANTITIES = {
    "time": ("measured: time, one text", "ms", ("measured", "time", "alone"), "A forward pass of a text alone."),
    "time_batch": ("measured: time, texts in a batch", "ms", ("measured", "time", "batch"), _TIMED),
    "time_training": ("measured: time, with gradients", "ms", ("measured", "time", "training"), _TIMED),
    "memory": ("measured: memory, forward", "B", ("measured", "memory", "forward"), _PEAK),
    "memory_training": ("measured: memory, with gradients", "B", ("measured", "memory", "training"), _PEAK),
    "multiply_adds": (
        "counted: multiply-adds",
        "",
        ("counted", "multiply_adds"),
        "Of all matrix products. The fused kernel is counted by its definition, hidden scores too.",
    ),
    "largest": (
        "counted: largest tensor",
        "B",
        ("counted", "largest"),
        "The largest one that is made. What a fused kernel holds inside cannot be seen.",
    ),
    "kept": (
        "counted: kept to write the next token",
        "B",
        ("counted", "kept"),
        "Keys and values of one layer; of a window the last 256; of linear attention its state.",
    ),
}
"""What may be shown: its name, its unit, where the stored figures have it, and what it is."""


class CostExplorer(Explorer):
    """Time and memory of attention against the length of the text, on logarithmic axes: a slope is an exponent.

    The figures are stored with the package: measured by ``benchmarks/attention.py``, or counted by
    `ttutor.efficient.attention_operations`. Each is of causal attention of 8 heads of 64 in float32.

    Args:
        quantity: what is shown, one of ``QUANTITIES``.
        lines: which kinds of attention, some of ``LINES``; all that there are figures of when left out.

    >>> explorer = CostExplorer("memory", lines=["eager", "sdpa"])
    >>> explorer
    CostExplorer(measured: memory, forward; eager, sdpa)
    >>> round(explorer.growth["eager"]["exponent"], 1), round(explorer.growth["sdpa"]["exponent"], 1)
    (2.0, 1.0)
    """

    _module = "cost"
    _title = "Cost"
    _state_keys = ("figures", "names", "quantity", "lines", "source")

    figures = t.List(t.Dict()).tag(sync=True)
    names = t.List(t.List(t.Unicode())).tag(sync=True)
    quantity = t.Enum(tuple(QUANTITIES), "time").tag(sync=True)
    lines = t.List(t.Unicode()).tag(sync=True)
    source = t.Dict().tag(sync=True)

    def __init__(self, quantity: str = "time", *, lines: Any = None) -> None:
        one_of("quantity", quantity, QUANTITIES)
        stored = assets.load("attention_costs")
        super().__init__(
            figures=[_figure(stored, name, *about) for name, about in QUANTITIES.items()],
            names=[[name, *words] for name, words in LINES.items()],
            quantity=quantity,
            lines=list(LINES) if lines is None else list(lines),
            source=_sources(stored),
        )

    @property
    def figure(self) -> dict[str, Any]:
        """The quantity that is shown: its name in words, its unit, what it is, and all its lines."""
        return next(figure for figure in self.figures if figure["name"] == self.quantity)

    @property
    def points(self) -> dict[str, list]:
        """The lines that are shown: pairs of length and cost."""
        return {name: points for name, points in self.figure["lines"].items() if name in self.lines}

    @property
    def growth(self) -> dict[str, dict]:
        """Between each line's last two points: from and to which length, how many times the cost, and the exponent."""
        return {name: one for name, one in self.figure["growth"].items() if name in self.lines}

    @property
    def crossings(self) -> list[tuple[int, str, str]]:
        """Where lines cross: from this length on, the first costs less than the second; before it, not."""
        return [(n, one, other) for n, one, other in self.figure["crossings"] if {one, other} <= set(self.lines)]

    def describe(self) -> str:
        """The quantity and the lines."""
        return f"{self.figure['label']}; {', '.join(self.points)}"

    def fallback_html(self) -> str:
        """The figures as a table, and where they are from."""
        figure = self.figure
        lengths = sorted({n for points in self.points.values() for n, _ in points})
        rows = []
        for name, points in self.points.items():
            costs, exponent = dict(points), self.growth[name]["exponent"]
            cells = [f"{costs[n]:,.4g}" if n in costs else "–" for n in lengths]
            rows.append([LINES[name][0], *cells, f"{exponent:.2f}"])
        unit = f" ({figure['unit']})" if figure["unit"] else ""
        caption = f"{figure['label']}{unit}, by length in tokens. {figure['note']} {self.source[figure['kind']]}"
        table = table_html(caption, ["", *(f"{n:,}" for n in lengths), "exponent at the end"], rows)
        return f'<div style="overflow-x:auto" tabindex="0">{table}</div>'

    @t.validate("lines")
    def _check_lines(self, proposal: dict) -> list[str]:
        unknown = [name for name in proposal["value"] if name not in LINES]
        if unknown:
            raise ValueError(f"lines has to hold some of {', '.join(LINES)}, not {', '.join(map(repr, unknown))}")
        return [name for name in LINES if name in proposal["value"]]


def _figure(stored: dict, name: str, label: str, unit: str, path: tuple[str, ...], note: str) -> dict[str, Any]:
    """One quantity out of the stored figures, its lines in the order of `LINES`, and which have none."""
    lines = stored
    for part in path:
        lines = lines[part]
    missing = [words for line, (words, _) in LINES.items() if line not in lines]
    lines = {line: lines[line] for line in LINES if line in lines}
    return {
        "name": name,
        "label": label,
        "unit": unit,
        "kind": path[0],
        "note": note + (f" No figures of: {'; '.join(missing)}." if missing else ""),
        "lines": lines,
        "growth": {line: _growth(points) for line, points in lines.items()},
        "crossings": sorted(_crossings(lines)),
    }


def _growth(points: list) -> dict[str, Any]:
    """Between the last two points: how many times the cost, and the exponent of the power law through both."""
    (first, low), (last, high) = points[-2:]
    exponent = math.log(high / low) / math.log(last / first)
    return {"from": first, "to": last, "times": round(high / low, 9), "exponent": round(exponent, 9)}


def _crossings(lines: dict[str, list]) -> Iterator[list]:
    """From which length on a line costs less than another, having not before."""
    for (one, points), (other, others) in permutations(lines.items(), 2):
        costs = dict(others)
        common = [(n, cost < costs[n]) for n, cost in points if n in costs]
        behind = [i for i, (_, is_less) in enumerate(common) if not is_less]
        if behind and behind[-1] + 1 < len(common):
            yield [common[behind[-1] + 1][0], one, other]


def _sources(stored: dict) -> dict[str, str]:
    """Where measured and counted figures are from, in words."""
    sizes = "Causal, 8 heads of 64, float32."
    growth = stored["sources"]["growth"]
    machine, sections = growth["machine"], ", ".join(stored["sources"])
    return {
        "measured": f"{sizes} Measured by benchmarks/attention.py (sections {sections}) on {machine['processor']}, "
        f"{machine['threads']} thread, torch {growth['versions']['torch']}. Another machine has other times.",
        "counted": f"{sizes} Counted by ttutor.efficient.attention_operations, not timed: the same on every machine.",
    }
