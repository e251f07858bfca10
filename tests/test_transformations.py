"""Every family of models under every transformation of PyTorch: as plain, or one sentence that names the way out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock

from tests.transformed import FAMILIES, TRANSFORMATIONS

ROOT = Path(__file__).parents[1]
WAY_OUT = 'attend=functools.partial(efficient_attention, backend="eager")'
# These record a model, which takes seconds; the others are tried before a release. One is compiled in test_compile.py,
# and the translator is exported for ONNX in tests/translation/test_export.py.
RECORDED = {
    "compile": (),
    "export": ("Gemma",),
    "jit.trace": ("GPT, alibi", "Gemma", "gpt-oss", "DeepSeek", "Transformer, post", "T5", "ModernBERT", "ViT"),
}
ALL = [(family, name) for name in TRANSFORMATIONS for family in FAMILIES]
SOME = [(family, name) for family, name in ALL if family in RECORDED.get(name, FAMILIES)]


@pytest.fixture(scope="session")
def outcomes(shared_folder: Path) -> Callable[[bool], dict[str, str]]:
    """What came of some, or of all others: found once, whichever of the processes that test asks first."""

    @cache
    def found(is_whole: bool) -> dict[str, str]:
        path = shared_folder / f"transformed-{'others' if is_whole else 'some'}.json"
        with FileLock(path.with_suffix(".lock")):
            if not path.exists():
                path.write_text(json.dumps(transformed(is_whole)), encoding="utf-8")
        return json.loads(path.read_text(encoding="utf-8"))

    return found


def transformed(is_whole: bool) -> dict[str, str]:
    """Run them in a process of their own (half a minute of the processor; 6 minutes for the others)."""
    asked = json.dumps([pair for pair in ALL if pair not in SOME] if is_whole else SOME)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.transformed", asked]
    run = subprocess.run(command, capture_output=True, text=True, timeout=3000, cwd=ROOT, env=environment)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    ("family", "name"),
    [pytest.param(*pair, marks=() if pair in SOME else pytest.mark.soak, id=f"{pair[1]}: {pair[0]}") for pair in ALL],
)
def test_a_transformed_model_computes_what_the_plain_one_does(family, name, outcomes):
    said = outcomes((family, name) not in SOME)[f"{family}: {name}"]
    if name == "gradient of a gradient" and WAY_OUT in said:
        return  # PyTorch's fused kernel has no second derivative, and the message says which backend has
    assert said == "equal"
