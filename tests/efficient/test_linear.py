"""Linear attention: two programs for one function, and how far that function is from softmax attention."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from tests.efficient.cases import Case, inputs_of, mask_of
from ttutor.efficient import linear
from ttutor.efficient.features import FavorFeatures, elu_features
from ttutor.efficient.linear import linear_attention
from ttutor.efficient.linear_state import LinearState, linear_attention_recurrent
from ttutor.errors import SettingError, ShapeError
from ttutor.masks import Mask, padding_mask


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def favor(n_features: int = 24, d_head: int = 8, seed: int = 0) -> FavorFeatures:
    return FavorFeatures.draw(n_features, d_head=d_head, generator=seeded(seed))


MAPS = {"elu": elu_features, "favor": favor()}
MASKINGS = ("none", "causal", "lengths", "causal+lengths", "keys")
SIZES = ((5, 7), (7, 5), (1, 1), (1, 9), (64, 65), (131, 131), (200, 330), (300, 140))


def in_full(case: Case, inputs, feature_map, mask: Mask | None = None):
    """The oracle: exponentials of nothing, a table of dot products of features, masked and divided by its rows' sums.

    Written with plain loops over heads, and without any care for numbers that are too large or too small.
    """
    query, key, value = inputs.tensors()
    mask = mask_of(case) if mask is None else mask
    drawn = None if mask is None else mask.materialise(case.n_queries, case.n_keys)
    drawn = torch.ones(case.n_queries, case.n_keys, dtype=torch.bool) if drawn is None else drawn
    drawn = drawn.expand(case.batch, case.n_heads, case.n_queries, case.n_keys)
    group = case.n_heads // case.n_kv_heads
    outputs = []
    for head in range(case.n_heads):
        q = feature_map(query[:, head : head + 1], None)
        k = feature_map(key[:, head // group : head // group + 1], None)
        phi_q, phi_k = (f.values if f.log_size is None else f.values * f.log_size[..., None].exp() for f in (q, k))
        weights = (phi_q @ phi_k.mT) * drawn[:, head : head + 1]
        total = weights.sum(-1, keepdim=True)
        weights = torch.where(total > 0, weights / torch.where(total > 0, total, 1.0), 0.0)
        outputs.append(weights @ value[:, head // group : head // group + 1])
    return torch.cat(outputs, dim=1)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_chunks_equal_the_table(name, masking, sizes):
    n_queries, n_keys = sizes
    case = Case(
        n_queries=n_queries, n_keys=n_keys, masking=masking, n_heads=4, n_kv_heads=2, d_value=5, dtype=torch.float64
    )
    inputs, feature_map = inputs_of(case, requires_grad=True), MAPS[name]
    expected = in_full(case, inputs, feature_map)
    found = linear_attention(*inputs.tensors(), mask_of(case), feature_map=feature_map)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    weighting = torch.randn(expected.shape, generator=seeded(), dtype=torch.float64)
    for mine, true in zip(
        torch.autograd.grad(found, inputs.tensors(), weighting),
        torch.autograd.grad(expected, inputs.tensors(), weighting),
        strict=True,
    ):
        torch.testing.assert_close(mine, true, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("chunk", [1, 3, 50, 1000])
def test_the_recurrence_equals_chunks_of_every_size(name, chunk, monkeypatch):
    monkeypatch.setattr(linear, "CHUNK", chunk)
    case = Case(n_queries=41, n_keys=41, n_heads=4, n_kv_heads=2, d_value=5, dtype=torch.float64)
    inputs, feature_map = inputs_of(case), MAPS[name]
    looped, _ = linear_attention_recurrent(*inputs.tensors(), feature_map=feature_map)
    chunked = linear_attention(*inputs.tensors(), causal=True, feature_map=feature_map)
    torch.testing.assert_close(chunked, looped, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MAPS)
def test_decoding_token_by_token_continues_where_it_stopped_and_its_state_does_not_grow(name):
    q, k, v = (torch.randn(2, 3, 20, 8, generator=seeded(i), dtype=torch.float64) for i in range(3))
    whole = linear_attention(q, k, v, causal=True, feature_map=MAPS[name])
    state, sizes = None, set()
    for t in range(20):
        now = slice(t, t + 1)
        context, state = linear_attention_recurrent(
            q[..., now, :], k[..., now, :], v[..., now, :], state, feature_map=MAPS[name]
        )
        torch.testing.assert_close(context, whole[..., now, :], rtol=0, atol=1e-12)
        sizes.add(tuple(part.shape for part in state))
    n_features = MAPS[name](q, None).values.shape[-1]
    assert sizes == {((2, 3, n_features, 8), (2, 3, n_features), (2, 3))}
    assert isinstance(state, LinearState)


@pytest.mark.parametrize("name", MAPS)
def test_no_later_token_changes_a_bit_of_an_earlier_output(name):
    tensors = list(torch.randn(3, 1, 2, 300, 8, generator=seeded()))
    before = linear_attention(*tensors, causal=True, feature_map=MAPS[name])
    for t in (1, 127, 128, 200):
        changed = [tensor.clone() for tensor in tensors]
        for tensor in changed:
            tensor[..., t:, :] = 3 * torch.randn(1, 2, 300 - t, 8, generator=seeded(t))
        after = linear_attention(*changed, causal=True, feature_map=MAPS[name])
        assert torch.equal(after[..., :t, :], before[..., :t, :])
        assert not torch.equal(after[..., t, :], before[..., t, :])


@pytest.mark.parametrize("causal", [False, True])
def test_padding_never_matters_and_comes_in_three_forms(causal):
    q, k, v = torch.randn(3, 2, 3, 9, 8, generator=seeded())
    token_ids = torch.tensor([[5, 6, 7, 8, 9, 5, 0, 0, 0], [4] * 9])
    forms = (padding_mask(token_ids, 0), Mask(key_lengths=torch.tensor([6, 9])), Mask(dense=padding_mask(token_ids, 0)))
    first = linear_attention(q, k, v, forms[0], causal=causal)
    for form in forms[1:]:
        assert torch.equal(linear_attention(q, k, v, form, causal=causal), first)
    one_row = (token_ids > 0)[0]  # the same for all rows of the batch
    same = linear_attention(q, k, v, Mask(key_lengths=torch.tensor([6, 6])), causal=causal)
    assert torch.equal(linear_attention(q, k, v, one_row, causal=causal), same)
    k[0, :, 6:], v[0, :, 6:] = 50.0, -70.0
    assert torch.equal(linear_attention(q, k, v, forms[0], causal=causal), first)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", MAPS)
def test_every_dtype_is_as_exact_as_its_own_rounding(dtype, name):
    case = Case(n_queries=257, n_keys=257, masking="causal+lengths", dtype=dtype, strided=True)
    inputs = inputs_of(case)
    exact = linear_attention(*(t.double() for t in inputs.tensors()), mask_of(case), feature_map=MAPS[name])
    found = linear_attention(*inputs.tensors(), mask_of(case), feature_map=MAPS[name])
    assert found.dtype == dtype
    assert (found.double() - exact).abs().max() <= 4 * torch.finfo(dtype).eps * exact.abs().max()


def test_long_queries_and_keys_neither_overflow_nor_vanish():
    q, k = (unit(20.0, seed, n=50, d_head=8).float() for seed in (0, 1))
    v = torch.randn(1, 1, 50, 5, generator=seeded(2))
    # Such keys have features of about exp(-20 ** 2 / 2), far below the smallest float32.
    assert (-(k.square().sum(-1)) / 2).exp().max() == 0
    for causal in (False, True):
        attend = partial(linear_attention, causal=causal, scale=1.0, feature_map=favor(64))
        found, exact = attend(q, k, v), attend(q.double(), k.double(), v.double())
        assert found.isfinite().all()
        assert found.abs().sum(-1).min() > 0
        torch.testing.assert_close(found.double(), exact, rtol=0, atol=1e-3)


def test_directions_are_orthogonal_in_groups_and_as_long_as_gaussian_ones():
    drawn = FavorFeatures.draw(4096, d_head=8, generator=seeded()).directions
    for group in drawn.unflatten(0, (-1, 8))[:5]:
        gram = group @ group.T
        torch.testing.assert_close(gram, torch.diag(gram.diagonal()), rtol=0, atol=1e-12)
    squares = drawn.square().sum(-1)  # chi-squared with 8 degrees of freedom: mean 8, variance 16
    assert abs(squares.mean() - 8) < 5 * 4 / math.sqrt(4096)
    torch.testing.assert_close(drawn.T @ drawn / 4096, torch.eye(8, dtype=torch.float64), rtol=0, atol=0.12)
    again = FavorFeatures.draw(4096, d_head=8, generator=seeded()).directions
    assert torch.equal(drawn, again)
    assert not torch.equal(drawn, FavorFeatures.draw(4096, d_head=8, generator=seeded(1)).directions)


def unit(length: float, seed: int, n: int = 48, d_head: int = 16) -> torch.Tensor:
    """Vectors of one length and random directions, ``1 1 tokens d_head``."""
    drawn = torch.randn(1, 1, n, d_head, generator=seeded(seed), dtype=torch.float64)
    return length * drawn / drawn.norm(dim=-1, keepdim=True)


def test_the_features_products_are_exponentials_on_average():
    q, k = unit(1.0, 1, n=4), unit(1.0, 2, n=4)
    phi_q, phi_k = (f.values * f.log_size[..., None].exp() for f in (favor(200_000, 16)(x, 1.0) for x in (q, k)))
    torch.testing.assert_close(phi_q @ phi_k.mT, (q @ k.mT).exp(), rtol=0.03, atol=0)


@pytest.mark.parametrize(
    "call",
    [
        {"window": 2},
        {"mask": Mask(window=3)},
        {"bias": torch.zeros(5, 7)},
        {"dropout": 0.1},
        {"mask": torch.ones(5, 7, dtype=torch.bool)},
        {"mask": torch.ones(2, 3, 1, 7, dtype=torch.bool)},
    ],
    ids=str,
)
def test_what_has_no_sum_for_all_queries_is_refused_and_the_message_says_so(call):
    tensors = inputs_of(Case()).tensors()
    with pytest.raises(SettingError, match="no window, bias, dropout or mask that differs"):
        linear_attention(*tensors, **call)


@pytest.mark.usefixtures("as_readers_run_it")
def test_misfits_are_named():
    q, k, v = torch.randn(3, 1, 2, 5, 8)
    with pytest.raises(ShapeError, match="axis 'd_head' is 8 in query but 7 in key"):
        linear_attention(q, k[..., :7], v)
    with pytest.raises(ShapeError, match="axis 'tokens' is 5 in query but 4 in key"):
        linear_attention_recurrent(q, k[..., :4, :], v[..., :4, :])
    with pytest.raises(ValueError, match="scale of at least 0"):
        linear_attention(q, k, v, scale=-1.0)
    with pytest.raises(ValueError, match="must be at least 1"):
        FavorFeatures.draw(0, d_head=4, generator=seeded())
