"""The reference attention against torch's own, and on the edge cases that break implementations."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention

from ttutor.attention import attention_weights, scaled_dot_product_attention
from ttutor.errors import ShapeError
from ttutor.masks import CAUSAL, Mask, causal_mask, window_mask

BATCH, HEADS, QUERIES, KEYS, D_HEAD, D_VALUE = 2, 3, 5, 7, 8, 4


@pytest.fixture
def tensors():
    shapes = [(BATCH, HEADS, QUERIES, D_HEAD), (BATCH, HEADS, KEYS, D_HEAD), (BATCH, HEADS, KEYS, D_VALUE)]
    return [torch.randn(shape, dtype=torch.float64) for shape in shapes]


def some_mask():
    mask = torch.rand(BATCH, HEADS, QUERIES, KEYS) > 0.4
    mask[..., 0] = True  # every query sees a key, since torch has no rule for one that sees none
    return mask


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [None, 0.7])
def test_equals_torch(tensors, masked, scale):
    mask = some_mask() if masked else None
    ours = scaled_dot_product_attention(*tensors, mask, scale=scale)
    assert ours.shape == (BATCH, HEADS, QUERIES, D_VALUE)
    torch.testing.assert_close(ours, torch_attention(*tensors, attn_mask=mask, scale=scale), rtol=0, atol=1e-12)


def test_bias_is_added_to_the_scaled_scores(tensors):
    bias = torch.randn(HEADS, QUERIES, KEYS, dtype=torch.float64)
    ours = scaled_dot_product_attention(*tensors, bias=bias)
    torch.testing.assert_close(ours, torch_attention(*tensors, attn_mask=bias.expand(BATCH, -1, -1, -1)))


@pytest.mark.parametrize(
    ("words", "drawn"),
    [
        ({"causal": True}, causal_mask(QUERIES, KEYS)),
        ({"window": 2}, window_mask(QUERIES, KEYS, window=2)),
        ({"causal": True, "window": 3}, causal_mask(QUERIES, KEYS) & window_mask(QUERIES, KEYS, window=3)),
        ({"mask": CAUSAL}, causal_mask(QUERIES, KEYS)),
        ({"mask": Mask(window=2), "causal": True}, causal_mask(QUERIES, KEYS) & window_mask(QUERIES, KEYS, window=2)),
    ],
)
def test_a_described_mask_equals_the_drawn_one(tensors, words, drawn):
    described = scaled_dot_product_attention(*tensors, **words)
    assert torch.equal(described, scaled_dot_product_attention(*tensors, drawn))
    torch.testing.assert_close(described, torch_attention(*tensors, attn_mask=drawn))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients(tensors, dtype):
    query, key, value = (tensor.to(dtype).requires_grad_() for tensor in tensors)
    mask = some_mask()
    mask[0, :, 2] = False
    mask[1] = False
    context = scaled_dot_product_attention(query, key, value, mask)
    assert context[0, :, 2].eq(0).all()
    assert context[1].eq(0).all()
    assert context.isfinite().all()
    context.sum().backward()
    for tensor in (query, key, value):
        assert tensor.grad.isfinite().all()
    assert query.grad[1].eq(0).all()
    assert query.grad[0, :, 1].ne(0).any()


def test_keys_in_the_future_change_nothing(tensors):
    query, key, value = tensors
    before = scaled_dot_product_attention(query, key, value, causal=True)
    key, value = key.clone(), value.clone()
    key[..., 5:, :], value[..., 5:, :] = 1e3 * torch.randn_like(key[..., 5:, :]), torch.randn_like(value[..., 5:, :])
    after = scaled_dot_product_attention(query, key, value, causal=True)
    assert torch.equal(before[..., :3, :], after[..., :3, :])
    assert not torch.equal(before[..., 3:, :], after[..., 3:, :])


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_grouped_heads_equal_repeated_ones(n_kv_heads):
    query = torch.randn(BATCH, 6, QUERIES, D_HEAD, dtype=torch.float64)
    key, value = torch.randn(2, BATCH, n_kv_heads, KEYS, D_HEAD, dtype=torch.float64)
    repeated = [tensor.repeat_interleave(6 // n_kv_heads, dim=1) for tensor in (key, value)]
    torch.testing.assert_close(scaled_dot_product_attention(query, key, value), torch_attention(query, *repeated))


def test_heads_that_do_not_divide_are_refused():
    query, key = torch.randn(1, 6, 2, 3), torch.randn(1, 4, 5, 3)
    with pytest.raises(ShapeError, match="6 query heads cannot share 4 key/value heads"):
        scaled_dot_product_attention(query, key, key)


def test_gradients_are_those_of_the_formula(tensors):
    inputs = tuple(tensor[:1, :1].clone().requires_grad_() for tensor in tensors)
    assert torch.autograd.gradcheck(lambda q, k, v: scaled_dot_product_attention(q, k, v, causal=True), inputs)


def test_dropout_drops_weights_and_keeps_the_mean(tensors):
    query, key, _ = (tensor.float() for tensor in tensors)
    query, key, ones = (one.expand(4000, *one.shape) for one in (query, key, torch.ones(BATCH, HEADS, KEYS, 1)))
    context = scaled_dot_product_attention(query, key, ones, dropout=0.25)
    assert context.std(dim=0).min() > 0.01
    torch.testing.assert_close(context.mean(dim=0), torch.ones(BATCH, HEADS, QUERIES, 1), rtol=0, atol=0.05)


@pytest.mark.parametrize("length", [0, 1])
def test_empty_and_single_sequences(length):
    tensor = torch.randn(2, 3, length, 4)
    assert scaled_dot_product_attention(tensor, tensor, tensor).shape == (2, 3, length, 4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_bias_of_minus_infinity_never_lets_a_masked_key_in(dtype):
    query, key = torch.randn(2, 4, dtype=dtype), torch.randn(3, 4, dtype=dtype)
    bias = torch.tensor([-torch.inf, 0.0, 0.0], dtype=dtype)
    assert attention_weights(query, key, torch.tensor([True, False, False]), bias=bias).eq(0).all()
    lowest = torch.tensor([torch.finfo(dtype).min, 0.0, 0.0], dtype=dtype)
    weights = attention_weights(query, key, torch.tensor([True, False, False]), bias=lowest)
    assert weights[:, 1:].eq(0).all()
    assert attention_weights(query, key, bias=torch.full((2, 3), -torch.inf, dtype=dtype)).eq(0).all()


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("words", ["mask", "bias"])
@pytest.mark.parametrize("shape", [(4, 1, 5, 7), (2, 7), (1, 2, 3, 5, 7), (2, 5, 7), (5, 6)])
def test_a_mask_or_bias_that_does_not_fit_is_refused(tensors, words, shape):
    value = torch.ones(shape, dtype=torch.bool if words == "mask" else torch.float64)
    with pytest.raises(ShapeError, match=rf"{words} has shape .* does not broadcast to `batch heads queries keys`"):
        scaled_dot_product_attention(*tensors, **{words: value})


@pytest.mark.usefixtures("as_readers_run_it")
def test_axes_are_compared_by_name():
    query, key = torch.randn(2, 3, 5, 8), torch.randn(3, 3, 7, 8)
    with pytest.raises(ShapeError, match="axis 'keys' is 7 in key but 6 in value"):
        scaled_dot_product_attention(query, key[:2], key[:2, :, :6])
    with pytest.raises(ShapeError, match="axis 'batch' is 2 in query but 3 in key"):
        scaled_dot_product_attention(query, key, key)
    with pytest.raises(ShapeError, match="axis 'kv_heads' is 3 in key but 1 in value"):
        scaled_dot_product_attention(query, key[:2], key[:2, :1])


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan")])
def test_a_dropout_that_is_no_probability_is_refused(tensors, dropout):
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1"):
        scaled_dot_product_attention(*tensors, dropout=dropout)


@pytest.mark.parametrize("made", [lambda: None, some_mask, lambda: CAUSAL], ids=["all", "a mask", "causal"])
def test_what_is_not_a_number_stays_so_and_is_not_taken_for_a_row_without_keys(tensors, made):
    query, key, _ = tensors
    query[0, 1, 2, 3] = float("nan")
    weights = attention_weights(query, key, made())
    assert weights[0, 1, 2].isnan().any()
    assert not weights[1].isnan().any()


@pytest.mark.parametrize(
    "given", [{"mask": torch.ones(3, 5, dtype=torch.bool)}, {"bias": torch.ones(7)}], ids=["mask", "bias"]
)
def test_without_keys_a_mask_or_bias_of_another_shape_is_refused_as_well(given):
    query, key = torch.randn(1, 3, 4), torch.randn(1, 0, 4)
    assert attention_weights(query, key, mask=torch.ones(3, 0, dtype=torch.bool)).shape == (1, 3, 0)
    with pytest.raises(ShapeError):
        attention_weights(query, key, **given)
