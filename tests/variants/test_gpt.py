"""The decoder-only model: properties that hold for every way of telling positions."""

import pytest
import torch

from tests.torch_twins import randomised
from ttutor.errors import ShapeError
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


@pytest.mark.usefixtures("as_readers_run_it")
def test_shapes_that_do_not_fit_are_named(token_ids):
    model = GPT(small())
    with pytest.raises(ShapeError, match=r"token_ids must have 2 axes \[batch tokens\], but its shape \(7,\) has 1"):
        model(token_ids[0])
    with pytest.raises(ShapeError, match="axis 'tokens' is 7 in token_ids but 6 in is_real"):
        model(token_ids, torch.ones(2, 6, dtype=torch.bool))
