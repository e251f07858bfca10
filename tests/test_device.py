"""Choosing a device and its half precision."""

import pytest
import torch

from ttutor.device import WORTH_A_THREAD, choose_device, choose_threads, half_precision


def pretend(monkeypatch, *, cuda=0, mps=False, capability=(9, 0)):
    """Make PyTorch say that it finds such GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=0: capability)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [({}, "cpu"), ({"cuda": 2}, "cuda"), ({"mps": True}, "mps"), ({"cuda": 1, "mps": True}, "cuda")],
)
def test_auto_takes_the_fastest_kind(monkeypatch, machine, expected):
    pretend(monkeypatch, **machine)
    assert choose_device() == torch.device(expected)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cuda:2", "there is no device 'cuda:2' here; there is cpu, cuda:0, cuda:1"),
        ("mps", "there is no device 'mps' here"),
        ("gpu", r"device must be \"auto\" or one of \['cpu', 'cuda:0', 'cuda:1'\], but is 'gpu'"),
        ("", "device must be"),
    ],
)
def test_what_is_not_there_is_refused(monkeypatch, name, message):
    pretend(monkeypatch, cuda=2)
    with pytest.raises(ValueError, match=message):
        choose_device(name)


@pytest.mark.parametrize(
    ("device", "capability", "expected"),
    [("cuda", (9, 0), torch.bfloat16), ("cuda", (7, 5), torch.float16), ("mps", None, torch.float16)],
)
def test_half_precision_of_gpus(monkeypatch, device, capability, expected):
    pretend(monkeypatch, cuda=1, capability=capability)
    assert half_precision(device) == expected


@pytest.mark.parametrize("has_it", [True, False])
def test_half_precision_of_cpus(monkeypatch, has_it):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has_it}, raising=False)
    assert half_precision("cpu") == (torch.bfloat16 if has_it else None)


def test_small_products_have_one_thread_unless_somebody_wishes_otherwise(monkeypatch, two_threads):
    assert [choose_threads(size) for size in (0, WORTH_A_THREAD - 1, WORTH_A_THREAD)] == [1, 1, 2]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert choose_threads(0) == 2
