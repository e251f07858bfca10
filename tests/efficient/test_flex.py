"""FlexAttention as a backend: compiling takes long, so that the calls belong to the soak."""

from __future__ import annotations

import pytest

from tests.efficient.cases import MASKINGS, Case, assert_as_good_as_plain, inputs_of
from ttutor.efficient import flex
from ttutor.efficient.errors import BackendError
from ttutor.efficient.flex import flex_attention
from ttutor.efficient.situation import Situation


@pytest.mark.soak
@pytest.mark.usefixtures("as_readers_run_it")  # the annotation checks break the compiled graph
@pytest.mark.parametrize("masking", MASKINGS)
def test_as_good_as_plain_on_a_cpu(masking):
    reason = flex.why_not(Situation(n_queries=33, n_keys=65))
    if reason is not None:
        pytest.skip(reason)
    for bias in (False, True):
        case = Case(n_queries=33, n_keys=65, n_heads=4, n_kv_heads=2, d_head=16, d_value=16, masking=masking, bias=bias)
        assert_as_good_as_plain(flex_attention, case)


@pytest.mark.gpu
@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("masking", MASKINGS)
def test_as_good_as_plain_on_a_gpu(masking):
    case = Case(n_queries=130, n_keys=200, n_heads=4, n_kv_heads=2, d_head=64, d_value=64, masking=masking)
    assert_as_good_as_plain(flex_attention, case, gradients=True, device="cuda")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"dropout": 0.1}, "no dropout"),
        ({"needs_gradient": True}, "no backward pass on a CPU"),
        ({"device": "mps"}, "does not compile for mps"),
        ({"device": "cuda", "has_bias": True, "needs_gradient": True}, "gradient of a bias"),
        ({"device": "cuda", "needs_gradient": True}, None),
    ],
)
def test_it_says_what_it_cannot(facts, reason):
    said = flex.why_not(Situation(n_queries=3, n_keys=3, **facts))
    assert said is None if reason is None else reason in said


def test_no_compiler_no_kernel(monkeypatch):
    monkeypatch.setattr(flex.shutil, "which", lambda name: None)
    assert "none was found" in flex.why_not(Situation(n_queries=3, n_keys=3))


def test_dropout_is_refused():
    with pytest.raises(BackendError, match="no dropout, but dropout is 0.5"):
        flex_attention(*inputs_of(Case()).tensors(), dropout=0.5)
