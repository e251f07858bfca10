"""Any bytes in the place of any file that we read: a result, or one of our own errors, and soon."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.training.tiny import tiny_recipe
from ttutor.corpora.text_style import TextStyle
from ttutor.errors import TtutorError
from ttutor.interop.folder import read_folder
from ttutor.interop.folder import write_folder as write_model
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.records import add_record, read_records
from ttutor.training.run_folder import RunFacts, RunFolder
from ttutor.transformer import TransformerConfig
from ttutor.translation.export.folder import Exported

FACTS = RunFacts("a text", "abc", {"source": "a.en"}, TextStyle(), "fp32", 1)
TENSORS = {"model.weight": torch.arange(4.0)}


def write_run(folder: Path) -> None:
    tokenizer = SubwordTokenizer.train(["the red car"], vocab_size=270)
    RunFolder(folder).create(tiny_recipe(), tokenizer, FACTS)
    add_record(folder / "metrics.jsonl", {"step": 1, "training_loss": 2.5})


def write_checkpoint(folder: Path) -> None:
    save_checkpoint(folder, Checkpoint(TENSORS, {"step": 3, "signature": {}}))


def write_export(folder: Path) -> None:
    (folder / "model.bin").write_bytes(b"weights")
    Exported("ctranslate2", None, TextStyle(), TransformerConfig(vocab_size=10, d_model=8, n_heads=2)).write(folder)


FORMATS: dict[str, tuple[Callable[[Path], object], str, Callable[[Path], object]]] = {
    "run.json": (write_run, "run.json", lambda folder: RunFolder(folder).facts()),
    "recipe.toml": (write_run, "recipe.toml", lambda folder: TrainingRecipe.load(folder / "recipe.toml")),
    "tokenizer.json": (write_run, "tokenizer.json", lambda folder: RunFolder(folder).tokenizer()),
    "metrics.jsonl": (write_run, "metrics.jsonl", lambda folder: list(read_records(folder / "metrics.jsonl"))),
    "state.json": (write_checkpoint, "step-00000003/state.json", load_checkpoint),
    "tensors.safetensors": (write_checkpoint, "step-00000003/tensors.safetensors", load_checkpoint),
    "ttutor.json": (write_export, "ttutor.json", Exported.read),
    "config.json": (lambda folder: write_model(folder, {"a": 1}, TENSORS), "config.json", read_folder),
    "model.safetensors": (lambda folder: write_model(folder, {"a": 1}, TENSORS), "model.safetensors", read_folder),
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NESTED = st.sampled_from([b"[", b'{"a":', b"a = ["]).map(lambda start: start * 50_000)


def replaced(whole: bytes, data: st.DataObject) -> bytes:
    """A JSON object with one value, of whatever depth, that is another or gone; other files with a few other bytes."""
    try:
        body = json.loads(whole)
    except ValueError:
        start = data.draw(st.integers(0, len(whole)))
        return whole[:start] + data.draw(st.binary(max_size=8)) + whole[start + data.draw(st.integers(0, 8)) :]
    place = body
    while isinstance(place, dict) and place:
        name = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[name], dict) or not place[name] or data.draw(st.booleans()):
            if data.draw(st.booleans()):
                place[name] = data.draw(VALUES)
            else:
                del place[name]
            break
        place = place[name]
    return json.dumps(body).encode("utf-8", errors="replace")


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes_give_a_result_or_an_error_of_ours(name, tmp_path, data):
    write, file, read = FORMATS[name]
    whole_copy = tmp_path / "whole"
    if not whole_copy.exists():
        (tmp_path / "folder").mkdir()
        write(tmp_path / "folder")
        read(tmp_path / "folder")
        whole_copy.write_bytes((tmp_path / "folder" / file).read_bytes())
    whole, path = whole_copy.read_bytes(), tmp_path / "folder" / file
    match data.draw(st.sampled_from(["cut", "any", "nested", "value"])):
        case "cut":
            path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        case "any":
            path.write_bytes(data.draw(st.binary(max_size=200)))
        case "nested":
            path.write_bytes(data.draw(NESTED))
        case "value":
            path.write_bytes(replaced(whole, data))
    with suppress(TtutorError):  # anything else fails the test
        read(tmp_path / "folder")
    path.write_bytes(whole)
