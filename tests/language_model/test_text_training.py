"""A GPT of one's own: it learns, resumes as if it had not stopped, is read by transformers, and says what is wrong."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ttutor import assets
from ttutor.device import choose_threads
from ttutor.errors import FileError, InputError, SettingError
from ttutor.language_model import SIZES, TextTraining, continue_text, gpt_command, load_language_model
from ttutor.language_model.model_folder import save_language_model
from ttutor.language_model.text_training import LEARNING_RATES
from ttutor.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ttutor.training.progress import Stopped

LINES = [
    f"The {animal} {verb} the {thing}, and the {thing} {ends}.\n"
    for animal in ("cat", "dog", "old goat", "hen", "red fox")
    for verb in ("sees", "follows", "hears", "wants")
    for thing, ends in (("ball", "rolls away"), ("boat", "leaves"), ("bell", "rings"), ("wind", "turns"))
]
TEXT = "".join(LINES)


pytestmark = pytest.mark.usefixtures("as_readers_run_it")  # these train for long; other tests check the annotations


def tiny(folder: Path | None = None, steps: int = 4, **changes: object) -> TextTraining:
    return TextTraining(TEXT, folder, size="tiny", steps=steps, **changes)


def test_it_learns_a_text_and_writes_words_of_it() -> None:
    training = tiny(steps=100)
    language_model = training.run()
    assert training.best_loss < 0.5 * training.loss_by_frequency()
    written = "".join(continue_text(language_model, "The cat", max_new_tokens=30, temperature=0.0))
    assert {word.strip(".,") for word in written.split()} & {"ball", "boat", "bell", "wind"}
    assert written == "".join(continue_text(language_model, "The cat", max_new_tokens=30, temperature=0.0))


def test_a_stopped_training_resumed_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole = tiny(steps=20)
    whole.run()
    stopped = tiny(tmp_path / "gpt", steps=20)

    def interrupt(training: TextTraining, loss: float) -> None:
        if training.step == 10:
            os.kill(os.getpid(), 2)

    with pytest.raises(Stopped):
        stopped.run(on_look=interrupt)
    assert stopped.step == 10
    again = tiny(tmp_path / "gpt", steps=20)
    assert again.resume() == []
    again.run()
    assert again.best_loss == whole.best_loss
    stored = load_language_model(tmp_path / "gpt").model.state_dict()
    assert all(torch.equal(tensor, stored[name]) for name, tensor in whole.best.items())


def test_a_short_training_reaches_its_full_rate_after_a_tenth() -> None:
    training, rates = tiny(steps=20), []
    training.training_step = lambda rate: rates.append(rate) or setattr(training, "step", len(rates)) or 1.0
    training.held_out_loss = lambda: 1.0  # type: ignore[method-assign]
    training.run(quiet=True)
    assert rates[0] < rates[1] < rates[2] == LEARNING_RATES["tiny"] == rates[10] > rates[15] > rates[19] > 0


def test_the_best_weights_are_kept_when_it_gets_worse() -> None:
    training = tiny(steps=20)
    losses = iter([3.0, 2.0] + [5.0] * 8)
    kept = []
    training.held_out_loss = lambda: next(losses)  # type: ignore[method-assign]
    training.run(on_look=lambda one, loss: kept.append({name: t.clone() for name, t in one.best.items()}))
    assert training.best_loss == 2.0
    best = training.result().model.state_dict()
    assert all(torch.equal(tensor, best[name]) for name, tensor in kept[1].items())
    assert not all(torch.equal(tensor, best[name]) for name, tensor in training.model.state_dict().items())


def test_transformers_reads_the_folder_and_writes_the_same_numbers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    training = tiny(tmp_path / "gpt")
    training.run()
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "gpt").eval()
    token_ids = torch.tensor([training.tokenizer.encode("The old goat hears")])
    ours = load_language_model(tmp_path / "gpt").model(token_ids)
    torch.testing.assert_close(ours, theirs(token_ids).logits, rtol=0, atol=1e-5)


def test_writing_goes_on_past_the_window() -> None:
    language_model = tiny().result()
    window = SIZES["tiny"]["max_len"]
    pieces = list(continue_text(language_model, TEXT[:600], max_new_tokens=2 * window, seed=3))
    n_tokens = len(language_model.tokenizer.encode("".join(pieces)))
    assert n_tokens > window
    assert pieces == list(continue_text(language_model, TEXT[:600], max_new_tokens=2 * window, seed=3))


def test_the_page_shows_what_was_measured() -> None:
    page = (Path(__file__).resolve().parents[2] / "book" / "api-language-model.md").read_text(encoding="utf-8")
    for run in assets.load("language_model_sizes")["runs"]:
        best = run["best"]
        known = f"{best['bits']:.2f} | {best['step']} | {best['seconds']:.0f} | {100 * run['words_known']:.0f} %"
        assert f"| {run['size']} | {run['parameters']:,} | {known} |" in page
        assert f"{run['letters']:,} letters" in page
        assert f"gives {best['bits'] / best['loss'] * run['loss_by_frequency']:.2f}." in page
    small = assets.load("language_model_sizes")["runs"][1]
    assert list(small["losses"].values())[-1] > small["best"]["loss"]


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: TextTraining("too short"), InputError, "has 9 letters, and 2,000 are the least"),
        (lambda: TextTraining(TEXT, size="huge"), SettingError, "tiny, small, medium"),
        (lambda: TextTraining(TEXT, minutes=0.0), SettingError, "expected minutes above 0, but came 0$"),
        (lambda: TextTraining(TEXT, steps=0), SettingError, "expected steps above 0, but came 0$"),
        (lambda: TextTraining(TEXT, size="medium"), InputError, "too short for the size 'medium'"),
        (lambda: tiny().resume(), SettingError, "without a folder"),
        (lambda: load_language_model("nowhere"), FileError, "no language model in nowhere"),
        (lambda: next(continue_text(tiny().result(), "a", temperature=-1.0)), SettingError, "temperature >= 0"),
    ],
)
def test_what_cannot_be_is_refused_in_words(make, error, said) -> None:
    with pytest.raises(error, match=said):
        make()


def test_another_text_or_seed_does_not_go_on_with_a_training(tmp_path: Path) -> None:
    tiny(tmp_path / "gpt").run()
    with pytest.raises(FileError, match="another seed"):
        tiny(tmp_path / "gpt", seed=1).resume()
    with pytest.raises(FileError, match="another text"):
        TextTraining(TEXT + TEXT, tmp_path / "gpt", size="tiny", steps=4).resume()


def test_one_process_trains_in_a_folder_and_the_old_model_goes_when_the_new_one_stands(tmp_path: Path) -> None:
    first = tiny(tmp_path / "gpt")
    first.run()
    before = (tmp_path / "gpt" / "model.safetensors").read_bytes()
    hold = "import sys; from pathlib import Path; from ttutor.files import sole_writer\n"
    hold += "with sole_writer(Path(sys.argv[1])): print(flush=True); input()"
    command = [sys.executable, "-c", hold, str(tmp_path / "gpt" / "writer.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == "\n"
        with pytest.raises(FileError, match=f"is being written by process {held.pid} on"):
            tiny(tmp_path / "gpt", seed=1).run()
        held.communicate("\n")
    assert (tmp_path / "gpt" / "model.safetensors").read_bytes() == before
    second = tiny(tmp_path / "gpt", seed=1)
    second.training_step = lambda rate: 1 / 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        second.run()
    assert [path.name for path in (tmp_path / "gpt" / "checkpoints").iterdir()] == ["step-00000000"]
    load_language_model(tmp_path / "gpt")
    assert tiny(tmp_path / "gpt", seed=1).resume() == []


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "model.safetensors"])
def test_a_file_that_is_not_the_one_the_weights_were_written_with_is_named(tmp_path: Path, name: str) -> None:
    save_language_model(tiny(steps=1).result(), tmp_path)
    whole = (tmp_path / name).read_bytes()
    if name == "tokenizer.json":  # swap two tokens: it loads, and reads other tokens
        tokens = json.loads(whole)
        (one, first), (other, second) = list(tokens["model"]["vocab"].items())[-2:]
        tokens["model"]["vocab"] |= {one: second, other: first}
        changed = json.dumps(tokens, ensure_ascii=False).encode()
    elif name == "config.json":
        changed = whole.replace(b'"n_head": 4', b'"n_head": 2')
    else:
        changed = whole[:-1] + bytes([whole[-1] ^ 1])
    assert changed != whole
    (tmp_path / name).write_bytes(changed)
    with pytest.raises(FileError, match="is not what the weights were written with"):
        load_language_model(tmp_path)


@pytest.mark.parametrize("damage", ["seconds", "signature", "exp_avg.decoder", "best"])
def test_a_checkpoint_that_lacks_something_is_refused_in_words(tmp_path: Path, damage: str) -> None:
    tiny(tmp_path / "gpt").run()
    checkpoint, _ = load_checkpoint(tmp_path / "gpt" / "checkpoints")
    tensors = {name: tensor for name, tensor in checkpoint.tensors.items() if not name.startswith(damage)}
    state = {name: value for name, value in checkpoint.state.items() if name != damage}
    assert len(tensors) + len(state) < len(checkpoint.tensors) + len(checkpoint.state)
    save_checkpoint(tmp_path / "gpt" / "checkpoints", Checkpoint(tensors, state))
    with pytest.raises(FileError, match="checkpoint"):
        tiny(tmp_path / "gpt").resume()


def test_the_command_trains_refuses_to_overwrite_and_writes(ttutor, tmp_path: Path) -> None:
    path = tmp_path / "my.txt"
    path.write_text(TEXT, encoding="utf-8")
    out = tmp_path / "gpt"
    options = ("--out", str(out), "--size", "tiny", "--steps", "10")
    shown = ttutor("gpt", str(path), *options).output
    assert "letters" in shown
    assert shown.count("bits a byte") == 10
    assert json.loads((out / "config.json").read_text())["model_type"] == "gpt2"
    assert "--overwrite" in ttutor("gpt", str(path), *options, code=2).output
    assert ttutor("gpt", "--out", str(out), "--prompt", "The hen", "--length", "8").output.startswith("The hen")
    assert "ttutor gpt my.txt" in ttutor("gpt", code=2).output
    assert "is a file; choose a folder by --out" in ttutor("gpt", str(path), "--out", str(path), code=2).output


def test_the_text_and_the_settings_are_looked_at_before_the_folder(ttutor, tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    ttutor("gpt", "my.txt", "--size", "tiny", "--steps", "1", "--quiet")
    before = {path: path.read_bytes() for path in (tmp_path / "my-gpt").rglob("*") if path.is_file()}
    for options in ([], ["--overwrite"], ["--resume"]):
        assert "there is no file nothing.txt" in ttutor("gpt", "nothing.txt", *options, code=2).output
        assert "minutes above 0, but came -1\n" in ttutor("gpt", "my.txt", "--minutes", "-1", *options, code=2).output
        assert "there is no size 'huge'" in ttutor("gpt", "my.txt", "--size", "huge", *options, code=2).output
    assert {path: path.read_bytes() for path in (tmp_path / "my-gpt").rglob("*") if path.is_file()} == before


def test_where_there_is_nothing_to_go_on_with_the_command_that_begins_is_named(ttutor, tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    output = ttutor("gpt", "my.txt", "--size", "tiny", "--steps", "1", "--out", "nope", "--resume", code=2).output
    begin = re.search("begin one: ttutor (.*)\n", output)[1]
    ttutor(*shlex.split(begin), "--quiet")
    assert load_language_model(tmp_path / "nope")


def test_the_command_that_is_printed_after_ctrl_c_goes_on(ttutor, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "my text.txt").write_text(TEXT, encoding="utf-8")
    with monkeypatch.context() as interrupted:
        interrupted.setattr(gpt_command, "_show", lambda training, loss: os.kill(os.getpid(), 2))
        begun = ["--size", "tiny", "--steps", "10", "--seed", "3", "--out", "my model"]
        output = ttutor("gpt", "my text.txt", *begun, code=130).output
    assert "saved after step 1. Go on with: ttutor gpt" in output
    ttutor(*shlex.split(output.rpartition("Go on with: ttutor ")[2]))
    checkpoint, _ = load_checkpoint(tmp_path / "my model" / "checkpoints")
    assert checkpoint.step == 10


def test_a_small_model_trains_on_one_thread_and_a_medium_one_on_all(ttutor, tmp_path: Path, two_threads: None) -> None:
    trainings = [TextTraining(20 * TEXT, size=size, steps=1) for size in ("small", "medium")]
    assert [choose_threads(training.largest_product()) for training in trainings] == [1, 2]
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf-8")
    ttutor("gpt", "my.txt", "--size", "tiny", "--steps", "1", "--quiet")
    assert torch.get_num_threads() == 1
