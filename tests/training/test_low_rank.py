"""Low-rank adapters: against weights written out by hand."""

import copy

import pytest
import torch
from torch import nn

from ttutor.training.fit import fit
from ttutor.training.low_rank import attach_low_rank, load_low_rank, low_rank_tensors, merge_low_rank
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.variants.llama import Llama, LlamaConfig

SIZES = {"vocab_size": 13, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20, "max_len": 8}
MODELS = {
    "gpt": lambda: GPT(GPTConfig(**SIZES)),
    "llama": lambda: Llama(LlamaConfig(**SIZES, tie_embeddings=True)),
}
TOKEN_IDS = torch.tensor([[1, 5, 2, 7], [3, 3, 12, 0]])


def next_token_loss(model, token_ids):
    logits = model(token_ids[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), token_ids[:, 1:].flatten())


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]().double().eval()


def test_it_begins_as_the_model_and_trains_what_is_attached_alone(model):
    before, expected = copy.deepcopy(model), model(TOKEN_IDS)
    names = attach_low_rank(model, rank=2, alpha=6.0)
    attention = [name for name, _ in model.named_modules() if name.endswith(".self_attention")]
    assert names == [f"{name}.{part}" for name in attention for part in ("to_query", "to_value")]
    assert torch.equal(model(TOKEN_IDS), expected)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    assert sum(parameter.numel() for parameter in trained) == 2 * 2 * 2 * (12 + 12)
    losses = fit(model, [TOKEN_IDS], next_token_loss, steps=30, learning_rate=0.05)
    assert losses[-1] < losses[0]
    learned = low_rank_tensors(model)

    by_hand = copy.deepcopy(before)
    with torch.no_grad():
        for name in names:
            by_hand.get_submodule(name).weight += 3.0 * learned[f"{name}.widen"] @ learned[f"{name}.narrow"]
    torch.testing.assert_close(model(TOKEN_IDS), by_hand(TOKEN_IDS), rtol=0, atol=1e-12)

    other = copy.deepcopy(before)
    attach_low_rank(other, rank=2, alpha=6.0)
    load_low_rank(other, learned)
    assert torch.equal(other(TOKEN_IDS), model(TOKEN_IDS))
    merge_low_rank(model)
    assert model.state_dict().keys() == by_hand.state_dict().keys()
    for name, tensor in by_hand.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], tensor, rtol=0, atol=1e-12)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_what_does_not_fit_is_refused(model):
    with pytest.raises(ValueError, match="has no linear map called to_keys"):
        attach_low_rank(model, rank=2, layers=["to_query", "to_keys"])
    with pytest.raises(ValueError, match="rank must be from 1 to 12 for a weight of 12 x 12, but is 13"):
        attach_low_rank(model, rank=13)
    with pytest.raises(ValueError, match="to_logits shares its weight with another layer"):
        attach_low_rank(model, rank=2, layers=["to_logits"])
    with pytest.raises(ValueError, match="nothing of low rank is attached"):
        merge_low_rank(model)
    attach_low_rank(model, rank=2)
    with pytest.raises(ValueError, match="computes its weight already"):
        attach_low_rank(model, rank=2)
    learned = low_rank_tensors(model)
    with pytest.raises(ValueError, match=r"is \(2, 1\), but the model's \(2, 12\)"):
        load_low_rank(model, {name: tensor[:, :1] for name, tensor in learned.items()})
    with pytest.raises(ValueError, match="these tensors are of other maps"):
        load_low_rank(model, dict(list(learned.items())[1:]))
