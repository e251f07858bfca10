"""The optimizers of a training: who changes what, what Muon does to a matrix, and going on where they stood."""

import pytest
import torch

from ttutor.training.optimizer import Optimizers, matrices_of_layers
from ttutor.training.parallel_batches import ParallelBatches
from ttutor.transformer import Transformer, TransformerConfig

CONFIG = TransformerConfig(vocab_size=30, d_model=8, n_heads=2, n_layers=2, d_ff=12, dropout=0.0, max_len=9)


def build(kind: str, weight_decay: float = 0.0, n_lanes: int = 2) -> tuple[Transformer, Optimizers]:
    torch.manual_seed(0)
    model = Transformer(CONFIG)
    return model, Optimizers(model, kind, weight_decay, ParallelBatches(n_lanes, seed=0))


def give_gradients(model: Transformer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def copies(model: Transformer) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("kind", ["adamw", "muon"])
@pytest.mark.parametrize("n_lanes", [1, 2, 3])
def test_every_parameter_belongs_to_one_optimizer(kind, n_lanes):
    model, optimizers = build(kind, n_lanes=n_lanes)
    held = [parameter for part in optimizers.parts for group in part.param_groups for parameter in group["params"]]
    assert len(held) == len(list(model.parameters()))
    assert {id(parameter) for parameter in held} == {id(parameter) for parameter in model.parameters()}


def test_muon_takes_the_matrices_of_the_layers_and_nothing_else():
    model, optimizers = build("muon")
    held = {id(p) for part in optimizers.parts[1:] for group in part.param_groups for p in group["params"]}
    names = {name for name, parameter in model.named_parameters() if id(parameter) in held}
    assert len(names) == len(matrices_of_layers(model)) == 2 * (4 + 2) + 2 * (8 + 2)
    assert all(name.endswith(".weight") and name.startswith(("encoder.layers", "decoder.layers")) for name in names)


def test_adamw_is_torch_s_own_over_all_parameters():
    model, optimizers = build("adamw", weight_decay=0.1)
    other, _ = build("adamw")
    theirs = torch.optim.AdamW(other.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1)
    for seed in range(3):
        give_gradients(model, seed)
        give_gradients(other, seed)
        optimizers.step(0.01)
        theirs.step()
    for mine, wanted in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, wanted)
