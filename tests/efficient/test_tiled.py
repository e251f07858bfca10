"""The tiled backend: exact, with gradients, in memory that grows with the length alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.efficient.cases import MASKINGS, SMALL_SIZES, Case, assert_as_good_as_plain, inputs_of, run, small_cases
from ttutor.efficient import tiled
from ttutor.efficient.tiled import tiled_attention
from ttutor.errors import SettingError
from ttutor.masks import Mask

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


@pytest.fixture(params=[(256, 512), (8, 4)], ids=["one tile", "many tiles"])
def _tiles(request, monkeypatch):
    monkeypatch.setattr(tiled, "QUERY_BLOCK", request.param[0])
    monkeypatch.setattr(tiled, "KEY_BLOCK", request.param[1])


@pytest.mark.usefixtures("_tiles")
@pytest.mark.parametrize("sizes", SMALL_SIZES, ids=str)
def test_as_good_as_plain(sizes):
    for case in small_cases(sizes=(sizes,)):
        assert_as_good_as_plain(tiled_attention, case, gradients=True)


@pytest.mark.usefixtures("_tiles")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("masking", ["none", "causal", "everything"])
def test_in_every_dtype(dtype, masking):
    case = Case(n_queries=33, n_keys=65, masking=masking, dtype=dtype, strided=True)
    assert_as_good_as_plain(tiled_attention, case, gradients=True)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.builds(
        Case,
        n_queries=st.integers(1, 40),
        n_keys=st.integers(1, 40),
        n_heads=st.sampled_from([2, 4]),
        n_kv_heads=st.sampled_from([1, 2]),
        masking=st.sampled_from(MASKINGS),
        seed=st.integers(0, 1000),
    ),
    st.sampled_from([1, 3, 16]),
    st.sampled_from([1, 5, 16]),
)
def test_any_tiles_will_do(case, query_block, key_block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiled, "QUERY_BLOCK", query_block)
        patch.setattr(tiled, "KEY_BLOCK", key_block)
        assert_as_good_as_plain(tiled_attention, case, gradients=True)


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (Mask(), 64),
        (Mask(causal=True), 36),
        (Mask(window=1), 8),
        (Mask(causal=True, window=17), 21),
        (Mask(key_lengths=torch.tensor([9, 16])), 16),
    ],
)
def test_hidden_tiles_are_not_computed(monkeypatch, mask, expected):
    monkeypatch.setattr(tiled, "QUERY_BLOCK", 8)
    monkeypatch.setattr(tiled, "KEY_BLOCK", 8)
    seen = []
    original = tiled._Tiles.scores
    monkeypatch.setattr(tiled._Tiles, "scores", lambda self, *tile: seen.append(tile) or original(self, *tile))
    inputs = inputs_of(Case(n_queries=64, n_keys=64))
    inputs.keywords["mask"] = mask
    run(tiled_attention, inputs)
    assert len(seen) == expected


def test_what_it_cannot_do_is_refused():
    inputs = inputs_of(Case())
    with pytest.raises(SettingError, match="has no dropout, but dropout is 0.5"):
        tiled_attention(*inputs.tensors(), dropout=0.5)
    with pytest.raises(SettingError, match="gives no gradient to a bias"):
        tiled_attention(*inputs.tensors(), bias=torch.zeros(5, 7, requires_grad=True))
