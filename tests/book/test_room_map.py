"""The page that says how the project is built: its drawing, and that it leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path

import networkx
import pytest

from book._tools.room_map import draw, rooms, rows

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "how-it-is-built.md").read_text(encoding="utf-8")


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


def test_an_edge_leads_from_a_room_to_those_that_import_it(package: Path) -> None:
    assert set(rooms(package).edges) == {("bottom", "middle"), ("bottom", "top"), ("middle", "top")}


def test_rooms_stand_above_what_imports_them_and_no_arrow_says_what_a_longer_way_says(package: Path) -> None:
    graph = rooms(package)
    assert rows(graph) == [["bottom"], ["middle"], ["top"]]
    drawing = draw(graph)
    assert drawing.count('class="arrow"') == 2
    assert "middle uses bottom. top uses middle." in drawing


def test_the_rooms_of_the_package_import_one_way_and_all_are_explained() -> None:
    graph = rooms(ROOT / "ttutor")
    assert networkx.is_directed_acyclic_graph(graph)
    assert {room for room in graph if not re.search(rf"`{room}[`.]", PAGE)} == set()


def test_every_tool_of_the_book_is_explained() -> None:
    tools = {path.stem for path in (ROOT / "book" / "_tools").glob("[!_]*.py")}
    assert {tool for tool in tools if f"`{tool}`" not in PAGE} == set()
