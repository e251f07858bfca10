"""The two backends that can run any call: plain products and PyTorch's fused kernels."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.efficient.cases import MASKINGS, SMALL_SIZES, Case, assert_as_good_as_plain, inputs_of, run, small_cases
from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient.eager import eager_attention
from ttutor.efficient.sdpa import sdpa_attention
from ttutor.errors import ShapeError
from ttutor.masks import Mask

BACKENDS = pytest.mark.parametrize("attend", [eager_attention, sdpa_attention])
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


@BACKENDS
@pytest.mark.parametrize("sizes", SMALL_SIZES, ids=str)
@pytest.mark.parametrize("gradients", [False, True], ids=["forward", "gradients"])
def test_as_good_as_plain(attend, sizes, gradients):
    for case in small_cases(sizes=(sizes,)):
        assert_as_good_as_plain(attend, case, gradients=gradients)


@BACKENDS
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("masking", ["none", "causal", "everything"])
def test_in_every_dtype(attend, dtype, masking):
    case = Case(n_queries=33, n_keys=65, masking=masking, dtype=dtype)
    assert_as_good_as_plain(attend, case, gradients=True)


@pytest.mark.parametrize("masking", ["lengths", "causal+lengths"])
@pytest.mark.parametrize("lengths", [[200, 200, 130], [1, 0, 200], [0, 0, 0], [300, 7, 7]])
def test_rows_cut_to_their_length(masking, lengths):
    mask = Mask(causal="causal" in masking, key_lengths=torch.tensor(lengths))
    query, key, value = (torch.randn(3, 2, 200, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
    mine, expected = (f(query, key, value, mask) for f in (sdpa_attention, scaled_dot_product_attention))
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)
    weighting = torch.randn_like(expected)
    gradients = [torch.autograd.grad(output, (query, key, value), weighting) for output in (mine, expected)]
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=1e-12)


@BACKENDS
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.builds(
        Case,
        n_queries=st.integers(1, 9),
        n_keys=st.integers(1, 9),
        batch=st.integers(1, 3),
        n_heads=st.sampled_from([2, 4]),
        n_kv_heads=st.sampled_from([1, 2]),
        d_head=st.sampled_from([1, 8]),
        masking=st.sampled_from(MASKINGS),
        bias=st.booleans(),
        strided=st.booleans(),
        scale=st.sampled_from([None, 0.1, 1.0]),
        seed=st.integers(0, 1000),
    )
)
def test_anything_goes(attend, case):
    assert_as_good_as_plain(attend, case, gradients=True)


@BACKENDS
def test_dropout_keeps_the_mean_and_drops_the_share_asked_for(attend):
    inputs = inputs_of(Case(n_queries=64, n_keys=64, batch=8, n_heads=4, n_kv_heads=4, d_value=64))
    inputs.value = torch.eye(64).expand(8, 4, 64, 64)  # so that the output is the weights
    (weights,), (dropped,) = run(attend, inputs), run(lambda *a, **k: attend(*a, **k, dropout=0.25), inputs)
    share = (dropped == 0).double().mean().item()
    assert share == pytest.approx(0.25, abs=0.01)  # 131,072 draws: five standard deviations are 0.006
    torch.testing.assert_close(dropped[dropped > 0], (weights / 0.75)[dropped > 0])


@BACKENDS
@pytest.mark.parametrize("shape", [(7,), (5, 1), (1, 7), (2, 1, 1, 7), (3, 5, 7)])
def test_masks_and_biases_with_fewer_axes(attend, shape):
    inputs = inputs_of(Case(dtype=torch.float64))
    for table in (torch.rand(shape) < 0.6, torch.randn(shape, dtype=torch.float64)):
        name = "mask" if table.dtype == torch.bool else "bias"
        mine = attend(*inputs.tensors(), **{name: table})
        expected = scaled_dot_product_attention(*inputs.tensors(), **{name: table})
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


@BACKENDS
@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("name", ["mask", "bias"])
def test_what_does_not_broadcast_is_named(attend, name):
    inputs = inputs_of(Case())
    wrong = torch.ones(4, 7, dtype=torch.bool if name == "mask" else torch.float32)
    with pytest.raises(ShapeError, match=f"{name} has shape"):
        attend(*inputs.tensors(), **{name: wrong})
