"""What importing costs. That the rooms import one way is for import-linter (``layers`` in ``pyproject.toml``)."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import ttutor

PACKAGE = Path(ttutor.__file__).parent
CONTRACTS = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
LAYERS = next(contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
CORE = [room for layer in LAYERS[LAYERS.index("translation") + 1 :] for room in layer.split(" | ")] + ["training.fit"]


def loaded_by(statement: str) -> set[str]:
    """Return the top-level packages that a fresh Python has loaded after a statement."""
    script = f"{statement}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_layers_of_the_first_chapters_load_no_fast_kernels() -> None:
    script = "import sys, ttutor.multihead, ttutor.encoder, ttutor.decoder; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if name.startswith("ttutor.efficient")] == []


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


def test_what_runs_in_the_sandbox_imports_nothing_of_the_package() -> None:
    """The package is not there: these modules import one another by relative imports."""
    modules = sorted((PACKAGE / "grading" / "worker").glob("*.py"))
    texts = {path.name: path.read_text(encoding="utf-8") for path in modules}
    assert len(texts) > 5
    assert [name for name, text in texts.items() if re.search(r"^\s*(from|import) (ttutor|\.\.)", text, re.M)] == []
