"""What importing costs. That the rooms import one way is for import-linter (``layers`` in ``pyproject.toml``)."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ttutor

PACKAGE = Path(ttutor.__file__).parent
CONTRACTS = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
LAYERS = next(contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
CORE = [room for layer in LAYERS[LAYERS.index("translation") + 1 :] for room in layer.split(" | ")] + ["training.fit"]


# What a fresh Python runs in turn; after each step the modules are written down that are loaded by then.
STEPS = {
    "nothing": "pass",
    "ttutor": "import ttutor",
    "without torch": "import ttutor.widgets, ttutor.variants, ttutor.tokenization",
    "first chapters": "import ttutor.multihead, ttutor.encoder, ttutor.decoder",
    "core": "; ".join(f"import ttutor.{room}" for room in CORE),
    "doctor": "import ttutor.doctor; ttutor.doctor.examine()",
}


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """The modules that are loaded after each step."""
    script = "\n".join(["import sys", *(f"{step}\nprint(*sys.modules)" for step in STEPS.values())])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return dict(zip(STEPS, (set(line.split()) for line in done.stdout.splitlines()), strict=True))


def test_importing_ttutor_loads_nothing_heavy(loaded: dict[str, set[str]]) -> None:
    assert loaded["ttutor"] - loaded["nothing"] == {"ttutor"}
    assert loaded["without torch"] & {"torch", "numpy", "matplotlib", "anywidget", "tokenizers"} == set()


def test_the_layers_of_the_first_chapters_load_no_fast_kernels(loaded: dict[str, set[str]]) -> None:
    assert [name for name in loaded["first chapters"] if name.startswith("ttutor.efficient")] == []


def test_the_core_and_doctor_load_no_plotting_no_widgets_no_compiler(loaded: dict[str, set[str]]) -> None:
    assert "torch" in loaded["core"]
    heavy = {"matplotlib", "ipywidgets", "anywidget", "IPython", "triton", "tokenizers", "typer", "jupyter_book"}
    assert loaded["doctor"] & heavy == set()


def test_what_runs_in_the_sandbox_imports_nothing_of_the_package() -> None:
    """The package is not there: these modules import one another by relative imports."""
    modules = sorted((PACKAGE / "grading" / "worker").glob("*.py"))
    texts = {path.name: path.read_text(encoding="utf-8") for path in modules}
    assert len(texts) > 5
    assert [name for name, text in texts.items() if re.search(r"^\s*(from|import) (ttutor|\.\.)", text, re.M)] == []


def test_the_first_translation_loads_no_compiler() -> None:
    """PyTorch's takes longer to load than all the rest; to draw random numbers on the meta device loads it."""
    script = "import sys, ttutor.translation as room; room.load_default()('A dog runs.'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "torch" in done.stdout.split()
    assert "torch._dynamo" not in done.stdout.split()
