"""Multi-head attention against torch's module with copied weights, against a loop over heads, and with a cache."""

import pytest
import torch
from torch import nn

from tests.torch_twins import attention_twin
from ttutor.cache import KeyValueCache
from ttutor.errors import ShapeError
from ttutor.masks import CAUSAL, Mask
from ttutor.multihead import AttentionHead, MultiHeadAttention

D_MODEL, N_HEADS = 12, 3


@pytest.fixture
def ours():
    attention = MultiHeadAttention(D_MODEL, N_HEADS).double().eval()
    for name, parameter in attention.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return attention


@pytest.fixture
def query():
    return torch.randn(2, 5, D_MODEL, dtype=torch.float64)


@pytest.fixture
def memory():
    return torch.randn(2, 7, D_MODEL, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["self", "cross", "value apart", "causal", "padded"])
def test_equals_torch(ours, query, memory, kind):
    theirs = attention_twin(ours)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    if kind == "self":
        mine, expected = ours(query), theirs(query, query, query)[0]
    elif kind == "cross":
        mine, expected = ours(query, memory), theirs(query, memory, memory)[0]
    elif kind == "value apart":
        value = torch.randn_like(memory)
        mine, expected = ours(query, memory, value), theirs(query, memory, value)[0]
    elif kind == "causal":
        ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)  # torch marks what may NOT be seen
        mine, expected = ours(query, mask=CAUSAL), theirs(query, query, query, attn_mask=ahead)[0]
    else:
        mask = Mask(dense=real.reshape(2, 1, 1, 7))
        mine, expected = ours(query, memory, mask=mask), theirs(query, memory, memory, key_padding_mask=~real)[0]
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


def test_equals_a_loop_over_heads_whose_writes_add_up(ours, query):
    d_head = D_MODEL // N_HEADS
    written = ours.to_output.bias.expand_as(query).clone()
    for h in range(N_HEADS):
        rows = slice(h * d_head, (h + 1) * d_head)
        head = AttentionHead(D_MODEL, d_head, bias=True).double()
        for mine, whole in ((head.to_query, ours.to_query), (head.to_key, ours.to_key), (head.to_value, ours.to_value)):
            mine.weight.data, mine.bias.data = whole.weight.data[rows], whole.bias.data[rows]
        written += head(query) @ ours.to_output.weight[:, rows].T
    torch.testing.assert_close(ours(query), written)


@pytest.mark.parametrize("chunks", [[5], [1, 1, 1, 1, 1], [3, 2], [1, 4]])
def test_cached_in_chunks_equals_all_at_once(ours, query, chunks):
    cache = KeyValueCache()
    parts = [ours(part, mask=CAUSAL, cache=cache) for part in query.split(chunks, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), ours(query, mask=CAUSAL), rtol=0, atol=1e-12)
    assert len(cache) == 5


def test_a_fixed_cache_is_filled_once(ours, query, memory):
    cache = KeyValueCache(is_fixed=True)
    first = ours(query, memory, cache=cache)
    again = ours(query, torch.full_like(memory, torch.nan), cache=cache)
    torch.testing.assert_close(first, again)
    assert len(cache) == 7


def test_attention_function_is_an_argument(query):
    seen = []

    def attend(q, k, v, mask=None, *, bias=None, scale=None, dropout=0.0):
        seen.append((q.shape, k.shape, dropout))
        return q

    layer = MultiHeadAttention(D_MODEL, N_HEADS, dropout=0.5, attend=attend).double()
    layer(query)
    layer.eval()(query)
    shape = (2, N_HEADS, 5, 4)
    assert seen == [(shape, shape, 0.5), (shape, shape, 0.0)]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((10, 3), "d_model must be a multiple of n_heads, but d_model=10 and n_heads=3"),
        ((12, 0), "n_heads=0"),
        ((12, 4, 3), "n_heads must be a multiple of n_kv_heads, but 4 is none of 3"),
    ],
)
def test_sizes_that_do_not_divide_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(*sizes)


@pytest.mark.usefixtures("as_readers_run_it")
def test_wrong_widths_and_batches_are_named(ours, query, memory):
    with pytest.raises(ShapeError, match="axis 'd_model' is 6 in query but must be 12"):
        ours(query[..., :6])
    with pytest.raises(ShapeError, match="axis 'batch' is 2 in query but 1 in key"):
        ours(query, memory[:1])


@pytest.mark.usefixtures("as_readers_run_it")
def test_a_mask_that_could_mean_the_batch_or_the_heads_is_refused(ours, query):
    with pytest.raises(ShapeError, match="could mean the batch or the heads"):
        ours(query, mask=torch.ones(2, 5, 5, dtype=torch.bool))


def test_a_value_without_a_key_is_refused(ours, query, memory):
    with pytest.raises(ValueError, match="a value needs a key"):
        ours(query, value=query)


def test_a_filled_cache_refuses_another_memory(ours, query, memory):
    cache = KeyValueCache(is_fixed=True)
    ours(query, memory, cache=cache)
    with pytest.raises(ValueError, match=r"memory of 2 rows and 7 tokens, but the key has 2 rows and 6 tokens"):
        ours(query, memory[:, :6], cache=cache)


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_impossible_dropout_and_widths_are_refused(dropout):
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1"):
        MultiHeadAttention(12, 3, dropout=dropout)
    with pytest.raises(ValueError, match="d_model=0 and n_heads=3"):
        MultiHeadAttention(0, 3)


def test_scale_and_bias_reach_the_scores(query, memory):
    layer = MultiHeadAttention(D_MODEL, N_HEADS, scale=0.3).double()
    bias = torch.randn(2, N_HEADS, 5, 7, dtype=torch.float64)
    by_hand = MultiHeadAttention(D_MODEL, N_HEADS).double()
    by_hand.load_state_dict(layer.state_dict())
    with torch.no_grad():  # a factor in the query's projection is the same
        for tensor in (by_hand.to_query.weight, by_hand.to_query.bias):
            tensor *= 0.3 * (D_MODEL / N_HEADS) ** 0.5
    mask = torch.rand(2, 1, 5, 7) < 0.7
    additive = torch.where(mask, bias, -torch.inf)
    expected = by_hand(query, memory, bias=additive)
    torch.testing.assert_close(layer(query, memory, mask=mask, bias=bias), expected, rtol=0, atol=1e-12)
