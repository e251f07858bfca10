"""The commands as a user meets them: what they print, what they return, never a traceback."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.training.tiny import tiny_toml
from ttutor import cli
from ttutor.training.recipe import PRESETS
from ttutor.training.run_folder import EXPORT
from ttutor.translation import training_command

pytestmark = pytest.mark.trainer
ROOT = Path(__file__).resolve().parents[2]
TINY = tiny_toml(steps=6, validate_every=3, checkpoint_every=2)


def write_text(folder: Path) -> tuple[str, ...]:
    """Sixty aligned lines in two files, and a recipe for them; returns the options that name them."""
    (folder / "a.en").write_text("".join(f"Sentence number {number}.\n" for number in range(60)))
    (folder / "a.fr").write_text("".join(f"Phrase numéro {number}.\n" for number in range(60)), encoding="utf-8")
    (folder / "tiny.toml").write_text(TINY)
    return ("--source", "a.en", "--target", "a.fr", "--recipe", "tiny.toml", "--out", "run")


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path)


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory):
    """A folder in which `ttutor train` has been run on these files."""
    folder = tmp_path_factory.mktemp("trained")
    files = {"source": folder / "a.en", "target": folder / "a.fr"}
    write_text(folder)
    recipe = folder / "tiny.toml"
    training_command.run(
        training_command.TrainingRequest(files=files, recipe=recipe, out=folder / "run", quiet=True, device="cpu")
    )
    return folder


@pytest.fixture
def trained(ttutor, text, trained_once):
    """The same training in this test's own folder, as if it had been run there; returns the options."""
    shutil.copytree(trained_once / "run", "run")
    facts = Path("run/run.json")
    facts.write_text(facts.read_text().replace(str(trained_once), str(Path.cwd())))
    return text


def test_train_translate_evaluate_on_files(ttutor, text):
    result = ttutor("train", *text)
    assert "57 pairs to train on" in result.output
    assert "3 training pairs are held out" in result.output
    assert "Trained 6 steps" in result.output
    assert len(ttutor("translate", "--run", "run", "Sentence number 3.", "Another one.").stdout.splitlines()) == 2
    scores = ttutor("evaluate", "--run", "run", "--source", "a.en", "--reference", "a.fr", "--beam", "1")
    assert "BLEU, cased" in scores.output
    assert "tok:13a" in scores.output
    as_json = ttutor("evaluate", "--run", "run", "--source", "a.en", "--reference", "a.fr", "--json")
    assert json.loads(as_json.stdout)["n_sentences"] == 60


def test_the_last_run_is_found_without_naming_it(ttutor, text):
    ttutor("train", *text[:-2], "--quiet")
    assert Path("ttutor-runs/tiny/run.json").is_file()
    assert ttutor("translate", "Sentence number 3.").stdout.count("\n") == 1


def test_validation_files(ttutor, text):
    extra = ("--validation-source", "a.en", "--validation-target", "a.fr")
    assert "60 pairs to train on" in ttutor("train", *text, *extra).output


def test_the_help_names_every_preset(ttutor):
    help_text = " ".join(ttutor("train", "--help", env={"COLUMNS": "200"}).output.split())
    assert [name for name in PRESETS if name not in help_text] == []


def test_a_second_training_needs_leave(ttutor, trained):
    before = Path("run/metrics.jsonl").read_bytes()
    assert "--resume" in ttutor("train", *trained, code=2).output
    assert Path("run/metrics.jsonl").read_bytes() == before
    Path("run/notes.txt").write_text("mine")
    ttutor("train", *trained, "--overwrite", "--seed", "5", "--quiet")
    assert Path("run/metrics.jsonl").read_bytes() != before
    assert Path("run/notes.txt").read_text() == "mine"


def test_every_pair_is_evaluated(ttutor, trained):
    Path("t.en").write_text("Sentence number 3.\n\nSentence number 4.\n" + "word " * 400 + "\n")
    Path("t.fr").write_text("Phrase.\n\n\nmot\n")
    arguments = ("evaluate", "--run", "run", "--source", "t.en", "--reference", "t.fr", "--beam", "1")
    result = ttutor(*arguments, "--json")
    scores = json.loads(result.stdout)
    assert scores["n_sentences"] == 4
    assert 1 <= scores["n_cut"] <= 3  # the long one, and what so weak a model does not end
    assert f"Warning: {scores['n_cut']} of 4 sentences are cut, the first: " in result.stderr
    assert "4, of which" in ttutor(*arguments).stdout


def test_what_is_cut_is_told_by_the_sentences_number(ttutor, trained):
    result = ttutor("translate", "--run", "run", "--beam", "1", input="\n" * 70 + "word " * 400 + "\n")
    assert "Warning: sentence 71 is cut: it has " in result.stderr
    assert result.stdout.count("\n") == 71


