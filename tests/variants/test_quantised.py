"""Eight-bit caches: against torch's own quantisation, and against the plain cache."""

import torch

from tests.generation.tiny import gpt
from ttutor.cache import DecoderCache, KeyValueCache
from ttutor.variants.quantised import QuantisedCache, quantise


def test_equals_torchs_rounding_by_row():
    vectors = torch.randn(5, 7)
    vectors[2] = 0
    ours = quantise(vectors)
    scales, zeros = ours.scales.flatten(), torch.zeros(5, dtype=torch.int32)
    rounded = torch.fake_quantize_per_channel_affine(vectors, scales, zeros, 0, -127, 127)
    torch.testing.assert_close(ours.restored(), rounded)
    assert (ours.codes.abs().amax(dim=1) == torch.tensor([127, 127, 0, 127, 127])).all()
    assert ((vectors - ours.restored()).abs() <= ours.scales * 0.5001).all()


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
