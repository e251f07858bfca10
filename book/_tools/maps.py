"""Drawings for pages that are no notebooks: which chapter stands on which, which room of the package uses which.

``course-map`` draws the chapters from `CHAPTERS`, its boxes being links; ``room-map`` the rooms from the imports in the
code. ``explorer`` takes a line of Python that makes one of `ttutor.widgets`, and shows its static form. The
substitutions ``hours_to_read`` and ``hours_for_exercises`` are the sums of what the chapters say of themselves.
"""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import networkx
from book._tools.notebook_io import chapters, read, roads
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.typing import ExtensionMetadata

CHAPTERS: dict[str, tuple[int, ...]] = {
    "Recurrence": (),
    "Attention": (),
    "Multi-head": (2,),
    "Positions": (3,),
    "Encoder": (3,),
    "Decoder": (3,),
    "Transformer": (4, 5, 6),
    "Training": (2,),
    "Variants": (7, 8),
    "Vision": (5,),
    "Efficiency": (6,),
    "Inside": (6, 8),
    "Assistant": (6, 8),
}
"""The chapters in their order, each with those that it stands on directly; what those need is needed too."""

ROWS = ((1, 2), (3, 8), (4, 5, 6), (7, 10, 11), (9, 12, 13))
"""The chapters row by row; at most three in one, so that the words can be read on a phone."""

WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 112, 30, 126, 58, 4


TIME = re.compile(r"\*\*Time:\*\* (.+)\n")
NUMBERS = "one two three four five six seven eight nine ten".split()
FRACTIONS = {"and a half": 0.5, "and a quarter": 0.25, "and three quarters": 0.75}


