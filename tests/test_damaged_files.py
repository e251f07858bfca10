"""Any bytes in the place of any file that we read: a result, or one of our own errors, within a second.

What the package ships itself (`ttutor.assets`, ``claims.toml``) is not here, nor what a worker of the grader says
(``tests/grading/test_values.py``); GGUF has ``tests/pretrained/test_damaged.py``.
"""

import contextlib
import gzip
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ttutor
from tests.grading.made import recorded
from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.corpora.text_files import open_text, read_groups
from ttutor.corpora.text_style import TextStyle
from ttutor.errors import FileError, TtutorError
from ttutor.exercises import exercises
from ttutor.exercises.loading import read_work as read_answers
from ttutor.exercises.progress import read_progress
from ttutor.files import sole_writer
from ttutor.grading.assignment import assignment_of, read_assignment
from ttutor.grading.gradebook import read_by_hand
from ttutor.grading.record import read_record, write_record
from ttutor.grading.roster import read_roster
from ttutor.grading.submission import find_work, read_work
from ttutor.interop.folder import read_folder
from ttutor.interop.folder import write_folder as write_model
from ttutor.language_model.model_folder import LanguageModel, load_language_model, save_language_model
from ttutor.pretrained.catalogue import Published, sha256_of
from ttutor.pretrained.fetching import files_in
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.checkpoint import Checkpoint, StateFile, load_checkpoint, save_checkpoint
from ttutor.training.curve import drawn_records
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.records import add_record, cut_records, read_records
from ttutor.training.run_folder import RunFacts, RunFolder
from ttutor.training.trainer import Trainer
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.export.folder import Exported
from ttutor.translation.packed import PackedTranslator
from ttutor.translation.translator import Translator
from ttutor.variants.gpt import GPT, GPTConfig

FACTS = RunFacts("a text", "abc", {"source": "a.en"}, TextStyle(), "fp32", 1)
TENSORS = {"model.weight": torch.arange(4.0)}
SIZES = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8, "max_len": 16}
ASSIGNMENT = (
    'title = "One"\nseed = "not to be told"\n[exercises]\n"attention.softmax" = { points = 2, hide = [] }\n'
    "[limits]\nseconds = 60.0\n[extensions]\nada = 2026-01-01T00:00:00Z\n[by_hand]\nessay = 3\n"
)
ASKED = assignment_of({"seed": "not to be told", "exercises": {"attention.softmax": 2.0}})
CELLS = [{"cell_type": "code", "source": ["def my_softmax(scores):\n", "    return scores\n"], "metadata": {}}]
PUBLISHED = Published(
    name="a",
    what="",
    package="a",
    version="1",
    inside="a",
    files={"b": sha256_of(b"weights")},
    megabytes=1,
    licence="",
    source="",
)


def tokenizer() -> SubwordTokenizer:
    return SubwordTokenizer.train(["the red car"], vocab_size=270)


def write_run(folder: Path) -> None:
    RunFolder(folder).create(tiny_recipe(), tokenizer(), FACTS)
    losses = {"seconds": 0.5, "learning_rate": 1e-3, "training_loss": 2.5, "validation_loss": 2.0}
    for step in (1, 2):
        add_record(folder / "metrics.jsonl", {"step": step, **losses})


def write_checkpoint(folder: Path) -> None:
    save_checkpoint(folder, Checkpoint(TENSORS, {"step": 3, "signature": {}}))


def write_export(folder: Path) -> None:
    (folder / "model.bin").write_bytes(b"weights")
    Exported("ctranslate2", None, TextStyle(), TransformerConfig(vocab_size=10, d_model=8, n_heads=2)).write(folder)


