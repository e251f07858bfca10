"""Global tokens and random blocks on top of the window: exact under the mask that is drawn, linear in the length."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.efficient.cases import Case, inputs_of, run, ulp
from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient.sparse import sparse_attention
from ttutor.efficient.sparse_masks import draw_random_blocks, sparse_mask
from ttutor.errors import SettingError, ShapeError
from ttutor.masks import Mask, padding_mask


def draw(n_tokens, block_size, n_random, *, causal=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return draw_random_blocks(n_tokens, block_size=block_size, n_random=n_random, generator=generator, causal=causal)


def pattern(n_keys, *, window=3, n_global=2, n_random=2, block_size=4, causal=False):
    """The keywords of a pattern, with blocks drawn."""
    blocks = draw(n_keys, block_size, n_random, causal=causal) if n_random else None
    return {"window": window, "n_global": n_global, "random_blocks": blocks, "block_size": block_size}


def pair_by_pair(n_queries, n_keys, *, window, n_global, random_blocks, block_size, causal):
    """The mask from its definition, one pair of query and key after the other."""
    allowed = torch.zeros(n_queries, n_keys, dtype=torch.bool)
    for i in range(n_queries):
        place = i + n_keys - n_queries
        for j in range(n_keys):
            near = abs(place - j) < window
            is_global = j < n_global or 0 <= place < n_global
            drawn = (
                random_blocks is not None
                and place >= 0
                and j // block_size in random_blocks[place // block_size].tolist()
            )
            allowed[i, j] = (near or is_global or drawn) and (place >= j or not causal)
    return allowed


def by_the_mask(query, key, value, mask=None, *, causal=False, scale=None, **keywords):
    """The reference under the drawn mask."""
    drawn = sparse_mask(query.shape[-2], key.shape[-2], causal=causal, **keywords)
    return scaled_dot_product_attention(query, key, value, mask & Mask(dense=drawn) if mask else drawn, scale=scale)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", [(11, 11), (4, 13), (13, 4), (1, 9)], ids=str)
@pytest.mark.parametrize("n_random", [0, 1, 2, 9])
def test_the_mask_is_what_its_definition_says(causal, sizes, n_random):
    for n_global in (0, 3, 20):
        keywords = {**pattern(sizes[1], n_random=n_random, n_global=n_global, causal=causal), "causal": causal}
        assert torch.equal(sparse_mask(*sizes, **keywords), pair_by_pair(*sizes, **keywords))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    sizes=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    window=st.integers(1, 100),
    n_global=st.integers(0, 100),
    n_random=st.integers(0, 4),
    block_size=st.integers(1, 40),
    causal=st.booleans(),
    length=st.sampled_from([None, 0, 1, 31]),
)
def test_it_equals_the_reference_under_the_drawn_mask(sizes, window, n_global, n_random, block_size, causal, length):
    n_queries, n_keys = sizes
    case = Case(n_queries=n_queries, n_keys=n_keys, n_heads=2, n_kv_heads=1, d_head=4, d_value=3, dtype=torch.float64)
    inputs = inputs_of(case)
    keywords = pattern(n_keys, window=window, n_global=n_global, n_random=n_random, block_size=block_size)
    mask = None if length is None else Mask(key_lengths=torch.tensor([min(length, n_keys), n_keys]))
    mine = sparse_attention(*inputs.tensors(), mask, causal=causal, **keywords)
    expected = by_the_mask(*inputs.tensors(), mask, causal=causal, **keywords)
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", [(70, 70), (50, 75), (75, 50)], ids=str)
def test_gradients_equal_the_references(causal, sizes):
    n_queries, n_keys = sizes
    inputs = inputs_of(
        Case(n_queries=n_queries, n_keys=n_keys, n_heads=4, n_kv_heads=2, dtype=torch.float64), requires_grad=True
    )
    mask = Mask(causal=causal, key_lengths=torch.tensor([n_keys, 21]))
    keywords = pattern(n_keys, window=6, n_global=3, block_size=8)
    inputs.keywords = {"mask": mask, **keywords}
    mine = run(sparse_attention, inputs, gradients=True)
    inputs.keywords["causal"] = causal
    for found, expected in zip(mine, run(by_the_mask, inputs, gradients=True), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("causal", [False, True])
def test_as_good_as_plain_in_every_dtype(dtype, causal):
    inputs = inputs_of(Case(n_queries=83, n_keys=83, n_heads=4, n_kv_heads=2, dtype=dtype, strided=True))
    keywords = {**pattern(83, window=5, n_global=3, block_size=8, causal=causal), "causal": causal}
    exact = by_the_mask(*(tensor.double() for tensor in inputs.tensors()), **keywords)
    plain = by_the_mask(*inputs.tensors(), **keywords)
    found = sparse_attention(*inputs.tensors(), **keywords)
    allowed = 2 * float((plain.double() - exact).abs().max()) + 4 * ulp(exact, dtype)
    assert found.dtype == dtype
    assert float((found.double() - exact).abs().max()) <= allowed


@pytest.mark.parametrize("causal", [False, True])
def test_padding_never_matters_and_comes_in_three_forms(causal):
    q, k, v = torch.randn(3, 2, 3, 19, 8, dtype=torch.float64)
    token_ids = torch.tensor([[5] * 12 + [0] * 7, [4] * 19])
    keywords = {**pattern(19, causal=causal), "causal": causal}
    padding = padding_mask(token_ids, 0)
    forms = (padding, Mask(key_lengths=torch.tensor([12, 19])), Mask(dense=padding, causal=causal))
    first = sparse_attention(q, k, v, forms[0], **keywords)
    torch.testing.assert_close(first, by_the_mask(q, k, v, Mask(dense=forms[0]), **keywords), rtol=0, atol=1e-12)
    k[0, :, 12:], v[0, :, 12:] = 50.0, -70.0
    for form in forms:
        torch.testing.assert_close(sparse_attention(q, k, v, form, **keywords), first, rtol=0, atol=1e-12)
    one_row = (token_ids > 0)[0]  # the same for all rows of the batch
    torch.testing.assert_close(
        sparse_attention(q, k, v, one_row, **keywords), by_the_mask(q, k, v, Mask(dense=one_row), **keywords)
    )


def test_draws_are_distinct_seeded_and_causal_where_asked():
    drawn = draw(100, 8, 3)
    assert drawn.shape == (13, 3)
    assert all(len(set(row)) == 3 for row in drawn.tolist())
    assert torch.equal(drawn, draw(100, 8, 3))
    assert not torch.equal(drawn, draw(100, 8, 3, seed=1))
    causal = draw(100, 8, 3, causal=True)
    assert (causal <= torch.arange(13)[:, None]).all()
    assert (causal >= 0).sum(-1).tolist() == [min(3, i + 1) for i in range(13)]
    assert draw(8, 8, 3).tolist() == [[0, -1, -1]]


@pytest.mark.parametrize(
    "call",
    [
        {"bias": torch.zeros(5, 7)},
        {"mask": torch.ones(5, 7, dtype=torch.bool)},
        {"mask": torch.ones(2, 3, 1, 7, dtype=torch.bool)},
        {"mask": Mask(window=2)},
    ],
    ids=["bias", "by query", "by head", "window"],
)
def test_what_is_no_part_of_the_pattern_is_refused_and_the_message_says_so(call):
    tensors = inputs_of(Case()).tensors()
    with pytest.raises(SettingError, match="builds its own mask"):
        sparse_attention(*tensors, window=2, **call)


@pytest.mark.usefixtures("as_readers_run_it")
def test_misfits_are_named():
    q, k, v = torch.randn(3, 1, 2, 9, 8)
    with pytest.raises(ShapeError, match="axis 'd_head' is 8 in query but 7 in key"):
        sparse_attention(q, k[..., :7], v, window=2)
    with pytest.raises(ValueError, match="window and block_size must be at least 1"):
        sparse_attention(q, k, v, window=0)
    with pytest.raises(ValueError, match="has 2 rows, but 9 keys are 3 blocks of 4"):
        sparse_attention(q, k, v, window=2, random_blocks=draw(8, 4, 1), block_size=4)
    with pytest.raises(ValueError, match="a draw needs tokens and blocks"):
        draw(0, 4, 1)
