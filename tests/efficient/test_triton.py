"""Our fused GPU kernel: its arithmetic in Triton's interpreter, its sizes by the compiler, and all of it on a GPU."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.efficient.cases import Case, assert_as_good_as_plain, inputs_of, run, small_cases
from tests.require import missing
from ttutor.efficient.attention_call import HAS_TRITON, AttentionCall
from ttutor.efficient.triton import triton_attention, why_not
from ttutor.efficient.triton_launch import PLANS, SHARED_KIB, plan
from ttutor.errors import SettingError, ShapeError

STRUCTURES = ("none", "causal", "window", "causal+window", "lengths", "causal+lengths")
HALF = (torch.bfloat16, torch.float16)
A_GPU = AttentionCall(
    device="cuda", capability=(9, 0), dtype=torch.bfloat16, n_queries=512, n_keys=512, has_triton=True
)
ROOT = Path(__file__).parents[2]


def run_alone(program: str, part: str, folder: Path, *, interpret: bool) -> dict[str, object]:
    """Run one of the programs beside this file, in a process whose Triton interprets or compiles."""
    if not HAS_TRITON:
        missing("triton", "Triton is not installed; on Linux: pip install triton")
    environment = {**os.environ, "TRITON_INTERPRET": str(int(interpret)), "TRITON_CACHE_DIR": str(folder)}
    command = [sys.executable, "-m", f"tests.efficient.{program}", part]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def assert_all_passed(results: dict[str, object], at_least: int) -> None:
    failures = [f"{name}: {result}" for name, result in results.items() if result != "passed"]
    assert failures == []
    assert len(results) >= at_least


def test_the_kernels_compute_what_the_reference_computes(tmp_path):
    assert_all_passed(run_alone("interpreted_triton", "quick", tmp_path, interpret=True), at_least=13)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_kernels_compute_what_the_reference_computes_everywhere(tmp_path):
    assert_all_passed(run_alone("interpreted_triton", "soak", tmp_path, interpret=True), at_least=200)


def test_the_kernels_compile_without_a_gpu(tmp_path):
    assert len(run_alone("compiled_triton", "quick", tmp_path, interpret=False)) == 3


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_what_the_compiler_makes_of_every_plan_fits_into_shared_memory(tmp_path):
    found = run_alone("compiled_triton", "soak", tmp_path, interpret=False)
    assert len(found) == 3 * len(PLANS) * 6
    for name, n_bytes in found.items():
        major, minor = name.split()[0].split(".")
        assert n_bytes <= SHARED_KIB.get((int(major), int(minor)), 99) * 1024, name


@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)])
@pytest.mark.parametrize(("direction", "n_bytes"), PLANS)
def test_there_is_a_plan_for_every_gpu_and_every_head(capability, direction, n_bytes):
    for d_head, d_value in itertools.product((1, 16, 40, 64, 65, 128), repeat=2):
        sizes = plan(direction, d_head, d_value, n_bytes, capability, n_queries=4096)
        assert sizes in PLANS[direction, n_bytes]
    few = plan(direction, 64, 64, n_bytes, capability, n_queries=1).block_queries
    assert few == 16 if direction == "output" else few <= 128


def test_it_can_run_on_a_gpu():
    assert why_not(A_GPU) is None
    assert why_not(A_GPU._replace(causal=True, window=9, has_key_lengths=True, needs_gradient=True)) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"device": "cpu", "capability": None}, "compiles for NVIDIA GPUs, and these tensors are on cpu"),
        ({"device": "mps", "capability": None}, "these tensors are on mps"),
        ({"capability": (7, 5)}, r"capability 8.0 or more, and this GPU's is \(7, 5\)"),
        ({"dtype": torch.float64}, "the queries are torch.float64"),
        ({"d_head": 129}, "heads of up to 128 numbers, and these have 129"),
        ({"d_value": 256}, "these have 256"),
        ({"has_dense": True}, "reads no mask tensor"),
        ({"has_bias": True}, "adds no bias"),
        ({"dropout": 0.1}, "has no dropout"),
        ({"has_triton": False}, "Triton is not installed"),
    ],
)
def test_it_says_what_it_cannot_run(change, reason):
    assert re.search(reason, why_not(A_GPU._replace(**change)))


def test_tensors_on_a_cpu_are_refused():
    tensors = inputs_of(Case()).tensors()
    with pytest.raises(SettingError, match="on cpu; 'sdpa' and 'tiled' can"):
        triton_attention(*tensors)


def test_tensors_that_do_not_fit_together_are_refused(as_readers_run_it):
    query, key, value = inputs_of(Case()).tensors()
    with pytest.raises(ShapeError, match="axis 'keys' is 7 in key but 6 in value"):
        triton_attention(query, key, value[:, :, :6])
    with pytest.raises(ValueError, match="one device, but came on cpu, meta, cpu"):
        triton_attention(query, key.to("meta"), value)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [*HALF, torch.float32], ids=str)
@pytest.mark.parametrize("masking", STRUCTURES)
def test_on_a_gpu_it_is_as_good_as_plain(masking, dtype):
    for case in small_cases((masking,), dtype=dtype):
        assert_as_good_as_plain(triton_attention, case, gradients=True, device="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("masking", STRUCTURES)
def test_on_a_gpu_it_is_as_good_as_plain_over_many_blocks(masking, width):
    case = Case(n_queries=700, n_keys=900, n_heads=4, n_kv_heads=2, d_head=width, d_value=width, masking=masking)
    for dtype, is_strided in itertools.product((*HALF, torch.float32), (False, True)):
        changed = replace(case, dtype=dtype, strided=is_strided)
        assert_as_good_as_plain(triton_attention, changed, gradients=True, device="cuda")


@pytest.mark.gpu
def test_on_a_gpu_it_gives_the_same_bits_every_time():
    case = Case(n_queries=600, n_keys=800, n_heads=4, n_kv_heads=1, d_head=64, d_value=64, masking="causal")
    inputs = inputs_of(replace(case, dtype=torch.bfloat16), requires_grad=True, device="cuda")
    first, second = (run(triton_attention, inputs, gradients=True) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.gpu
def test_on_a_gpu_memory_grows_with_the_length_and_not_its_square():
    query = torch.randn(1, 1, 32768, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    triton_attention(query, query, query, causal=True, window=256).sum().backward()
    table_of_scores = 32768**2 * query.element_size()
    assert torch.cuda.max_memory_allocated() - before < table_of_scores / 20
