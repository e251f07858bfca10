"""Drawings of the data's way: boxes, arrows and shapes on arrows, in the course's colours, as SVG with a description.

A drawing follows the page between light and dark, scales down to a phone, and needs no script.
"""

import re
from dataclasses import dataclass
from html import escape
from zlib import crc32

from ttutor.names import answer_other_names
from ttutor.widgets.style import PALETTE, scheme_css

__all__ = ["Box", "Drawing"]

Number = int | float

_NAME = "ttutor-drawing"
_SUBSCRIPT = re.compile(r"\b([A-Za-z])_(\w+)")


@dataclass(frozen=True)
class Box:
    """A box of a drawing: its corner, its size and its edges' middles."""

    x: Number
    y: Number
    width: Number
    height: Number

    @property
    def top(self) -> tuple[Number, Number]:
        """The middle of the upper edge."""
        return self.x + self.width / 2, self.y

    @property
    def bottom(self) -> tuple[Number, Number]:
        """The middle of the lower edge."""
        return self.x + self.width / 2, self.y + self.height

    @property
    def left(self) -> tuple[Number, Number]:
        """The middle of the left edge."""
        return self.x, self.y + self.height / 2

    @property
    def right(self) -> tuple[Number, Number]:
        """The middle of the right edge."""
        return self.x + self.width, self.y + self.height / 2


class Drawing:
    """A drawing of the way that data take; as the last line of a cell it shows itself.

    Args:
        width: units from left to right; 420 keep text readable on a phone.
        height: units from top to bottom.
        description: what a reader would see who sees it.

    >>> drawing = Drawing(420, 130, "A word's vector becomes a query.")
    >>> word = drawing.box(150, 10, "x", "d_model")
    >>> query = drawing.box(150, 80, "q", "d_head", part="query")
    >>> drawing.arrow(word.bottom, query.top, "W_Q")
    >>> drawing._repr_html_().count("<rect")
    2
    """

    def __init__(self, width: Number, height: Number, description: str) -> None:
        if not description.strip():
            raise ValueError("a drawing needs a description, for readers who do not see it")
        self.width, self.height, self.description = width, height, description
        self._shapes: list[str] = []
        self._head = f"{_NAME}-{crc32(description.encode()):08x}"  # of the arrows: unlike those of the page's others

    def box(
        self,
        x: Number,
        y: Number,
        label: str,
        shape: str = "",
        *,
        part: str = "",
        width: Number = 120,
        height: Number = 46,
    ) -> Box:
        """Draw a box with a label and, below it, the shape of what it holds.

        Args:
            x: left edge.
            y: upper edge.
            label: what it is.
            shape: its axes, in code type.
            part: a name of the palette (``query``, ``key``, ``weights``, ...), or nothing for a plain box.
            width: of the box.
            height: of the box.

        Raises:
            ValueError: the palette has no such part, or the box leaves the drawing.
        """
        if part and part not in PALETTE:
            raise ValueError(f"no part is called {part!r}; the palette has {', '.join(PALETTE)}")
        if x < 0 or y < 0 or x + width > self.width or y + height > self.height:
            raise ValueError(f"the box {label!r} leaves the drawing of {self.width} by {self.height}")
        box = Box(x, y, width, height)
        colours = f"fill:var(--{part});fill-opacity:.22;stroke:var(--{part}-line)" if part else "stroke:var(--muted)"
        self._shapes.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" style="{colours}"/>')
        middle = y + height / 2
        self.text(box.top[0], middle - 4 if shape else middle + 5, label)
        if shape:
            self.text(box.top[0], middle + 14, shape, code=True)
        return box

    def arrow(
        self, start: tuple[Number, Number], end: tuple[Number, Number], label: str = "", *, shift: Number = 0
    ) -> None:
        """Draw an arrow; its label stands to the right of its middle, moved sideways by ``shift``."""
        (x1, y1), (x2, y2) = start, end
        self._shapes.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="arrow" marker-end="url(#{self._head})"/>'
        )
        if label:
            self.text((x1 + x2) / 2 + 7 + shift, (y1 + y2) / 2 + 4, label, anchor="start")

    def text(self, x: Number, y: Number, words: str, *, anchor: str = "middle", code: bool = False) -> None:
        """Write one line; ``code`` sets it small and in code type, otherwise ``W_Q`` gets its subscript."""
        kind = ' class="code"' if code else ""
        written = escape(words) if code else _SUBSCRIPT.sub(r'\1<tspan dy="4" font-size="10">\2</tspan>', escape(words))
        self._shapes.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}"{kind}>{written}</text>')

    def __repr__(self) -> str:
        return f"Drawing: {self.description}"

    def _repr_html_(self) -> str:
        return (
            f'<svg class="{_NAME}" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'style="width:100%;max-width:{1.3 * self.width:.0f}px" aria-label="{escape(self.description)}">'
            f"<style>{_style()}</style>"
            f'<defs><marker id="{self._head}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>{"".join(self._shapes)}</svg>'
        )


def _style() -> str:
    return (
        f"{scheme_css(f'.{_NAME}')}"
        f".{_NAME} rect{{fill:none;stroke-width:1.5}}.{_NAME} .arrow{{stroke:var(--muted);stroke-width:1.5}}"
        f".{_NAME} path{{fill:var(--muted)}}.{_NAME} text{{fill:var(--text);font:14px sans-serif}}"
        f".{_NAME} .code{{font:12px monospace}}"
    )


answer_other_names(__name__)
