"""What a page that is no notebook can show: an explorer, and the map of the course.

``explorer`` takes a line of Python that makes one of `ttutor.widgets`, and shows its static form. ``course-map`` draws
which chapter needs which, from `NEEDS`; its boxes are links.
"""

from __future__ import annotations

import html
import textwrap
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

NEEDS: dict[int, tuple[int, ...]] = {
    1: (),
    2: (),
    3: (2,),
    4: (3,),
    5: (3,),
    6: (3,),
    7: (4, 5, 6),
    8: (2,),
    9: (7, 8),
    10: (5,),
    11: (6,),
    12: (6, 8),
}
"""For each chapter the chapters that it stands on directly; what those need is needed too."""

NAMES = dict(
    zip(
        NEEDS,
        (
            "Recurrence",
            "Attention",
            "Multi-head",
            "Positions",
            "Encoder",
            "Decoder",
            "Transformer",
            "Training",
            "Variants",
            "Vision",
            "Efficiency",
            "Inside",
        ),
        strict=True,
    )
)
PLACES = {1: (0, 0), 2: (1, 0), 3: (1, 1), 4: (0, 2), 5: (0, 3), 6: (1, 3), 7: (1, 4), 8: (2, 3)}
PLACES |= {9: (1, 5), 10: (0, 4), 11: (0, 5), 12: (2, 5)}
"""Column and row of each chapter's box."""

SIDES = {(2, 8): ("right", "top"), (8, 9): ("bottom", "right")}
"""Where an arrow leaves and arrives, if not at the bottom and the top."""

WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 100, 34, 116, 62, 4


class ExplorerDirective(Directive):
    """``explorer``: the static form of an explorer on a page that is no notebook."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        import ttutor.widgets

        names = {name: getattr(ttutor.widgets, name) for name in ttutor.widgets.__all__}
        explorer = eval("\n".join(self.content), names)
        return [nodes.raw("", explorer.to_html(), format="html")]


class CourseMap(Directive):
    """``course-map``: the chapters as boxes, and an arrow from each to those that stand on it."""

    def run(self) -> list[nodes.Node]:
        root = Path(self.state.document.settings.env.srcdir)
        return [nodes.raw("", draw(pages(root)), format="html")]


def pages(root: Path) -> dict[int, str]:
    """The address of every chapter's page, as seen from a page beside it."""
    return {number: f"{min((root / 'book').glob(f'{number:02d}-*'), key=len_of_name).stem}.html" for number in NEEDS}


def len_of_name(path: Path) -> int:
    """The length of a page's name: the first page of a chapter has the shortest."""
    return len(path.name)


def in_words() -> str:
    """The map as a sentence for each chapter.

    >>> in_words().splitlines()[6]
    '7 Transformer stands on 4, 5 and 6.'
    """
    lines = []
    for number, needed in NEEDS.items():
        *most, last = [str(other) for other in needed] or [""]
        listed = f"{', '.join(most)} and {last}" if most else last
        lines.append(f"{number} {NAMES[number]} {f'stands on {listed}' if needed else 'needs no other chapter'}.")
    return "\n".join(lines)


def draw(addresses: dict[int, str]) -> str:
    """The map as SVG; in words for those who do not see it."""
    columns, rows = (max(place[axis] for place in PLACES.values()) + 1 for axis in (0, 1))
    across, down = (columns - 1) * ACROSS + WIDTH + 2 * MARGIN, (rows - 1) * DOWN + HEIGHT + 2 * MARGIN
    arrows = "".join(_arrow(other, number) for number, needed in NEEDS.items() for other in needed)
    boxes = "".join(_box(number, address) for number, address in addresses.items())
    return textwrap.dedent(
        f"""\
        <figure class="course-map"><svg viewBox="0 0 {across} {down}" role="group" aria-labelledby="course-map-title">
        <title id="course-map-title">Which chapter stands on which. {html.escape(" ".join(in_words().split()))}</title>
        <defs><marker id="course-map-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
        orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>{arrows}{boxes}</svg>
        <figcaption>An arrow leads from a chapter to those that stand on it. Where a chapter borrows a single
        idea from another, its first box says which. No chapter needs all of Chapter 1.</figcaption></figure>"""
    )


def _corner(number: int) -> tuple[int, int]:
    column, row = PLACES[number]
    return MARGIN + column * ACROSS, MARGIN + row * DOWN


def _box(number: int, address: str) -> str:
    left, top = _corner(number)
    return (
        f'<a href="{address}"><rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>'
        f'<text x="{left + WIDTH / 2}" y="{top + HEIGHT / 2 + 4.5}">{number} {NAMES[number]}</text></a>'
    )


def _side(number: int, side: str, gap: int = 0) -> tuple[float, float]:
    """The middle of a side of a box, or a little before it."""
    left, top = _corner(number)
    return {
        "top": (left + WIDTH / 2, top - gap),
        "bottom": (left + WIDTH / 2, top + HEIGHT + gap),
        "right": (left + WIDTH + gap, top + HEIGHT / 2),
    }[side]


def _arrow(start: int, end: int) -> str:
    leaves, arrives = SIDES.get((start, end), ("bottom", "top"))
    (x, y), (to_x, to_y) = _side(start, leaves), _side(end, arrives, gap=1)
    return f'<path class="arrow" d="M{x},{y} L{to_x},{to_y}" marker-end="url(#course-map-tip)"/>'


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register both directives."""
    app.add_directive("explorer", ExplorerDirective)
    app.add_directive("course-map", CourseMap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