class ExplorerDirective(Directive):
    """``explorer``: the static form of an explorer on a page that is no notebook."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        import ttutor.widgets

        names = {name: getattr(ttutor.widgets, name) for name in ttutor.widgets.__all__}
        explorer = eval("\n".join(self.content), names)
        return [nodes.raw("", explorer.to_html(), format="html")]


class CourseMap(Directive):
    """``course-map``: the chapters, and an arrow from each to those that stand on it."""

    def run(self) -> list[nodes.Node]:
        graph = course()
        pages = {int(road.name[:2]): road.stem for road in roads()}
        links = {box: f"{pages[int(box.split()[0])]}.html" for box in graph}
        rows = [[list(graph)[number - 1] for number in row] for row in ROWS]
        drawing = draw(graph, rows, "course-map", "stands on", links)
        return [nodes.raw("", drawing, format="html")]


class RoomMap(Directive):
    """``room-map``: the rooms, from the package as it stands, each above those that import it."""

    def run(self) -> list[nodes.Node]:
        graph = rooms(Path(self.state.document.settings.env.srcdir) / "ttutor")
        return [nodes.raw("", draw(graph, lowest_rows(graph), "room-map", "uses"), format="html")]


def hours(said: str) -> tuple[float, float]:
    """Return the hours to read and the hours for exercises that the head of a page names.

    >>> hours("90 minutes to read, three and a half hours or more for all exercises.")
    (1.5, 3.5)
    """
    minutes = re.search(r"(\d+) minutes to read", said)
    exercises = re.search(rf"({'|'.join(NUMBERS)})((?: and [a-z ]+?)?) hours?\b", said)
    fraction = FRACTIONS.get(exercises[2].strip(), 0.0) if exercises else 0.0
    whole = NUMBERS.index(exercises[1]) + 1 if exercises else 0
    return (int(minutes[1]) / 60 if minutes else 0.0), whole + fraction


def set_hours(app: Sphinx, config: Config) -> None:
    """Let pages write the hours of the whole course (Sphinx event ``config-inited``)."""
    heads = [read(path.read_text(encoding="utf-8")).cells[0].source for path in chapters()]
    each = [hours(said) for head in heads for said in TIME.findall(f"{head}\n")]
    to_read, for_exercises = (round(sum(part)) for part in zip(*each, strict=True))
    config.myst_substitutions |= {"hours_to_read": to_read, "hours_for_exercises": for_exercises}


def course() -> networkx.DiGraph:
    """Return a graph with an edge from each chapter to those that stand on it.

    >>> sorted(course().predecessors("12 Inside"))
    ['6 Decoder', '8 Training']
    """
    boxes = [f"{number} {name}" for number, name in enumerate(CHAPTERS, start=1)]
    graph = networkx.DiGraph()
    graph.add_nodes_from(boxes)
    for box, needed in zip(boxes, CHAPTERS.values(), strict=True):
        graph.add_edges_from((boxes[other - 1], box) for other in needed)
    return graph


def rooms(package: Path) -> networkx.DiGraph:
    """Return a graph with an edge from every room to every room that imports it directly."""
    graph = networkx.DiGraph()
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        if room.startswith("__"):
            continue
        graph.add_node(room)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            graph.add_edges_from((other, room) for other in _imported(node, package.name) if other != room)
    return graph


def _imported(node: ast.AST, package: str) -> set[str]:
    """Return the rooms of the package that one statement imports."""
    match node:
        case ast.Import(names=names):
            modules = [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names) if module == package:
            modules = [f"{package}.{alias.name}" for alias in names if not alias.name.startswith("__")]
        case ast.ImportFrom(module=str(module)):
            modules = [module]
        case _:
            modules = []
    return {module.split(".")[1] for module in modules if module.startswith(f"{package}.")}


def lowest_rows(graph: networkx.DiGraph) -> list[list[str]]:
    """Return the boxes row by row, each above all that use it and close to the first of them."""
    return list(networkx.topological_generations(graph.reverse()))[::-1]


def draw(
    graph: networkx.DiGraph,
    rows: Iterable[Iterable[str]],
    name: str,
    verb: str,
    links: Mapping[str, str] | None = None,
) -> str:
    """Return a map as SVG, with the same in words for those who do not see it.

    An arrow is left out where a longer way says the same. Within a row a box stands below those that lead to it, as far
    as there is space: fewer lines cross.

    Args:
        graph: an edge leads from a box to one that stands on it.
        rows: the boxes row by row.
        name: the name of the drawing, for its style.
        verb: what the lower box does to the upper one, in words.
        links: where a box leads to.
    """
    graph = networkx.transitive_reduction(graph)
    table = [sorted(row) for row in rows]
    for sweep in range(12):
        neighbours = graph.predecessors if sweep % 2 == 0 else graph.successors
        place = {box: column - len(row) / 2 for row in table for column, box in enumerate(row)}
        for row in table:
            beside = {box: [place[other] for other in neighbours(box)] or [place[box]] for box in row}
            row.sort(key=lambda box: (sum(beside[box]) / len(beside[box]), box))
    across, down = max(map(len, table)) * ACROSS + 2 * MARGIN, (len(table) - 1) * DOWN + HEIGHT + 2 * MARGIN
    corners = {
        box: (across / 2 + (column - len(row) / 2) * ACROSS + (ACROSS - WIDTH) / 2, MARGIN + number * DOWN)
        for number, row in enumerate(table)
        for column, box in enumerate(row)
    }
    arrows = "".join(_arrow(corners[start], corners[end], name) for start, end in sorted(graph.edges))
    boxes = "".join(_box(box, corners[box], (links or {}).get(box)) for row in table for box in row)
    words = " ".join(f"{box} {verb} {', '.join(sorted(graph.pred[box]))}." for box in corners if graph.pred[box])
    return (
        f'<figure class="map {name}"><svg viewBox="0 0 {across:.0f} {down}" role="group" '
        f'aria-labelledby="{name}-title"><title id="{name}-title">{html.escape(words)}</title>'
        f'<defs><marker id="{name}-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>{arrows}{boxes}</svg></figure>'
    )


def _box(words: str, corner: tuple[float, float], link: str | None) -> str:
    left, top = corner
    box = (
        f'<rect x="{left:.0f}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>'
        f'<text x="{left + WIDTH / 2:.0f}" y="{top + HEIGHT / 2 + 4.5}">{words}</text>'
    )
    return f'<a href="{link}">{box}</a>' if link else box


def _arrow(start: tuple[float, float], end: tuple[float, float], name: str) -> str:
    """An arrow from the foot of one box to the head of another, bent so that it leaves and arrives upright."""
    x, y, to_x, to_y = start[0] + WIDTH / 2, start[1] + HEIGHT, end[0] + WIDTH / 2, end[1] - 1
    bend = min(30, (to_y - y) / 2)
    return (
        f'<path class="arrow" d="M{x:.0f},{y} C{x:.0f},{y + bend:.0f} {to_x:.0f},{to_y - bend:.0f} {to_x:.0f},{to_y}" '
        f'marker-end="url(#{name}-tip)"/>'
    )


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directives and the sums."""
    app.connect("config-inited", set_hours, priority=1)
    for name, directive in ("explorer", ExplorerDirective), ("course-map", CourseMap), ("room-map", RoomMap):
        app.add_directive(name, directive)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
