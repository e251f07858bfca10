"""FlexAttention as a backend: compiling takes long, so that the calls belong to the soak."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.efficient.cases import MASKINGS, Case, inputs_of
from ttutor.efficient import flex
from ttutor.efficient.attention_call import AttentionCall
from ttutor.efficient.flex import flex_attention
from ttutor.errors import SettingError

PROGRAM = """
import sys
from tests.efficient.cases import MASKINGS, Case, assert_as_good_as_plain
from ttutor.efficient.flex import flex_attention
device = sys.argv[1]
for masking in MASKINGS:
    for bias in (False, True):
        sizes = {"n_queries": 130, "n_keys": 200, "n_heads": 4, "n_kv_heads": 2, "d_head": 16, "d_value": 16}
        case = Case(**sizes, masking=masking, bias=bias)
        assert_as_good_as_plain(flex_attention, case, gradients=device == "cuda" and not bias, device=device)
        print(case, flush=True)
"""


def run_without_annotation_checks(device: str) -> list[str]:
    """Run every kind of mask in a process of its own: FlexAttention reads the signature of a mask's function."""
    command = [sys.executable, "-c", PROGRAM, device]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


@pytest.mark.soak
def test_as_good_as_plain_on_a_cpu():
    reason = flex.unsupported_reason(AttentionCall(n_queries=33, n_keys=65))
    if reason is not None:
        pytest.skip(reason)
    assert len(run_without_annotation_checks("cpu")) == 2 * len(MASKINGS)


@pytest.mark.gpu
def test_as_good_as_plain_on_a_gpu():
    assert len(run_without_annotation_checks("cuda")) == 2 * len(MASKINGS)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"dropout": 0.1}, "no dropout"),
        ({"needs_gradient": True}, "no backward pass on a CPU"),
        ({"device": "mps"}, "does not compile for mps"),
        ({"device": "cuda", "has_triton": True, "has_bias": True, "needs_gradient": True}, "gradient of a bias"),
        ({"device": "cuda"}, "needs Triton"),
        ({"device": "cuda", "has_triton": True, "needs_gradient": True}, None),
    ],
)
def test_it_says_what_it_cannot(facts, reason):
    said = flex.unsupported_reason(AttentionCall(n_queries=3, n_keys=3, **facts))
    assert said is None if reason is None else reason in said


def test_no_compiler_no_kernel(monkeypatch):
    monkeypatch.setattr(flex.shutil, "which", lambda name: None)
    assert "none was found" in flex.unsupported_reason(AttentionCall(n_queries=3, n_keys=3))


def test_dropout_is_refused():
    with pytest.raises(SettingError, match="no dropout, but dropout is 0.5"):
        flex_attention(*inputs_of(Case()).tensors(), dropout=0.5)
