"""The maps of the course and of the rooms, and that the page on how the project is built leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path

import networkx
import pytest

from book._tools.maps import CHAPTERS, ROWS, course, draw, lowest_rows, rooms
from book._tools.notebook_io import chapters, read

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "how-it-is-built.md").read_text(encoding="utf-8")
BOXES = dict(enumerate(course(), start=1))
# Chapters that "You need" names and that can be done without: a box or a sentence there says what is needed of them.
HELPFUL = {2: {1}, 5: {4}, 6: {5}, 8: {7}, 10: {4}, 11: {1}, 12: {5}}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in which ``top`` imports ``middle`` and ``bottom``, and ``middle`` imports ``bottom``."""
    package = tmp_path / "ttutor"
    (package / "middle").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "bottom.py").write_text("import torch\n")
    (package / "middle" / "part.py").write_text("from ttutor import bottom\nimport ttutor.middle.other\n")
    (package / "top.py").write_text("def late():\n    import ttutor.bottom\n    from ttutor.middle.part import f\n")
    return package


def test_rooms_stand_above_what_imports_them_and_no_arrow_says_what_a_longer_way_says(package: Path) -> None:
    graph = rooms(package)
    assert set(graph.edges) == {("bottom", "middle"), ("bottom", "top"), ("middle", "top")}
    assert lowest_rows(graph) == [["bottom"], ["middle"], ["top"]]
    drawing = draw(graph, lowest_rows(graph), "room-map", "uses")
    assert drawing.count('class="arrow"') == 2
    assert "middle uses bottom. top uses middle." in drawing


def test_the_rooms_of_the_package_import_one_way_and_all_are_explained() -> None:
    graph = rooms(ROOT / "ttutor")
    assert networkx.is_directed_acyclic_graph(graph)
    assert {room for room in graph if not re.search(rf"`{room}[`.]", PAGE)} == set()


def test_every_tool_of_the_book_is_explained() -> None:
    tools = {path.stem for path in (ROOT / "book" / "_tools").glob("[!_]*.py")}
    assert {tool for tool in tools if f"`{tool}`" not in PAGE} == set()


def test_chapters_stand_on_earlier_ones_only_and_each_box_is_a_link() -> None:
    assert [name for at, name in enumerate(CHAPTERS, 1) if any(other >= at for other in CHAPTERS[name])] == []
    links = {box: f"{number:02d}.html" for number, box in BOXES.items()}
    rows = [[BOXES[number] for number in row] for row in ROWS]
    picture = draw(course(), rows, "course-map", "stands on", links)
    assert sorted(re.findall(r'href="([^"]+)"', picture)) == sorted(links.values())
    assert "9 Variants stands on 7 Transformer, 8 Training." in picture


@pytest.mark.parametrize("path", [path for path in chapters() if path.stem.count("-") == 1], ids=lambda path: path.stem)
def test_a_chapter_asks_for_no_chapter_that_the_map_leaves_out(path: Path) -> None:
    number = int(path.name[:2])
    needed = {int(box.split()[0]) for box in networkx.ancestors(course(), BOXES[number])} | {number}
    opening = read(path.read_text(encoding="utf-8")).cells[0].source
    asked = next(line for line in opening.splitlines() if line.startswith("**You need**"))
    named = {int(found) for found in re.findall(r"<(\d\d)-", asked)}
    assert named <= needed | HELPFUL.get(number, set())
