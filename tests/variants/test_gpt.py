"""The decoder-only model: properties that hold for every way of telling positions."""

import math

import pytest
import torch
from torch import nn

from tests.torch_twins import randomised
from ttutor.cache import DecoderCache
from ttutor.shapes import ShapeError
from ttutor.training.fit import fit
from ttutor.variants.gpt import GPT, GPTConfig

POSITIONS = ["alibi", "learned", "none", "rotary", "sinusoidal"]
VOCAB = 19


def small(**changes) -> GPTConfig:
    sizes = {"vocab_size": VOCAB, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20, "max_len": 16}
    return GPTConfig(**{**sizes, **changes})


def build(**changes) -> GPT:
    return randomised(GPT(small(**changes)), std=0.5)


@pytest.fixture
def token_ids():
    return torch.randint(VOCAB, (2, 7))


@pytest.mark.parametrize("positions", POSITIONS)
def test_no_causal_leak(token_ids, positions):
    model = build(positions=positions)
    changed = token_ids.clone()
    changed[:, 4] = (changed[:, 4] + 1) % VOCAB
    before, after = model(token_ids), model(changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert (before[:, 4:] - after[:, 4:]).abs().amax(dim=(0, 2)).min() > 1e-6  # and all later ones notice


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("side", ["left", "right", "middle"])
def test_a_row_does_not_depend_on_its_batch_nor_on_padding(token_ids, positions, side):
    model = build(positions=positions)
    row, hole = token_ids[:1, :4], torch.randint(VOCAB, (1, 3))
    no, yes = torch.zeros(1, 3, dtype=torch.bool), torch.ones(1, 4, dtype=torch.bool)
    padded, is_real = {
        "left": ([hole, row], [no, yes]),
        "right": ([row, hole], [yes, no]),
        "middle": ([row[:, :2], hole, row[:, 2:]], [yes[:, :2], no, yes[:, 2:]]),
    }[side]
    padded, is_real = torch.cat(padded, dim=1), torch.cat(is_real, dim=1)
    batch = torch.cat([token_ids[1:], padded])
    logits = model(batch, torch.cat([torch.ones(1, 7, dtype=torch.bool), is_real]))
    torch.testing.assert_close(logits[1][is_real[0]], model(row)[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(logits[0], model(token_ids[1:])[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("chunks", [[7], [1] * 7, [4, 1, 2]])
def test_cached_equals_uncached(token_ids, positions, chunks):
    model, cache = build(positions=positions), DecoderCache(2)
    parts = [model(part, cache=cache) for part in token_ids.split(chunks, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(token_ids), rtol=0, atol=1e-12)


def test_positions_make_a_difference_and_without_them_only_the_causal_mask_tells_order(token_ids):
    swapped = token_ids.clone()
    swapped[:, [1, 2]] = token_ids[:, [2, 1]]
    swapped[:, 1] = torch.where(swapped[:, 1] == swapped[:, 2], (swapped[:, 2] + 1) % VOCAB, swapped[:, 1])
    token_ids[:, 2] = swapped[:, 1]
    for positions in POSITIONS:
        model = build(positions=positions, n_layers=1)
        same = torch.allclose(model(token_ids)[:, -1], model(swapped)[:, -1], rtol=0, atol=1e-12)
        assert same == (positions == "none")  # one layer sees a bag of words; two layers do not (next line)
    model = build(positions="none", n_layers=2)
    assert not torch.allclose(model(token_ids)[:, -1], model(swapped)[:, -1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("positions", POSITIONS)
def test_beyond_the_trained_length(positions):
    model, longer = build(positions=positions), torch.zeros(1, 17, dtype=torch.long)
    if positions in ("learned", "sinusoidal"):  # there is no vector for the seventeenth position
        with pytest.raises(ValueError, match="17 tokens are more than the 16"):
            model(longer)
    else:
        assert model(longer).isfinite().all()


def test_the_untrained_model_is_as_good_as_a_uniform_guess():
    model = GPT(small(vocab_size=1000)).eval()
    text = torch.randint(1000, (8, 16))
    loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(1000), abs=0.05)


def test_initial_weights_by_the_paper():
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=500, d_model=128, n_heads=4, n_layers=8, d_ff=512, max_len=64))
    layer = model.decoder.layers[3]
    expected = {"to_query": 0.02, "to_output": 0.02 / 4, "widen": 0.02, "narrow": 0.02 / 4}
    for name, parameter in layer.named_parameters():
        for part, std in expected.items():
            if name.endswith(f"{part}.weight"):
                assert parameter.std().item() == pytest.approx(std, rel=0.05)
    assert model.to_logits.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert all(p.abs().max() == 0 for name, p in model.named_parameters() if name.endswith("bias"))


def test_tied_and_untied_projection():
    tied, untied = GPT(small()), GPT(small(tie_embeddings=False))
    assert tied.to_logits.weight is tied.embeddings.token.table.weight
    counts = [sum(p.numel() for p in model.parameters()) for model in (untied, tied)]
    assert counts[0] - counts[1] == VOCAB * 12


@pytest.mark.usefixtures("as_readers_run_it")  # the annotation checks would take most of the time
def test_it_learns_what_only_attention_can_tell():
    """The token after the second occurrence of a token is the one after its first: copying needs looking back."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)

    def batch():
        half = torch.stack([torch.randperm(12, generator=generator)[:6] for _ in range(16)])
        return torch.cat([half, half], dim=1)

    def loss(model, text):
        logits = model(text[:, :-1])[:, 5:]
        return nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 6:].flatten())

    model = GPT(small(vocab_size=12, d_model=24, d_ff=48, dropout=0.0))
    losses = fit(model, (batch() for _ in range(250)), loss, steps=250, learning_rate=1e-2)
    assert losses[0] > math.log(6)
    assert sum(losses[-10:]) / 10 < 0.2


@pytest.mark.usefixtures("as_readers_run_it")
def test_shapes_that_do_not_fit_are_named(token_ids):
    model = GPT(small())
    with pytest.raises(ShapeError, match=r"token_ids must have 2 axes \[batch tokens\], but its shape \(7,\) has 1"):
        model(token_ids[0])
    with pytest.raises(ShapeError, match="axis 'tokens' is 7 in token_ids but 6 in is_real"):
        model(token_ids, torch.ones(2, 6, dtype=torch.bool))


@pytest.mark.parametrize("positions", POSITIONS)
def test_built_without_memory_then_filled_is_the_same_model(token_ids, positions):
    model = build(positions=positions)
    with torch.device("meta"):
        other = GPT(small(positions=positions))
    other = other.to_empty(device="cpu").double().eval()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(token_ids), model(token_ids))


def test_a_cache_for_another_number_of_layers_is_left_as_it_was(token_ids):
    cache = DecoderCache(3)
    with pytest.raises(ValueError, match="this decoder has 2 layers, but the cache 3"):
        build()(token_ids, cache=cache)
    assert cache.n_tokens == 0


def test_a_refused_call_leaves_the_cache_as_it_was(token_ids):
    model, cache = build(), DecoderCache(2)
    first = model(token_ids[:, :3], cache=cache)
    with pytest.raises(IndexError, match="token_ids run from"):
        model(token_ids[:, 3:4] * 0 + VOCAB, cache=cache)
    with pytest.raises(ValueError, match="17 tokens are more than the 16"):
        model(torch.zeros(2, 14, dtype=torch.long), cache=cache)
    rest = model(token_ids[:, 3:], cache=cache)
    torch.testing.assert_close(torch.cat([first, rest], dim=1), model(token_ids), rtol=0, atol=1e-12)
