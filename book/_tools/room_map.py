"""``room-map``: the rooms of the package as boxes, and an arrow from each to those that import it, read from the code.

An arrow is left out where a longer way says the same: if training uses models and models use attention, no arrow leads
from attention to training.
"""

from __future__ import annotations

import ast
import html
from pathlib import Path

import networkx
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 112, 30, 126, 58, 4


class RoomMap(Directive):
    """``room-map``: the drawing, from the package as it stands."""

    def run(self) -> list[nodes.Node]:
        package = Path(self.state.document.settings.env.srcdir) / "ttutor"
        return [nodes.raw("", draw(rooms(package)), format="html")]


def rooms(package: Path) -> networkx.DiGraph:
    """Return a graph with an edge from each room to every room that imports it directly."""
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


def rows(graph: networkx.DiGraph) -> list[list[str]]:
    """Return the rooms row by row, each above all that import it and close to the first of them.

    Within a row a room stands below those that it imports, as far as there is space: fewer lines cross.
    """
    depth: dict[str, int] = {}
    for room in reversed(list(networkx.topological_sort(graph))):
        depth[room] = min((depth[user] for user in graph[room]), default=0) - 1
    table = [sorted(room for room in graph if depth[room] == row) for row in sorted(set(depth.values()))]
    for sweep in range(12):
        neighbours = graph.predecessors if sweep % 2 == 0 else graph.successors
        place = {room: column - len(row) / 2 for row in table for column, room in enumerate(row)}
        for row in table:
            beside = {room: [place[other] for other in neighbours(room)] or [place[room]] for room in row}
            row.sort(key=lambda room: (sum(beside[room]) / len(beside[room]), room))
    return table


def draw(graph: networkx.DiGraph) -> str:
    """Return the map as SVG, with the same in words for those who do not see it."""
    graph = networkx.transitive_reduction(graph)
    table = rows(graph)
    across, down = max(map(len, table)) * ACROSS + 2 * MARGIN, (len(table) - 1) * DOWN + HEIGHT + 2 * MARGIN
    corners = {
        room: (across / 2 + (column - len(row) / 2) * ACROSS + (ACROSS - WIDTH) / 2, MARGIN + number * DOWN)
        for number, row in enumerate(table)
        for column, room in enumerate(row)
    }
    arrows = "".join(_arrow(corners[start], corners[end]) for start, end in sorted(graph.edges))
    boxes = "".join(_box(room, corners[room]) for row in table for room in row)
    words = " ".join(f"{room} uses {', '.join(sorted(graph.pred[room]))}." for room in corners if graph.pred[room])
    return (
        f'<figure class="course-map room-map"><svg viewBox="0 0 {across:.0f} {down}" role="group" '
        f'aria-labelledby="room-map-title"><title id="room-map-title">{html.escape(words)}</title>'
        '<defs><marker id="room-map-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>{arrows}{boxes}</svg></figure>'
    )


def _box(room: str, corner: tuple[float, float]) -> str:
    left, top = corner
    return (
        f'<rect x="{left:.0f}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>'
        f'<text x="{left + WIDTH / 2:.0f}" y="{top + HEIGHT / 2 + 4.5}">{room}</text>'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """An arrow from the foot of one box to the head of another, bent so that it leaves and arrives upright."""
    x, y, to_x, to_y = start[0] + WIDTH / 2, start[1] + HEIGHT, end[0] + WIDTH / 2, end[1] - 1
    bend = min(30, (to_y - y) / 2)
    return (
        f'<path class="arrow" d="M{x:.0f},{y} C{x:.0f},{y + bend:.0f} {to_x:.0f},{to_y - bend:.0f} {to_x:.0f},{to_y}" '
        'marker-end="url(#room-map-tip)"/>'
    )


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directive."""
    app.add_directive("room-map", RoomMap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
