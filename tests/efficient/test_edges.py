"""Calls at the edge of the protocol: nothing to compute, lengths and windows that make no sense, autocast."""

from __future__ import annotations

import pytest
import torch

from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient import efficient_attention
from ttutor.errors import ShapeError
from ttutor.masks import Mask

BACKENDS = pytest.mark.parametrize("backend", ["auto", "reference", "eager", "sdpa", "tiled", "window"])


def tensors(batch=2, n_queries=5, n_keys=7, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = ((batch, 4, n_queries, 8), (batch, 2, n_keys, 8), (batch, 2, n_keys, 3))
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


@BACKENDS
@pytest.mark.parametrize(("causal", "with_lengths"), [(False, False), (True, False), (False, True), (True, True)])
def test_empty_batches_queries_and_keys(backend, causal, with_lengths):
    for sizes in [(0, 5, 7), (0, 130, 140), (0, 0, 0), (2, 0, 7), (2, 5, 0), (2, 0, 0)]:
        assert_zeros_where_there_is_nothing(backend, sizes, causal=causal, with_lengths=with_lengths)


def assert_zeros_where_there_is_nothing(backend, sizes, *, causal, with_lengths):
    batch, _, n_keys = sizes
    mask = Mask(causal=causal, window=3 if backend == "window" else None)
    if with_lengths:
        mask = mask & Mask(key_lengths=torch.full((batch,), n_keys))
    inputs = tensors(*sizes)
    mine = efficient_attention(*inputs, mask, backend=backend)
    expected = scaled_dot_product_attention(*inputs, mask)
    assert mine.shape == expected.shape == (batch, 4, sizes[1], 3)
    assert (mine == 0).all()
    for gradient, tensor in zip(torch.autograd.grad(mine.sum(), inputs, allow_unused=True), inputs, strict=True):
        assert gradient is None or (gradient.shape == tensor.shape and (gradient == 0).all())


@pytest.mark.usefixtures("as_readers_run_it")
def test_lengths_and_windows_that_cannot_be_are_refused():
    with pytest.raises(ShapeError, match="axis 'batch' is 2 in query but 1 in key_lengths"):
        efficient_attention(*tensors(), Mask(key_lengths=torch.tensor([4])))
    with pytest.raises(ValueError, match="window must be at least 1"):
        efficient_attention(*tensors(), window=0)


@BACKENDS
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_lengths_outside_the_keys_mean_none_or_all(backend, causal, dtype):
    mask = Mask(causal=causal, window=50)
    inputs = tensors(batch=3, n_queries=130, n_keys=130)
    mine = efficient_attention(
        *inputs, mask & Mask(key_lengths=torch.tensor([-1, 139, 2], dtype=dtype)), backend=backend
    )
    expected = scaled_dot_product_attention(*inputs, mask & Mask(key_lengths=torch.tensor([0, 130, 2])))
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)
