"""Decoder layer and stack against torch's, the causal property bit for bit, and the cache."""

import pytest
import torch

from tests.torch_twins import layer_twin, randomised
from ttutor.cache import DecoderCache
from ttutor.decoder import Decoder, DecoderLayer

D_MODEL, N_HEADS, D_FF = 12, 3, 20


@pytest.fixture
def hidden():
    return torch.randn(2, 5, D_MODEL, dtype=torch.float64)


@pytest.fixture
def memory():
    return torch.randn(2, 7, D_MODEL, dtype=torch.float64)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("padded", [False, True])
def test_layer_equals_torch(hidden, memory, norm, padded):
    ours = randomised(DecoderLayer(D_MODEL, N_HEADS, D_FF, norm=norm))
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3]) if padded else torch.ones(2, 7, dtype=torch.bool)
    ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected = layer_twin(ours, norm)(hidden, memory, tgt_mask=ahead, memory_key_padding_mask=~real)
    mine = ours(hidden, memory, memory_mask=real.reshape(2, 1, 1, 7))
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


def stack(norm: str = "pre", cross_attention: bool = True) -> Decoder:
    return randomised(Decoder(D_MODEL, N_HEADS, D_FF, n_layers=3, norm=norm, cross_attention=cross_attention)).eval()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("cross_attention", [True, False])
def test_changing_a_token_leaves_every_earlier_output_bit_equal(hidden, memory, norm, cross_attention):
    decoder = stack(norm, cross_attention)
    memory = memory if cross_attention else None
    before = decoder(hidden, memory)
    for t in range(5):
        changed = hidden.clone()
        changed[:, t] += 10
        after = decoder(changed, memory)
        assert torch.equal(before[:, :t], after[:, :t])
        assert (before[:, t:] != after[:, t:]).any(dim=-1).all()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("chunks", [[1, 1, 1, 1, 1], [3, 2], [2, 1, 2]])
@pytest.mark.parametrize("cross_attention", [True, False])
def test_cached_in_chunks_equals_all_at_once(hidden, memory, norm, chunks, cross_attention):
    decoder, cache = stack(norm, cross_attention), DecoderCache(3)
    memory = memory if cross_attention else None
    parts = []
    for part in hidden.split(chunks, dim=1):
        _, real = cache.extend(torch.ones(part.shape[:2], dtype=torch.bool))
        parts.append(decoder(part, memory, real, cache=cache))
    torch.testing.assert_close(torch.cat(parts, dim=1), decoder(hidden, memory), rtol=0, atol=1e-12)


def test_a_memory_where_none_is_taken_and_none_where_one_is_needed(hidden, memory):
    with pytest.raises(ValueError, match="cross_attention is True and memory is NoneType"):
        stack()(hidden)
    with pytest.raises(ValueError, match="cross_attention is False and memory is Tensor"):
        stack(cross_attention=False)(hidden, memory)


def test_a_cache_for_another_depth_is_refused(hidden, memory):
    with pytest.raises(ValueError, match="this decoder has 3 layers, but the cache 2"):
        stack()(hidden, memory, cache=DecoderCache(2))
