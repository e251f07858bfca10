"""Decoder layer and stack against torch's, the causal property bit for bit, and the cache."""

import pytest
import torch
from torch import nn

from ttutor.cache import DecoderCache
from ttutor.decoder import Decoder, DecoderLayer

D_MODEL, N_HEADS, D_FF = 12, 3, 20


def attention_weights_of(ours: nn.Module, name: str) -> dict[str, torch.Tensor]:
    projections = (ours.to_query, ours.to_key, ours.to_value)
    return {
        f"{name}.in_proj_weight": torch.cat([p.weight for p in projections]),
        f"{name}.in_proj_bias": torch.cat([p.bias for p in projections]),
        f"{name}.out_proj.weight": ours.to_output.weight,
        f"{name}.out_proj.bias": ours.to_output.bias,
    }


def torch_twin(ours: DecoderLayer, norm: str) -> nn.TransformerDecoderLayer:
    """Torch's layer with the weights of ours."""
    theirs = nn.TransformerDecoderLayer(
        D_MODEL, N_HEADS, D_FF, dropout=0.0, batch_first=True, norm_first=norm == "pre"
    ).double()
    norms = (ours.around_self_attention, ours.around_cross_attention, ours.around_feed_forward)
    theirs.load_state_dict(
        {
            **attention_weights_of(ours.self_attention, "self_attn"),
            **attention_weights_of(ours.cross_attention, "multihead_attn"),
            "linear1.weight": ours.feed_forward.widen.weight,
            "linear1.bias": ours.feed_forward.widen.bias,
            "linear2.weight": ours.feed_forward.narrow.weight,
            "linear2.bias": ours.feed_forward.narrow.bias,
            **{f"norm{i}.weight": around.norm.gain for i, around in enumerate(norms, 1)},
            **{f"norm{i}.bias": around.norm.bias for i, around in enumerate(norms, 1)},
        }
    )
    return theirs


def randomised(module: nn.Module) -> nn.Module:
    """A module in float64 none of whose parameters is zero or one by design."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.double()


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
    expected = torch_twin(ours, norm)(hidden, memory, tgt_mask=ahead, memory_key_padding_mask=~real)
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


def test_the_encoder_gets_no_information_from_the_decoder_but_every_layer_reads_it(hidden, memory):
    decoder = stack()
    seen = []
    for layer in decoder.layers:
        layer.cross_attention.register_forward_pre_hook(lambda module, args: seen.append(args[1]))
    decoder(hidden, memory)
    assert all(tensor is memory for tensor in seen)
    assert len(seen) == 3


def test_a_memory_where_none_is_taken_and_none_where_one_is_needed(hidden, memory):
    with pytest.raises(ValueError, match="cross_attention is True and memory is NoneType"):
        stack()(hidden)
    with pytest.raises(ValueError, match="cross_attention is False and memory is Tensor"):
        stack(cross_attention=False)(hidden, memory)


def test_a_cache_for_another_depth_is_refused(hidden, memory):
    with pytest.raises(ValueError, match="this decoder has 3 layers, but the cache 2"):
        stack()(hidden, memory, cache=DecoderCache(2))
