"""Results of long runs belong to the scripts that made them."""

from __future__ import annotations

import importlib
import json
import re
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest
import torch

from experiments._record import ASSETS, EXPERIMENTS, LARGEST_BYTES, command_line, corpus_hash, source_hash
from ttutor import assets

SCRIPTS = sorted(path for path in EXPERIMENTS.glob("*.py") if not path.name.startswith("_"))
STEMS = {
    "recurrence", "attention", "multihead", "positions", "encoder", "decoder", "transformer", "training", "variants",
    "vit", "efficient", "inside",
}  # fmt: skip


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The recorder, writing to a folder of its own that holds one script."""
    module = importlib.import_module("experiments._record")
    monkeypatch.setattr(module, "ASSETS", tmp_path)
    monkeypatch.setattr(module, "EXPERIMENTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["training_tiny.py", "--steps", "3"])
    (tmp_path / "training_tiny.py").write_text("print(1)\n", encoding="utf-8")
    return module


def test_every_result_has_a_script_and_every_script_a_result() -> None:
    assert assets.names() == [path.stem for path in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_result_was_made_by_the_script_as_it_stands(script: Path) -> None:
    provenance = assets.load(script.stem)["provenance"]
    assert provenance["script_sha256"] == source_hash(script), f"{script.name} changed: run it again (make experiments)"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_result_on_the_embedded_corpus_used_the_corpus_as_it_stands(script: Path) -> None:
    provenance = assets.load(script.stem)["provenance"]
    uses_corpus = "import embedded_corpus" in script.read_text(encoding="utf-8")
    assert provenance.get("corpus_sha256") == (corpus_hash() if uses_corpus else None), (
        f"{script.name} learned from a corpus that has changed: run it again (make experiments)"
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_result_says_where_it_came_from(script: Path) -> None:
    provenance = assets.load(script.stem)["provenance"]
    expected = {"command", "machine", "minutes", "script_sha256", "seeds", "versions"}
    assert set(provenance) - {"corpus_sha256", "weights_sha256"} == expected
    assert provenance["command"].startswith(f"python experiments/{script.name}")
    assert provenance["seeds"] != []


def test_stored_weights_are_those_of_their_result() -> None:
    stored = {path.stem: sha256(path.read_bytes()).hexdigest() for path in ASSETS.glob("*.safetensors")}
    recorded = {name: assets.load(name)["provenance"].get("weights_sha256") for name in assets.names()}
    assert stored == {name: digest for name, digest in recorded.items() if digest}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_is_named_after_its_chapter(script: Path) -> None:
    assert script.stem.split("_")[0] in STEMS
    assert re.fullmatch(r"[a-z]+_[a-z0-9_]+", script.stem)


def test_results_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in ASSETS.iterdir() if path.suffix in (".json", ".safetensors")}
    assert [name for name, size in sizes.items() if size > LARGEST_BYTES] == []
    assert sum(sizes.values()) < 5_000_000


def test_writing_stores_results_and_origin(record: ModuleType) -> None:
    path = record.write("training_tiny", {"bleu": 1.5}, seeds=[1, 2], started=record.start())
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["bleu"] == 1.5
    assert stored["provenance"]["command"] == "python experiments/training_tiny.py --steps 3"
    assert stored["provenance"]["seeds"] == [1, 2]
    assert stored["provenance"]["minutes"] == 0.0
    assert stored["provenance"]["script_sha256"] == source_hash(record.EXPERIMENTS / "training_tiny.py")
    assert {"python", "torch"} <= set(stored["provenance"]["versions"])
    assert list(path.parent.glob("*.part")) == []


def test_weights_stand_beside_the_result(record: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {"0": torch.arange(3.0), "1": torch.ones(2, dtype=torch.float16)}
    path = record.write("training_tiny", {"loss": 1.5}, seeds=[0, 1], started=record.start(), weights=weights)
    monkeypatch.setattr(assets, "files", lambda _: record.ASSETS)
    found = assets.weights("training_tiny")
    assert {name: (tensor.dtype, tensor.tolist()) for name, tensor in found.items()} == {
        name: (tensor.dtype, tensor.tolist()) for name, tensor in weights.items()
    }
    digest = json.loads(path.read_text(encoding="utf-8"))["provenance"]["weights_sha256"]
    assert digest == sha256(path.with_suffix(".safetensors").read_bytes()).hexdigest()
    with pytest.raises(ValueError, match="store at most"):
        record.write("training_tiny", {}, seeds=[0], started=record.start(), weights={"0": torch.ones(300_000)})
    with pytest.raises(FileNotFoundError, match="no weights are called 'nothing'.*training_tiny"):
        assets.weights("nothing")


@pytest.mark.parametrize(
    ("name", "results", "error", "words"),
    [
        ("training_other", {}, FileNotFoundError, "experiments/training_other.py does not exist"),
        ("training_tiny", {"provenance": 1}, ValueError, "is written by this function"),
        ("training_tiny", {"loss": float("nan")}, ValueError, "Out of range float"),
        ("training_tiny", {"text": "x" * LARGEST_BYTES}, ValueError, "store less"),
    ],
    ids=["no script", "provenance", "not finite", "too large"],
)
def test_what_cannot_be_recorded_is_refused_and_leaves_nothing(
    record: ModuleType, name: str, results: dict, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        record.write(name, results, seeds=[1], started=record.start())
    assert [path.name for path in record.ASSETS.iterdir()] == ["training_tiny.py"]


BEFORE = 'from ttutor.training.fit import fit\n\n\ndef main():\n    """Train."""\n    return fit(steps=3)\n'


def hash_of(folder: Path, text: str) -> str:
    (folder / "script.py").write_bytes(text.encode("utf-8"))
    return source_hash(folder / "script.py")


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("\n", "\r\n"),
        BEFORE.replace("Train.", "Train it."),
        BEFORE.replace("    return", "    # three steps\n    return"),
        BEFORE.replace("ttutor.training.fit", "ttutor.fit"),
        BEFORE.replace("fit(", "train(").replace("import fit", "import train"),
    ],
    ids=["line ends", "docstring", "comment", "room", "name"],
)
def test_what_changes_nothing_in_a_result_asks_for_no_new_run(tmp_path: Path, after: str) -> None:
    assert after != BEFORE
    assert hash_of(tmp_path, after) == hash_of(tmp_path, BEFORE)


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("3", "4"),
        BEFORE.replace("steps", "epochs"),
        BEFORE.replace("fit(steps=3)", "fit(fit(steps=3))"),
        BEFORE.replace("import fit", "import train"),
    ],
    ids=["number", "argument", "call", "not imported"],
)
def test_whatever_may_change_a_result_asks_for_a_new_run(tmp_path: Path, after: str) -> None:
    assert hash_of(tmp_path, after) != hash_of(tmp_path, BEFORE)


def test_the_command_names_no_folder_of_the_machine(tmp_path: Path) -> None:
    assert command_line("training_tiny", [str(tmp_path / "data.txt")]) == "python experiments/training_tiny.py data.txt"


def test_an_unknown_result_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FileNotFoundError, match="no stored result is called 'nothing'"):
        assets.load("nothing")
