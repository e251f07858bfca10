"""Results of long runs belong to the scripts that made them."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from experiments._record import ASSETS, EXPERIMENTS, LARGEST_BYTES, corpus_hash, source_hash
from ttutor import assets

SCRIPTS = sorted(path for path in EXPERIMENTS.glob("*.py") if not path.name.startswith("_"))


def test_every_result_has_a_script_and_every_script_a_result() -> None:
    assert assets.names() == [path.stem for path in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_result_was_made_by_the_script_as_it_stands(script: Path) -> None:
    provenance = assets.load(script.stem)["provenance"]
    assert provenance["script_sha256"] == source_hash(script), f"{script.name} changed: run it again (make experiments)"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_result_says_where_it_came_from_and_on_which_corpus(script: Path) -> None:
    provenance = assets.load(script.stem)["provenance"]
    expected = {"command", "machine", "minutes", "script_sha256", "seeds", "versions"}
    assert set(provenance) - {"corpus_sha256", "weights_sha256"} == expected
    assert provenance["command"].startswith(f"python experiments/{script.name}")
    assert provenance["seeds"] != []
    uses_corpus = re.search(r"\bembedded_(corpus|sentences)\b", script.read_text(encoding="utf-8")) is not None
    assert provenance.get("corpus_sha256") == (corpus_hash() if uses_corpus else None), (
        f"{script.name} learned from a corpus that has changed: run it again (make experiments)"
    )


def test_stored_weights_are_those_of_their_result() -> None:
    stored = {path.stem: sha256(path.read_bytes()).hexdigest() for path in ASSETS.glob("*.safetensors")}
    recorded = {name: assets.load(name)["provenance"].get("weights_sha256") for name in assets.names()}
    assert stored == {name: digest for name, digest in recorded.items() if digest}


def test_results_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in ASSETS.iterdir() if path.suffix in (".json", ".safetensors")}
    translator = sizes.pop("page_translator.safetensors")  # a model that ships, with its vocabulary
    assert translator <= 3_500_000
    assert [name for name, size in sizes.items() if size > LARGEST_BYTES] == []
    assert sum(sizes.values()) < 5_000_000


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


def test_an_unknown_result_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FileNotFoundError, match="no stored result is called 'nothing'"):
        assets.load("nothing")
