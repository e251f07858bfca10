"""Training in several processes: the curve of one, everything seen once, one that writes, and an end for all."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from tests.training.ranks import in_processes, numbers, tiny_trainer
from tests.training.tiny import tiny_toml
from ttutor import cli
from ttutor.errors import InputError, ProcessLost, RunError, SettingError
from ttutor.training.checkpoint import load_checkpoint
from ttutor.training.processes import LAUNCHED, Processes
from ttutor.training.progress import Stopped
from ttutor.training.run_folder import RunFolder

pytestmark = [
    pytest.mark.trainer,
    pytest.mark.skipif(os.name != "posix", reason="forks, kills and interrupts processes the POSIX way"),
]
ROOT = Path(__file__).resolve().parents[2]


def train(processes: Processes, folder, changes: dict) -> dict:
    trainer = tiny_trainer(processes, folder, **changes)
    trainer.run()
    return numbers(trainer)


def trained_alone(**changes) -> dict:
    return train(Processes(), None, changes)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_two_processes_end_bit_identical_to_one_with_two_lanes(optimizer):
    """Dropout included: it depends on the lane, whichever process has it."""
    changes = {"optimizer": optimizer, "dropout": 0.1, "batches_per_step": 2}
    one, other = in_processes(2, train, None, changes)
    assert one == other == trained_alone(**changes)


@pytest.mark.parametrize(("count", "batches_per_step"), [(2, 3), pytest.param(3, 4, marks=pytest.mark.soak)])
def test_the_curve_does_not_depend_on_the_number_of_processes(count, batches_per_step):
    """With several batches in a process, and not as many in each; sums of more than two numbers round differently."""
    changes = {"dropout": 0.0, "batches_per_step": batches_per_step, "validate_every": 1}
    first, *others = in_processes(count, train, None, changes)
    alone = trained_alone(**changes)
    assert all(other == first for other in others)
    assert len(first["training"]) == 14
    assert first["training"] == pytest.approx(alone["training"], rel=1e-5)
    assert first["validation"] == pytest.approx(alone["validation"], rel=1e-5)
    assert first["target_tokens"] == alone["target_tokens"]


def test_more_processes_than_batches_of_a_step_are_refused():
    with pytest.raises(SettingError, match=r"3 processes share 2 batches of a step.*--batches-per-step"):
        tiny_trainer(Processes(2, 3), batches_per_step=2)


def train_elsewhere(processes: Processes, folder: Path) -> list[dict]:
    trainer = tiny_trainer(processes, folder / str(processes.rank), batches_per_step=2)
    return trainer.run()


def test_only_the_first_process_writes(tmp_path):
    one, other = in_processes(2, train_elsewhere, tmp_path)
    assert one == other
    assert [path.name for path in tmp_path.iterdir()] == ["0"]
    assert list(RunFolder(tmp_path / "0").read_metrics()) == one


def train_with_a_slip(processes: Processes, folder: Path) -> None:
    trainer = tiny_trainer(processes, folder, batches_per_step=2)
    take = trainer.training_step

    def step(batches):
        loss = take(batches)
        if processes.rank == 1 and trainer.position.step == 4:
            weight = next(trainer.model.parameters()).detach()
            weight[0, 0] = torch.nextafter(weight[0, 0], weight[0, 0] + 1)
        return loss

    trainer.training_step = step
    trainer.run()


def test_weights_that_differ_in_one_bit_end_all_at_the_next_checkpoint(tmp_path):
    one, other = in_processes(2, train_with_a_slip, tmp_path / "run")
    for error in (one, other):
        assert isinstance(error, RunError)
        assert "the processes differ in " in str(error)
        assert "model.source_embeddings" in str(error)  # in the averages one bit may be lost again
        assert "go on from the last checkpoint" in str(error)
    assert load_checkpoint(tmp_path / "run" / "checkpoints")[0].step == 3


def train_with_a_nan(processes: Processes, folder: Path) -> None:
    trainer = tiny_trainer(processes, folder, batches_per_step=2)
    loss = trainer.loss

    def poisoned(batch, smoothing):
        wrong = processes.rank == 1 and trainer.position.step == 7
        return loss(batch, smoothing) * (float("nan") if wrong else 1.0)

    trainer.loss = poisoned
    trainer.run()


def test_a_loss_that_is_no_number_in_one_process_ends_all_with_the_same_message(tmp_path):
    one, other = in_processes(2, train_with_a_nan, tmp_path / "run")
    assert isinstance(one, RunError)
    assert type(one) is type(other)
    assert str(one) == str(other)
    assert "the loss became nan" in str(one)
    assert "at step 8" in str(one)
    assert load_checkpoint(tmp_path / "run" / "checkpoints")[0].step == 6


def fail_together(processes: Processes, failing: list[int]):
    def work():
        if processes.rank in failing:
            raise InputError("there is no such file")
        return processes.rank

    return processes.run_on_first(work)


def test_a_complaint_of_some_processes_ends_all_and_is_raised_once():
    assert in_processes(2, fail_together, []) == [0, 1]
    everywhere = in_processes(2, fail_together, [0, 1])
    assert [type(error) for error in everywhere] == [InputError, RunError]
    assert str(everywhere[0]) == "there is no such file"
    at_one = in_processes(3, fail_together, [1])
    assert [type(error) for error in at_one] == [RunError, InputError, RunError]
    assert str(at_one[1]).startswith("rank 1 of 3 on ")
    assert "another process could not go on" in str(at_one[0])


def train_until(processes: Processes, folder: Path, step_of_end: int, number: int) -> None:
    """Let the last process send itself a signal in a step."""
    trainer = tiny_trainer(processes, folder, batches_per_step=2, dropout=0.1, steps=20)
    take = trainer.backward

    def signalled(batches):
        if processes.rank == processes.count - 1 and trainer.position.step == step_of_end - 1:
            os.kill(os.getpid(), number)
        return take(batches)

    trainer.backward = signalled
    trainer.run()


def resume(processes: Processes, folder: Path) -> dict:
    trainer = tiny_trainer(processes, folder, batches_per_step=2, dropout=0.1, steps=20)
    assert trainer.resume() == []
    trainer.run()
    return numbers(trainer)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.soak)])
def test_a_request_to_one_process_stops_all_after_the_same_step_and_one_alone_goes_on(tmp_path, number):
    outcomes = in_processes(2, train_until, tmp_path / "run", 5, number)
    assert [type(outcome) for outcome in outcomes] == [Stopped, Stopped]
    assert load_checkpoint(tmp_path / "run" / "checkpoints")[0].step == 5
    whole = trained_alone(dropout=0.1, steps=20)
    assert resume(Processes(), tmp_path / "run")["bytes"] == whole["bytes"]


def test_a_killed_process_ends_the_others_and_another_number_goes_on(tmp_path):
    survivor, killed = in_processes(2, train_until, tmp_path / "run", 8, signal.SIGKILL)
    assert killed is None
    assert isinstance(survivor, ProcessLost)
    assert "lost the others: one of them has ended" in str(survivor)
    checkpoint, messages = load_checkpoint(tmp_path / "run" / "checkpoints")
    assert (checkpoint.step, messages) == (6, [])
    whole = trained_alone(dropout=0.1, steps=20)
    one, other = in_processes(2, resume, tmp_path / "run")
    assert one["bytes"] == other["bytes"] == whole["bytes"]


def test_without_a_launcher_there_is_one_process(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert Processes.launched().count == 1


RECIPE = tiny_toml(steps=120, validate_every=60, checkpoint_every=10)


def launch(folder: Path, *options: str, count: int = 2, max_restarts: int = 0) -> subprocess.Popen:
    """`torchrun -m ttutor train` in several processes."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    command = [*torchrun, "--max-restarts", str(max_restarts), "-m", "ttutor"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "JAXTYPING_DISABLE": "1"}
    environment |= {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"} if max_restarts else {}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, "train", *options], cwd=folder, env=environment, **pipes)


def train_here(*options: str) -> None:
    """`ttutor train` in this process."""
    result = CliRunner().invoke(cli.build_app(), ["train", "--device", "cpu", *options])
    assert result.exit_code == 0, result.output


def wait_for_a_checkpoint(launched: subprocess.Popen, checkpoints: Path, after: int) -> None:
    """Wait until the training has saved a later step than this one."""
    limit = time.monotonic() + 200
    while not any(int(path.name[5:]) > after for path in checkpoints.glob("step-*")):
        assert launched.poll() is None, launched.communicate()
        assert time.monotonic() < limit, "no checkpoint within 200 seconds"
        time.sleep(0.05)


def write_text(folder: Path) -> tuple[str, ...]:
    """Sentences and a recipe in the folder; the options that train on them."""
    (folder / "a.en").write_text("".join(f"Sentence number {number}.\n" for number in range(60)))
    (folder / "a.fr").write_text("".join(f"Phrase numero {number}.\n" for number in range(60)))
    (folder / "tiny.toml").write_text(RECIPE)
    return ("--source", "a.en", "--target", "a.fr", "--recipe", "tiny.toml")


@pytest.mark.parametrize(
    ("shares", "advice"), [("", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"), ("1", "add --standalone")]
)
def test_restarts_that_would_look_for_the_dead_are_refused(monkeypatch, shares, advice):
    for name in LAUNCHED:
        monkeypatch.setenv(name, "2")
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", shares)
    with pytest.raises(RunError, match=advice):
        Processes.launched()


def workers(launched: subprocess.Popen) -> list[int]:
    """The processes that torchrun started."""
    children = Path(f"/proc/{launched.pid}/task/{launched.pid}/children")
    return [int(number) for number in children.read_text().split()] if children.exists() else []


def kill_one(launched: subprocess.Popen, checkpoints: Path, chance: random.Random, after: int) -> int:
    """Kill one process outright, at a random moment after a later checkpoint; give the newest when all have ended."""
    wait_for_a_checkpoint(launched, checkpoints, after)
    time.sleep(chance.random() * 0.2)
    at_work = workers(launched)
    os.kill(chance.choice(at_work), signal.SIGKILL)
    limit = time.monotonic() + 200
    while set(workers(launched)) & set(at_work):
        assert time.monotonic() < limit, "a process of those that one has left is there after 200 seconds"
        time.sleep(0.05)
    return max(int(path.name[5:]) for path in checkpoints.glob("step-*"))


def assert_same_end(folder: Path, one: str, other: str) -> None:
    """Two trainings ended with the same bits."""
    first, second = (load_checkpoint(folder / name / "checkpoints")[0] for name in (one, other))
    assert first.step == second.step == 120
    assert first.tensors.keys() == second.tensors.keys()
    assert all(torch.equal(first.tensors[name], second.tensors[name]) for name in first.tensors)


in_proc = pytest.mark.skipif(sys.platform != "linux", reason="finds the processes that torchrun started in /proc")


@in_proc
def test_torchrun_replaces_a_killed_process_and_one_alone_finishes_what_is_interrupted(
    tmp_path, monkeypatch, as_readers_run_it
):
    text, checkpoints = write_text(tmp_path), tmp_path / "run" / "checkpoints"
    launched = launch(tmp_path, *text, "--out", "run", max_restarts=1)
    step = kill_one(launched, checkpoints, random.Random(1), after=0)
    wait_for_a_checkpoint(launched, checkpoints, after=step)
    launched.send_signal(signal.SIGINT)
    out, errors = launched.communicate(timeout=120)
    assert out.count("57 pairs to train on") == 2, "once for each start"
    assert "2 processes of 1 thread on cpu" in out
    stopped, messages = load_checkpoint(checkpoints)
    assert (stopped.step > step, messages) == (True, [])
    again = "Go on with: torchrun --nproc-per-node 2 -m ttutor train --resume --out run"
    assert errors.count(f"Stopped and saved after step {stopped.step:,}. {again}") == 1

    monkeypatch.chdir(tmp_path)
    train_here("--resume", "--out", "run")
    train_here(*text, "--out", "whole")
    assert_same_end(tmp_path, "run", "whole")


@in_proc
@pytest.mark.soak
def test_many_killed_processes_are_replaced_and_the_training_ends_with_the_same_bits(tmp_path):
    """One of three is killed at ten random moments; torchrun starts all again, and they go on."""
    text, chance = (*write_text(tmp_path), "--batches-per-step", "3"), random.Random(10)
    whole = launch(tmp_path, *text, "--out", "whole", count=3)
    _, errors = whole.communicate(timeout=300)
    assert whole.returncode == 0, errors
    launched, step = launch(tmp_path, *text, "--out", "run", count=3, max_restarts=10), 0
    for _ in range(10):
        step = kill_one(launched, tmp_path / "run" / "checkpoints", chance, after=step)
    _, errors = launched.communicate(timeout=300)
    assert launched.returncode == 0, errors
    assert_same_end(tmp_path, "run", "whole")