def test_a_part_of_the_extra_that_is_missing_is_named(ttutor, trained, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    monkeypatch.delitem(sys.modules, "ttutor.translation.evaluation")
    assert cli.main(["evaluate", "--run", "run", "--source", "a.en", "--reference", "a.fr"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("Error: sacrebleu.metrics does not load")
    assert 'pip install ".[translation]"' in told


PIPES = {
    "training goes on": ("train {text} | true", 0, ""),
    "translate, closed": ("translate --run run --beam 1 Sentence >&-", 0, ""),
    "doctor, full": ("doctor > /dev/full", 2, "Error: cannot write the output: No space left on device"),
}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a shell and the device /dev/full")
@pytest.mark.parametrize("case", PIPES)
def test_an_output_that_nobody_reads_or_that_is_full(trained, tmp_path, case):
    line, code, told = PIPES[case]
    again = " ".join((*trained[:-1], "again"))
    line = f"{sys.executable} -m ttutor.cli {line.format(text=again)}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"], env=environment, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert told in done.stderr
    assert done.returncode == code
    assert (tmp_path / "again/checkpoints/step-00000006").is_dir() is (case == "training goes on")


def test_a_bad_text_does_not_cost_the_old_run(ttutor, trained):
    before = ttutor("translate", "--run", "run", "Sentence").stdout
    Path("a.fr").write_text("one line\n")
    ttutor("train", *trained, "--overwrite", code=2)
    assert ttutor("translate", "--run", "run", "Sentence").stdout == before


BAD = {
    "unequal line counts": (lambda: Path("a.fr").write_text("one line\n"), "60 lines and a.fr has 1"),
    "a bad recipe": (lambda: Path("tiny.toml").write_text("dropout = 2\nsteps = 1\n"), "dropout must be"),
    "a file where the run should go": (lambda: Path("run").write_text(""), "run is a file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_message_and_code_2(ttutor, text, case):
    spoil, message = BAD[case]
    spoil()
    result = ttutor("train", *text, code=2)
    (error,) = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert message in error.replace(str(Path.cwd()) + os.sep, "")
    assert not Path("run/run.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "--target", "a.fr"), "--target needs --source"),
        (("train", "--validation-source", "a.en", "--validation-target", "a.fr"), "validation files without"),
        (("train", "--preset", "embedded", "--recipe", "x.toml"), "exclude each other"),
        (("train", "--steps", "3", "--minutes", "1"), "exactly one of"),
        (("train", "--resume"), "there is no trained model in"),
        (("evaluate",), "there is no trained model under ttutor-runs"),
        (("translate", "--run", "nowhere", "x"), "there is no trained model in nowhere"),
        (("translate", "--beam", "0", "x"), "greater than or equal to 1"),
        (("evaluate", "--run", "nowhere", "--source", "x"), "--source and --reference belong together"),
    ],
)
def test_wrong_use_is_one_message_and_code_2(ttutor, arguments, message):
    assert message in " ".join(ttutor(*arguments, code=2).output.split())


def test_before_any_training_the_model_that_ships_translates(ttutor):
    shown = ttutor("translate", "A man rides a horse.")
    assert shown.stdout == "Ein Mann reitet auf einem Pferd.\n"
    assert "there is no training under ttutor-runs" in shown.stderr


def test_evaluating_an_export_says_what_it_is(ttutor, tmp_path):
    (tmp_path / EXPORT).write_text("{}")
    output = ttutor("evaluate", "--run", str(tmp_path), code=2).output
    assert "holds an exported translator, which `ttutor translate --run` runs" in " ".join(output.split())


def test_evaluating_a_run_on_files_needs_files(ttutor, trained):
    assert "give --source and --reference" in ttutor("evaluate", "--run", "run", code=2).output


def test_resume_goes_on_by_the_same_command_and_refuses_another(ttutor, trained):
    assert "Resumed after step 6" in ttutor("train", *trained, "--resume").output
    assert "Resumed after step 6" in ttutor("train", "--resume", "--out", "run").output
    for other in (("--steps", "9"), ("--seed", "1"), ("--source", "a.fr"), ("--preset", "embedded")):
        assert f"differ from {other[0]}" in ttutor("train", "--resume", "--out", "run", *other, code=2).output


@pytest.mark.skipif(os.name != "posix", reason="sends a signal the POSIX way")
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path, text):
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(recipe.read_text().replace("steps = 6", "steps = 100000"))
    command = [sys.executable, "-m", "ttutor.cli", "train", *text]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        metrics = tmp_path / "run" / "metrics.jsonl"
        for _ in range(600):
            if metrics.is_file() and metrics.stat().st_size:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "ttutor train --resume --out run" in errors
    assert "Traceback" not in errors


def test_the_full_disk_is_one_message(ttutor, text, monkeypatch):
    import errno

    def full_disk(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full_disk)
    assert "No space left on device; make room" in ttutor("train", *text, code=2).output


def test_multi30k_smoke(ttutor, multi30k, tmp_path):
    """A few steps on the real files, which are read whole; the first sentences get their translations."""
    (tmp_path / "tiny.toml").write_text(TINY)
    files = [str(multi30k / name) for name in ("train.en.gz", "train.de.gz", "val.en.gz", "val.de.gz")]
    options = ("--source", "--target", "--validation-source", "--validation-target")
    named = [word for pair in zip(options, files, strict=True) for word in pair]
    assert "29,000 pairs to train on" in ttutor("train", *named, "--recipe", "tiny.toml", "--out", "run").output
    for language in ("en", "de"):
        lines = gzip.decompress((multi30k / f"val.{language}.gz").read_bytes()).splitlines(keepends=True)
        (tmp_path / f"t.{language}").write_bytes(b"".join(lines[:50]))
    tests = ("--source", "t.en", "--reference", "t.de", "--beam", "1", "--json")
    assert json.loads(ttutor("evaluate", "--run", "run", *tests).stdout)["n_sentences"] == 50
