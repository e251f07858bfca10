"""Eight-bit weights and caches: against torch's own quantisation, and against the models they came from."""

import copy

import torch
from torch import nn

from tests.generation.tiny import gpt
from ttutor.cache import DecoderCache, KeyValueCache
from ttutor.variants.quantised import QuantisedCache, QuantisedLinear, quantise, quantise_weights, weight_bytes


def test_equals_torchs_rounding_by_row():
    linear = nn.Linear(7, 5)
    nn.init.zeros_(linear.weight[2])
    ours = QuantisedLinear(linear)
    scales, zeros = ours.scales.flatten(), torch.zeros(5, dtype=torch.int32)
    rounded = torch.fake_quantize_per_channel_affine(linear.weight.detach(), scales, zeros, 0, -127, 127)
    torch.testing.assert_close(ours.weight, rounded)
    assert (ours.codes.abs().amax(dim=1) == torch.tensor([127, 127, 0, 127, 127])).all()
    assert ((linear.weight - ours.weight).abs() <= ours.scales * 0.5001).all()
    hidden = torch.randn(2, 3, 7)
    torch.testing.assert_close(ours(hidden), nn.functional.linear(hidden, rounded, linear.bias))
    assert ours.state_dict().keys() == {"codes", "scales", "bias"}


def test_a_model_keeps_its_opinions_in_less_memory():
    model, token_ids = gpt(), torch.tensor([[5, 6, 7, 8, 9]])
    smaller = copy.deepcopy(model)
    names = quantise_weights(smaller)
    assert len(names) == 2 * 6
    assert "to_logits" not in names
    with torch.inference_mode():
        expected, found = model(token_ids), smaller(token_ids)
    error = (expected - found).abs().max() / expected.abs().max()
    assert 0 < error < 0.1
    assert weight_bytes(smaller) < 0.5 * weight_bytes(model)


def test_a_cache_in_eight_bits():
    model, token_ids = gpt(), torch.randint(11, (2, 8))
    caches = [DecoderCache(model.config.n_layers, make_cache=kind) for kind in (KeyValueCache, QuantisedCache)]
    with torch.inference_mode():
        plain, rounded = (
            torch.cat([model(part, cache=cache) for part in token_ids.split([5, 1, 2], dim=1)], dim=1)
            for cache in caches
        )
    assert 0 < (plain - rounded).abs().max() / plain.abs().max() < 0.1
    # Eight-byte numbers: a vector of d_head of them becomes d_head bytes and a scale.
    d_head = model.config.d_model // model.config.n_heads
    assert caches[1].n_bytes / caches[0].n_bytes == (d_head + 8) / (8 * d_head)


def test_a_rounded_cache_behaves_as_the_plain_one():
    # Whole numbers up to 127 are kept as they are.
    key, value = (torch.randint(-126, 127, (2, 3, 4, width)).double() for width in (5, 7))
    key[..., 0], value[..., 0] = 127, 127
    plain, rounded = KeyValueCache(), QuantisedCache()
    assert rounded.n_bytes == len(rounded) == 0
    for cache in (plain, rounded):
        cache.append(key[:, :, :3], value[:, :, :3])
        cache.append(key[:, :, 3:], value[:, :, 3:])
        cache.select(torch.tensor([1, 1, 0]))
        cache.forget(1)
        cache.append(key[[0, 1, 1], :, :2], value[[0, 1, 1], :, :2])
    assert len(plain) == len(rounded) == 5
    for mine, expected in zip(rounded.read(), plain.read(), strict=True):
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


def test_nothing_stays_nothing():
    kept = quantise(torch.zeros(2, 3))
    assert not kept.restored().any()
