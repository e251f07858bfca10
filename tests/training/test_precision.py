"""Where a training runs and in which number format: what is chosen, what is refused, and that a GPU trains the same."""

import pytest
import torch

from tests.training.ranks import tiny_trainer
from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.errors import SettingError
from ttutor.training import precision
from ttutor.training.checkpoint import load_checkpoint
from ttutor.training.precision import products_in, resolve_precision, training_device
from ttutor.training.run_folder import RunFolder
from ttutor.training.trainer import Trainer


@pytest.fixture
def gpus(monkeypatch):
    """Let PyTorch say that there are so many GPUs."""

    def pretend(count: int) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: "pretended")

    return pretend


def test_auto_takes_the_cpu_where_there_is_no_gpu(gpus):
    gpus(0)
    assert training_device("auto", local_rank=3) == training_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("wanted", ["auto", "cuda"])
def test_each_process_of_a_machine_takes_a_gpu_of_its_own(gpus, wanted):
    gpus(2)
    assert [training_device(wanted, local_rank) for local_rank in (0, 1)] == [
        torch.device("cuda:0"),
        torch.device("cuda:1"),
    ]
    with pytest.raises(SettingError, match="more processes on this machine than its 2 GPUs: start at most 2 here"):
        training_device(wanted, local_rank=2)
    assert training_device("cpu", local_rank=2) == torch.device("cpu")
    assert training_device("cuda:1") == torch.device("cuda:1")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            "cuda",
            r"there is no device 'cuda:0' here; there is cpu; device=\"auto\" \(--device auto\) takes what there is",
        ),
        ("cuda:1", "there is no device 'cuda:1' here"),
        ("cuda:x", "but is 'cuda:x'"),
        ("gpu", "the device must be auto, cpu, cuda, or one GPU as cuda:1, got 'gpu'"),
        ("mps", "the device must be auto, cpu, cuda"),
    ],
)
def test_a_device_that_is_not_here_is_refused(gpus, monkeypatch, wanted, message):
    gpus(0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(SettingError, match=message):
        training_device(wanted)


@pytest.mark.parametrize(("native", "expected"), [(torch.bfloat16, "bf16"), (torch.float16, "fp32"), (None, "fp32")])
def test_auto_is_bf16_only_where_the_device_multiplies_it(monkeypatch, native, expected):
    monkeypatch.setattr(precision, "half_precision", lambda device: native)
    assert resolve_precision("auto", torch.device("cuda")) == expected
    assert resolve_precision("bf16") == "bf16"


def test_products_run_in_the_format_asked_for():
    one = torch.ones(2, 2)
    with products_in("bf16", torch.device("cpu")):
        assert (one @ one).dtype == torch.bfloat16
    with products_in("fp32", torch.device("cpu")):
        assert (one @ one).dtype == torch.float32


@pytest.mark.trainer
def test_one_lane_after_another_trains_like_lanes_at_one_time(threads):
    """What a GPU does, on the CPU: without dropout the weights are the same, bit for bit."""
    threads(1)
    trainers = [tiny_trainer(dropout=0.0, steps=5) for _ in range(2)]
    trainers[1].lanes._in_turn = True
    for trainer in trainers:
        trainer.run()
    for one, other in zip(*(trainer.model.parameters() for trainer in trainers), strict=True):
        assert torch.equal(one, other)


@pytest.mark.gpu
@pytest.mark.trainer
@pytest.mark.parametrize(("first", "then"), [("cuda", "cpu"), ("cpu", "cuda"), ("cuda", "cuda")])
def test_a_training_goes_on_on_another_device(tmp_path, first, then):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device is here")

    def trainer(folder: str, device: str) -> Trainer:
        run = RunFolder(tmp_path / folder)
        return Trainer(tiny_corpus(), tiny_recipe(dropout=0.0), run, precision="fp32", device=device)

    whole = trainer("whole", "cpu")
    whole.run()
    begun = trainer("moved", first)
    assert all(parameter.device.type == first for parameter in begun.model.parameters())
    begun.training_step(begun.next_batches())
    begun.save()
    assert all(tensor.device.type == "cpu" for tensor in load_checkpoint(begun.folder.checkpoints)[0].tensors.values())
    moved = trainer("moved", then)
    assert moved.resume() == []
    moved.run()
    losses = [[record["validation_loss"] for record in one.metrics] for one in (moved, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.gpu
@pytest.mark.trainer
def test_a_gpu_that_multiplies_bf16_learns_with_dropout_and_repeats_itself():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device is here")
    runs = [Trainer(tiny_corpus(), tiny_recipe(steps=60, validate_every=20), device="cuda") for _ in range(2)]
    losses = [[record["validation_loss"] for record in trainer.run()] for trainer in runs]
    assert losses[0][0] > losses[0][1] > losses[0][2]
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)  # sums of a GPU may come in another order