def write_parts(folder: Path) -> None:
    write_model(folder, {"a": 1}, TENSORS)
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    index = {"weight_map": {"model.weight": "part.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def write_language_model(folder: Path) -> None:
    pieces = tokenizer()
    save_language_model(LanguageModel(GPT(GPTConfig(vocab_size=pieces.vocab_size, **SIZES)).eval(), pieces), folder)


def write_packed(folder: Path) -> None:
    pieces = tokenizer()
    model = Transformer(TransformerConfig(vocab_size=pieces.vocab_size, **SIZES))
    (folder / "packed").write_bytes(PackedTranslator(Translator(model, pieces), {}).to_bytes())


def write_wheel(folder: Path) -> None:
    with zipfile.ZipFile(folder / "a.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("a/b", b"weights")


def write_handed_in(folder: Path) -> None:
    (folder / "in").mkdir()
    with zipfile.ZipFile(folder / "in" / "ada.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("hw/ada.py", "def my_softmax(scores): ...")


def written(name: str, content: str | bytes) -> Callable[[Path], None]:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data) and None


def write_assignment(folder: Path) -> None:
    exercises()  # all are loaded, for seconds, where one is unknown
    (folder / "hw.toml").write_text(ASSIGNMENT, encoding="utf-8")


def handed_in(folder: Path) -> None:
    for one in find_work(folder / "in").students:
        read_work(one, ("*.py",))


def lines(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        with open_text(folder / name) as stream:
            return list(read_groups(stream, name))

    return read


FORMATS: dict[str, tuple[Callable[[Path], object], str, Callable[[Path], object]]] = {
    "run.json": (write_run, "run.json", lambda folder: RunFolder(folder).facts()),
    "recipe.toml": (write_run, "recipe.toml", lambda folder: TrainingRecipe.load(folder / "recipe.toml")),
    "tokenizer.json": (write_run, "tokenizer.json", lambda folder: RunFolder(folder).tokenizer()),
    "metrics.jsonl": (write_run, "metrics.jsonl", lambda folder: list(read_records(folder / "metrics.jsonl"))),
    "metrics.jsonl, cut": (write_run, "metrics.jsonl", lambda folder: cut_records(folder / "metrics.jsonl", 1)),
    "metrics.jsonl, drawn": (write_run, "metrics.jsonl", lambda folder: drawn_records(RunFolder(folder))),
    "state.json": (write_checkpoint, "step-00000003/state.json", load_checkpoint),
    "tensors.safetensors": (write_checkpoint, "step-00000003/tensors.safetensors", load_checkpoint),
    "ttutor.json": (write_export, "ttutor.json", Exported.read),
    "a file of an export": (write_export, "model.bin", Exported.read),
    "config.json": (lambda folder: write_model(folder, {"a": 1}, TENSORS), "config.json", read_folder),
    "model.safetensors": (lambda folder: write_model(folder, {"a": 1}, TENSORS), "model.safetensors", read_folder),
    "model.safetensors.index.json": (write_parts, "model.safetensors.index.json", read_folder),
    "a GPT's config.json": (write_language_model, "config.json", load_language_model),
    "a GPT's model.safetensors": (write_language_model, "model.safetensors", load_language_model),
    "a GPT's tokenizer.json": (write_language_model, "tokenizer.json", load_language_model),
    "a packed translator": (
        write_packed,
        "packed",
        lambda folder: PackedTranslator.from_bytes((folder / "packed").read_bytes()),
    ),
    "a wheel": (write_wheel, "a.whl", lambda folder: files_in(PUBLISHED, folder / "a.whl")),
    "text": (written("a.txt", "One.\nTwö.\n"), "a.txt", lines("a.txt")),
    "text.gz": (written("a.gz", gzip.compress("One.\nTwö.\n".encode())), "a.gz", lines("a.gz")),
    "progress.json": (
        written("p.json", '{"points": {"attention.softmax": 2}}'),
        "p.json",
        lambda folder: read_progress(folder / "p.json"),
    ),
    "a notebook": (
        written("hw.ipynb", json.dumps({"cells": CELLS, "nbformat": 4})),
        "hw.ipynb",
        lambda folder: read_answers(folder / "hw.ipynb"),
    ),
    "assignment.toml": (write_assignment, "hw.toml", lambda folder: read_assignment(folder / "hw.toml")),
    "roster.csv": (
        written("class.csv", "student,name,submitted\nada,Ada,2026-01-01T00:00:00+00:00\n"),
        "class.csv",
        lambda folder: read_roster(folder / "class.csv"),
    ),
    "by-hand.csv": (
        written("by-hand.csv", "student,exercise,points,comment\nada,attention.softmax,1,well\n"),
        "by-hand.csv",
        lambda folder: read_by_hand(folder / "by-hand.csv", ASKED),
    ),
    "a record of marks": (
        lambda folder: write_record(folder / "ada.json", recorded()),
        "ada.json",
        lambda folder: read_record(folder / "ada.json"),
    ),
    "a zip that was handed in": (write_handed_in, "in/ada.zip", handed_in),
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
HUGE = st.sampled_from([10**9, 10**30, -(10**30), 1e300, -1.0, 2**63])
NESTED = (b"[", b'{"a":', b"a = [", b"a = {a=", b'{"cells":[', b'{"points":{"a":', b"(")
HOLD = """
import pathlib, sys
from ttutor.files import sole_writer
with sole_writer(pathlib.Path(sys.argv[1])):
    print(flush=True)
    input()
"""
LONGEST = 1.0
"""Seconds of computing that one damaged file may take."""


def replaced(whole: bytes, data: st.DataObject) -> bytes:
    """A JSON object with one value, of whatever depth, that is another or gone; other files with a few other bytes."""
    try:
        body = json.loads(whole)
    except ValueError:
        start = data.draw(st.integers(0, len(whole)))
        return whole[:start] + data.draw(st.binary(max_size=8)) + whole[start + data.draw(st.integers(0, 8)) :]
    replace_in(body, data)
    return json.dumps(body).encode("utf-8", errors="replace")


def replace_in(body: object, data: st.DataObject) -> None:
    """Replace or remove one value somewhere in an object."""
    place = body
    while isinstance(place, dict | list) and place:
        name = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[name], dict | list) or not place[name] or data.draw(st.booleans()):
            if data.draw(st.booleans()):
                place[name] = data.draw(VALUES | HUGE)
            else:
                del place[name]
            break
        place = place[name]


def damaged(whole: bytes, data: st.DataObject) -> bytes:
    match data.draw(st.sampled_from(["cut", "any", "nested", "value"])):
        case "cut":
            return whole[: data.draw(st.integers(0, len(whole) - 1))]
        case "any":
            return data.draw(st.binary(max_size=200))
        case "nested":
            return data.draw(st.sampled_from(NESTED)) * 50_000
        case _:
            return replaced(whole, data)


def seconds_of(read: Callable[[], object]) -> float:
    """Read, and say how long it computed; anything but a result or an error of ours goes on to the test."""
    began = time.process_time()
    with contextlib.suppress(TtutorError):
        read()
    return time.process_time() - began


def many(cases: int) -> Callable[[Callable], Callable]:
    """The same test on so many cases: always the same few, or, where there are many, others each time."""
    quick = cases < 100
    return settings(max_examples=cases, deadline=None, derandomize=quick, database=None)


@pytest.mark.parametrize("cases", [25, pytest.param(1500, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", FORMATS)
def test_any_bytes_give_a_result_or_an_error_of_ours(name: str, cases: int, tmp_path: Path) -> None:
    write, file, read = FORMATS[name]
    write(tmp_path)
    read(tmp_path)
    path = tmp_path / file
    whole = path.read_bytes()

    @many(cases)
    @given(data=st.data())
    def attempt(data: st.DataObject) -> None:
        path.write_bytes(damaged(whole, data))
        assert seconds_of(lambda: read(tmp_path)) < LONGEST

    attempt()
    path.write_bytes(whole)
    read(tmp_path)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_nested_without_end_is_refused_or_read_past(name: str, tmp_path: Path) -> None:
    write, file, read = FORMATS[name]
    write(tmp_path)
    for start in NESTED:
        (tmp_path / file).write_bytes(start * 50_000)
        assert seconds_of(lambda: read(tmp_path)) < LONGEST


def signed(state: object, tensors: bytes, folder: Path) -> None:
    """Write a checkpoint whose checksums fit, whatever it says."""
    body = StateFile("ttutor-translation-checkpoint-3", sha256_of(tensors), state)  # type: ignore[arg-type]
    text = json.dumps({**asdict(body), "sha256": body.checksum()})
    (folder / "state.json").write_text(text, encoding="utf-8")
    (folder / "tensors.safetensors").write_bytes(tensors)


@pytest.mark.parametrize("cases", [25, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("reader", ["resume", "translate"])
def test_a_checkpoint_whose_checksum_fits_may_still_say_anything(reader: str, cases: int, tmp_path: Path) -> None:
    corpus, recipe = tiny_corpus(), tiny_recipe(steps=1)
    trainer = Trainer(corpus, recipe, tmp_path / "run")
    trainer.run()
    again = Trainer(corpus, recipe, tmp_path / "run", tokenizer=trainer.tokenizer, precision=trainer.precision)
    folder = next((tmp_path / "run" / "checkpoints").glob("*1"))
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))["state"]
    tensors = (folder / "tensors.safetensors").read_bytes()
    read = again.resume if reader == "resume" else lambda: Translator.load(tmp_path / "run")
    read()

    @many(cases)
    @given(data=st.data())
    def attempt(data: st.DataObject) -> None:
        said = json.loads(json.dumps(state))
        replace_in(said, data)
        signed(said, tensors, folder)
        assert seconds_of(read) < LONGEST

    attempt()


@pytest.fixture
def held_elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A lock that another process holds."""
    lock = tmp_path / "writer.lock"
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdout is not None
        one.stdout.readline()
        yield lock
        one.communicate(b"\n")


@pytest.mark.parametrize("content", [b"", b"[" * 50_000, b"\xff", b"[]", b'{"process": {}, "host": 1}'])
def test_a_held_lock_refuses_whatever_stands_in_it(content: bytes, held_elsewhere: Path) -> None:
    held_elsewhere.write_bytes(content)
    with pytest.raises(FileError, match="is being written by"), sole_writer(held_elsewhere):
        pass


READERS = {"json.loads": "parse_json", "tomllib.loads": "parse_toml", "safetensors.torch.load": "foreign_reader"}
OWN = ("ttutor/assets/", "ttutor/claims.py", "ttutor/widgets/", "ttutor/grading/worker/", "ttutor/schemas.py")
KNOWN = {  # beside what the package ships, what workers say, and the room itself: each says there why
    "ttutor/files.py": 1,
    "ttutor/training/records.py": 1,
    "ttutor/interop/huggingface.py": 1,
    "ttutor/translation/packed.py": 2,
    "ttutor/translation/export/huggingface.py": 1,
    "ttutor/training/checkpoint.py": 1,
}


def test_whoever_reads_a_file_does_it_in_the_room_for_that() -> None:
    root = Path(ttutor.__file__).parent
    paths = {path: f"ttutor/{path.relative_to(root).as_posix()}" for path in root.rglob("*.py")}
    found = {
        name: sum(path.read_text(encoding="utf-8").count(f"{reader}(") for reader in READERS)
        for path, name in paths.items()
        if not name.startswith(OWN)
    }
    assert {name: count for name, count in found.items() if count} == KNOWN, f"read files by {READERS}"
