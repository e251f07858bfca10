"""The sliding window by banded blocks: exact, and linear in the length."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.efficient.cases import Case, assert_as_good_as_plain, inputs_of, large_cases, run, small_cases
from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient.errors import BackendError
from ttutor.efficient.window import window_attention
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


@pytest.mark.parametrize("causal", [True, False])
def test_gradients_equal_the_references(causal):
    inputs = inputs_of(Case(n_queries=150, n_keys=170, dtype=torch.float64), requires_grad=True)
    inputs.keywords["mask"] = Mask(causal=causal, window=20, key_lengths=torch.tensor([170, 90]))
    for mine, expected in zip(
        run(window_attention, inputs, gradients=True),
        run(scaled_dot_product_attention, inputs, gradients=True),
        strict=True,
    ):
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


def test_what_is_computed_grows_with_the_length_not_its_square():
    sizes = []

    def attend(query, key, value, mask, **options):
        sizes.append(query.shape[0] * query.shape[-2] * key.shape[-2])
        return query

    from ttutor.efficient.window import _Band

    for length in (1024, 2048, 4096):
        band = _Band(length, length, window=128, causal=True)
        tokens = torch.zeros(1, 1, length, 4)
        band.run(attend, tokens, tokens, tokens, band.allowed())
    assert sizes[2] == 2 * sizes[1] == 4 * sizes[0]
    assert sizes[0] <= 1024 * 128 * 1.6


def test_it_stays_on_the_tensors_device():
    tokens = torch.zeros(1, 2, 700, 4, device="meta")
    for lengths in (None, torch.zeros(1, dtype=torch.long, device="meta")):
        found = window_attention(tokens, tokens, tokens, Mask(key_lengths=lengths), causal=True, window=64)
        assert found.is_meta


def test_keys_are_not_copied_for_the_blocks_that_share_them():
    from ttutor.efficient.window import _Band

    band = _Band(1024, 1024, window=128, causal=True)
    stretches = band.stretches(torch.zeros(2, 3, 1024, 4))
    assert stretches.numel() > 2 * 2 * 3 * 1024 * 4
    assert stretches.untyped_storage().nbytes() < 1.3 * 4 * 2 * 3 * 1024 * 4


@pytest.mark.parametrize(
    "call", [{}, {"window": 2, "bias": torch.zeros(5, 7)}, {"window": 2, "mask": torch.ones(5, 7, dtype=torch.bool)}]
)
def test_what_is_no_band_is_refused(call):
    with pytest.raises(BackendError, match="needs a window, and takes neither a dense mask nor a bias"):
        window_attention(*inputs_of(Case()).tensors(), **call)


@pytest.mark.soak
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_whole_grid(dtype):
    for case in large_cases(MASKINGS, dtype=dtype):
        assert_as_good_as_plain(window_attention, case, gradients=case.n_queries * case.n_keys <= 257**2)


@pytest.mark.soak
def test_every_window_over_every_small_length():
    for n_queries, n_keys, window in itertools.product(range(1, 12), range(1, 12), range(1, 14)):
        inputs = inputs_of(Case(n_queries=n_queries, n_keys=n_keys, dtype=torch.float64))
        for causal in (False, True):
            mine, expected = (
                f(*inputs.tensors(), causal=causal, window=window)
                for f in (window_attention, scaled_dot_product_attention)
            )
            torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)
