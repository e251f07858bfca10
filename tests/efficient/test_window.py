"""The sliding window by banded blocks: exact, and linear in the length."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.efficient.cases import Case, assert_as_good_as_plain, inputs_of, small_cases
from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient.window import window_attention
from ttutor.errors import SettingError
from ttutor.masks import Mask

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
MASKINGS = ("window", "causal+window")


@pytest.mark.parametrize("case", small_cases(MASKINGS), ids=str)
@pytest.mark.parametrize("gradients", [False, True], ids=["forward", "gradients"])
def test_as_good_as_plain(case, gradients):
    assert_as_good_as_plain(window_attention, case, gradients=gradients)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("masking", MASKINGS)
def test_over_many_blocks_in_every_dtype(dtype, masking):
    case = Case(n_queries=211, n_keys=211, masking=masking, dtype=dtype, strided=True, n_heads=4, n_kv_heads=2)
    assert_as_good_as_plain(window_attention, case, gradients=True)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(1, 200),
    st.integers(1, 200),
    st.integers(1, 260),
    st.booleans(),
    st.sampled_from([None, 0, 1, 77, 500]),
)
def test_any_window_over_any_lengths(n_queries, n_keys, window, causal, length):
    inputs = inputs_of(Case(n_queries=n_queries, n_keys=n_keys, d_head=4, d_value=3, dtype=torch.float64))
    lengths = None if length is None else torch.tensor([length, n_keys])
    mask = Mask(causal=causal, window=window, key_lengths=lengths)
    mine = window_attention(*inputs.tensors(), mask)
    torch.testing.assert_close(mine, scaled_dot_product_attention(*inputs.tensors(), mask), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "call", [{}, {"window": 2, "bias": torch.zeros(5, 7)}, {"window": 2, "mask": torch.ones(5, 7, dtype=torch.bool)}]
)
def test_what_is_no_band_is_refused(call):
    with pytest.raises(SettingError, match="needs a window, and takes neither a dense mask nor a bias"):
        window_attention(*inputs_of(Case()).tensors(), **call)
