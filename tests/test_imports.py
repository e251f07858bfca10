"""What importing costs, and that the rooms import one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ttutor

PACKAGE = Path(ttutor.__file__).parent

# A room may import those on earlier lines, and itself.
ORDER = (
    ("assets", "configs", "device", "shapes"),
    ("masks",),
    ("attention",),
    ("recurrence",),
    ("efficient",),
    ("positions", "cache"),
    ("multihead",),
    ("layers",),
    ("encoder", "decoder"),
    ("tokenization", "embeddings"),
    ("transformer",),
    ("variants",),
    ("generation", "fit"),
    ("inside", "interop"),
    ("translation",),
    ("measurement",),
    ("claims", "widgets", "exercises"),
    ("grading",),
    ("doctor",),
    ("cli",),
    ("__main__",),
)
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
CORE = [room for rooms in ORDER for room in rooms if RANK[room] < RANK["translation"]]
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
APART = [path for path in MODULES if path.is_relative_to(PACKAGE / "grading" / "apart")]  # runs where ttutor is not


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms_imported(path: Path) -> set[str]:
    """Return the rooms of ttutor that a module imports, anywhere in its text."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("ttutor.")}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "ttutor":
            rooms |= {alias.name for alias in node.names if not alias.name.startswith("_")}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("ttutor."):
            rooms.add(node.module.split(".")[1])
    return rooms


def loaded_by(statement: str) -> set[str]:
    """Return the top-level packages that a fresh Python has loaded after a statement."""
    script = f"{statement}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_room_has_its_place_in_the_order() -> None:
    assert {room_of(path) for path in MODULES} == set(RANK)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_run_one_way(path: Path) -> None:
    room = room_of(path)
    upwards = {other for other in rooms_imported(path) if other != room and RANK[other] >= RANK[room]}
    assert upwards == set(), f"{room} may import only rooms before it"


@pytest.mark.parametrize("path", APART, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_what_runs_apart_imports_nothing_of_the_package(path: Path) -> None:
    assert rooms_imported(path) == set()
    levels = {node.level for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)}
    assert levels <= {0, 1}


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path not in APART], ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_imports_within_ttutor_are_absolute(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level] == []


def test_importing_ttutor_loads_nothing_heavy() -> None:
    assert loaded_by("import ttutor") - loaded_by("pass") == {"ttutor"}
    assert loaded_by("import ttutor.widgets, ttutor.variants") & {"torch", "numpy", "matplotlib", "anywidget"} == set()


def test_importing_the_core_loads_no_plotting_no_widgets_no_compiler() -> None:
    loaded = loaded_by("; ".join(f"import ttutor.{room}" for room in CORE))
    assert "torch" in loaded
    assert loaded & {"matplotlib", "ipywidgets", "anywidget", "IPython", "triton", "tokenizers", "typer"} == set()


def test_doctor_loads_only_the_core() -> None:
    loaded = loaded_by("import ttutor.doctor; ttutor.doctor.examine()")
    assert loaded & {"matplotlib", "ipywidgets", "tokenizers", "typer", "jupyter_book"} == set()
