"""Calls at the edge of the protocol: nothing to compute, lengths and windows that make no sense, autocast."""

from __future__ import annotations

import pytest
import torch

from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient import (
    FavorFeatures,
    choose_backend,
    efficient_attention,
    elu_features,
    linear_attention,
    linear_weights,
    sparse_attention,
)
from ttutor.efficient.errors import BackendError
from ttutor.masks import Mask
from ttutor.shapes import ShapeError

BACKENDS = pytest.mark.parametrize("backend", ["auto", "reference", "eager", "sdpa", "tiled", "window"])


def tensors(batch=2, n_queries=5, n_keys=7, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = ((batch, 4, n_queries, 8), (batch, 2, n_keys, 8), (batch, 2, n_keys, 3))
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


@BACKENDS
@pytest.mark.parametrize("with_lengths", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", [(0, 5, 7), (0, 130, 140), (0, 0, 0), (2, 0, 7), (2, 5, 0), (2, 0, 0)])
def test_empty_batches_queries_and_keys(backend, with_lengths, causal, sizes):
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


@BACKENDS
@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("n_lengths", [1, 3])
def test_there_must_be_one_length_for_each_row(backend, n_lengths):
    mask = Mask(window=3, key_lengths=torch.full((n_lengths,), 4))
    with pytest.raises(ShapeError, match=f"axis 'batch' is 2 in query but {n_lengths} in key_lengths"):
        efficient_attention(*tensors(), mask, backend=backend)


@BACKENDS
@pytest.mark.parametrize("window", [0, -5])
def test_a_window_without_the_position_itself_is_refused(backend, window):
    with pytest.raises(ValueError, match="window must be at least 1"):
        efficient_attention(*tensors(n_queries=300, n_keys=600), window=window, backend=backend)


@pytest.mark.usefixtures("as_readers_run_it")
def test_lengths_are_whole_numbers():
    with pytest.raises(TypeError, match="key_lengths must be whole numbers"):
        Mask(key_lengths=torch.tensor([4.0, 5.0]))


@BACKENDS
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_lengths_outside_the_keys_mean_none_or_all(backend, causal, dtype):
    mask = Mask(causal=causal, window=50 if backend == "window" else None)
    inputs = tensors(batch=3, n_queries=130, n_keys=130)
    mine = efficient_attention(
        *inputs, mask & Mask(key_lengths=torch.tensor([-1, 139, 2], dtype=dtype)), backend=backend
    )
    expected = scaled_dot_product_attention(*inputs, mask & Mask(key_lengths=torch.tensor([0, 130, 2])))
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


def test_a_bias_that_alone_wants_a_gradient_gets_it(monkeypatch):
    query, key, value = (tensor.detach() for tensor in tensors())
    bias = torch.randn(4, 5, 7, dtype=torch.float64, requires_grad=True)
    assert choose_backend(query, key, value, bias=bias).name == "eager"
    expected = scaled_dot_product_attention(query, key, value, bias=bias).square().sum()
    (expected,) = torch.autograd.grad(expected, bias)
    for most_scores in (2**28, 1):  # where the table of scores fits, and where it does not
        monkeypatch.setattr("ttutor.efficient.choice.MOST_SCORES", most_scores)
        (mine,) = torch.autograd.grad(efficient_attention(query, key, value, bias=bias).square().sum(), bias)
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)
    with pytest.raises(BackendError, match="it gives no gradient to a bias"):
        efficient_attention(query, key, value, bias=bias, backend="tiled")


def test_the_tiles_see_the_same_scores_backwards_as_forwards_under_autocast():
    inputs = tensors(n_queries=64, n_keys=64, dtype=torch.float32)
    query, key, value = (tensor.detach() * 8 for tensor in inputs)  # large scores, in which roundings show

    def gradients(backend, dtype):
        leaves = [tensor.to(dtype).requires_grad_() for tensor in (query, key, value)]
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.float32):
            output = efficient_attention(*leaves, backend=backend)
        return output, torch.autograd.grad(output.sum(), leaves)

    rounded, with_autocast = gradients("tiled", torch.float32)
    given, without = gradients("tiled", torch.bfloat16)
    assert rounded.dtype == gradients("reference", torch.float32)[0].dtype
    torch.testing.assert_close(rounded, given, rtol=0, atol=0)
    for mine, expected in zip(with_autocast, without, strict=True):
        torch.testing.assert_close(mine, expected.float(), rtol=0, atol=0)


@pytest.mark.parametrize("sizes", [(0, 5, 7), (0, 0, 0), (2, 0, 7), (2, 5, 0)])
def test_other_functions_of_empty_batches_queries_and_keys(sizes):
    query, key, value = tensors(*sizes)
    for output in (sparse_attention(query, key, value, window=3, n_global=1), linear_attention(query, key, value)):
        assert output.shape == (sizes[0], 4, sizes[1], 3)
        assert (output == 0).all()
    assert linear_weights(query, key).shape == (sizes[0], 4, *sizes[1:])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("junk", [1e300, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["elu", "favor"])
def test_whatever_stands_in_padding_never_reaches_linear_attention(causal, junk, name):
    favor = FavorFeatures.draw(16, d_head=8, generator=torch.Generator().manual_seed(0))
    options = {"causal": causal, "feature_map": {"elu": elu_features, "favor": favor}[name]}
    query, key, value = tensors()
    padding = torch.arange(7).reshape(7, 1) >= torch.tensor([4, 7]).reshape(2, 1, 1, 1)
    mask = Mask(key_lengths=torch.tensor([4, 7]))
    expected = linear_attention(query, key, value, mask, **options)
    mine = linear_attention(query, key.masked_fill(padding, junk), value.masked_fill(padding, junk), mask, **options)
    torch.testing.assert_close(mine, expected, rtol=0, atol=0)
    gradients = [torch.autograd.grad(output.square().sum(), (query, key, value)) for output in (mine, expected)]
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=1e-12)
