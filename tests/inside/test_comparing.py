"""The first place where two models differ is the one that was changed, and the reason is among those that are given."""

from __future__ import annotations

import math
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from torch import nn

from ttutor.encoder import Encoder
from ttutor.errors import InputError
from ttutor.inside import compare
from ttutor.interop import save_huggingface
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.variants.llama import Llama, LlamaConfig

TOKEN_IDS = torch.tensor([[7, 8, 9, 3]])


@pytest.fixture
def model() -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=3, d_ff=48, max_len=16)).eval()


def test_a_copy_does_not_differ(model: GPT) -> None:
    result = compare(model, deepcopy(model), TOKEN_IDS)
    assert result.first is None
    assert result.reasons == ()
    assert len(result.places) > 30
    assert all(place.difference == 0 for place in result.places)
    assert str(result).startswith(f"No difference in {len(result.places)} places")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("embeddings.token.table.weight", "embeddings.token.table"),
        ("decoder.layers.1.self_attention.to_key.weight", "decoder.layers.1.self_attention.to_key"),
        ("decoder.layers.2.feed_forward.widen.bias", "decoder.layers.2.feed_forward.widen"),
        ("decoder.final_norm.gain", "decoder.final_norm"),
    ],
)
def test_a_changed_weight_is_found_at_its_place(model: GPT, name: str, place: str) -> None:
    other = deepcopy(model)
    with torch.no_grad():
        other.get_parameter(name).add_(0.5 * torch.randn_like(other.get_parameter(name)))
    result = compare(model, other, TOKEN_IDS)
    assert result.first is not None
    assert result.first.first == result.first.second == place
    assert result.reasons[0] == f"the weights themselves: {name}"
    assert place in str(result)


def test_another_epsilon_is_found_and_named(model: GPT) -> None:
    other = deepcopy(model)
    other.decoder.layers[1].around_feed_forward.norm.eps = 0.5
    result = compare(model, other, TOKEN_IDS)
    assert result.first.first == "decoder.layers.1.around_feed_forward.norm"
    assert result.reasons[0] == "the norms' epsilon: 1e-05 and 0.5, 1e-05"


def test_dropout_that_is_on_is_named() -> None:
    encoder = Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=2, dropout=0.5).eval()
    result = compare(encoder, deepcopy(encoder).train(), torch.randn(1, 5, 8))
    assert result.reasons[0].startswith("a model is in training mode")


def test_rounding_is_no_difference_unless_the_number_format_says_so(model: GPT) -> None:
    precise = deepcopy(model).double()
    assert compare(precise, model, TOKEN_IDS).first is None
    assert compare(precise, model, TOKEN_IDS, tolerance=1e-12).first is not None
    rounded = compare(model, deepcopy(model).bfloat16(), TOKEN_IDS, tolerance=1e-4)
    assert rounded.reasons[0] == "the number format: torch.float32 and torch.bfloat16"


def test_models_of_other_names_are_laid_beside_each_other_by_layers() -> None:
    class Theirs(nn.Module):
        def __init__(self, encoder: Encoder) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(deepcopy(layer) for layer in encoder.layers)

        def forward(self, hidden: torch.Tensor) -> tuple[torch.Tensor]:
            for block in self.blocks:
                hidden = block(hidden)
            return (hidden,)

    encoder, hidden = Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=3, norm="post").eval(), torch.randn(2, 5, 8)
    theirs = Theirs(encoder).eval()
    assert compare(encoder, theirs, hidden).first is None
    theirs.blocks[1].feed_forward.widen.weight.data.mul_(2)
    found = compare(encoder, theirs, hidden).first
    assert (found.first, found.second) == ("layers.1", "blocks.1")
    with pytest.raises(InputError, match=r"cannot be laid beside each other: .* the first has 5 .* the second 4"):
        compare(encoder, Theirs(Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=2)), hidden)


def test_another_shape_is_a_difference_and_points_to_a_start_token() -> None:
    class WithStart(nn.Linear):
        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            return super().forward(torch.cat([hidden[:, :1], hidden], dim=1))

    result = compare(nn.Linear(4, 4), WithStart(4, 4), torch.randn(1, 3, 4))
    assert result.first.difference == math.inf
    assert result.reasons[0] == "one side read more tokens: a start token, or padding"
    assert "(1, 3, 4) and (1, 4, 4)" in str(result)


def test_nan_is_a_difference() -> None:
    broken = nn.Linear(4, 4)
    broken.weight.data[0, 0] = math.nan
    assert compare(nn.Linear(4, 4), broken, torch.randn(1, 4)).first is not None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_heads": 2, "n_kv_heads": 1, "n_layers": 2, "d_ff": 32}
    return save_huggingface(Llama(LlamaConfig(vocab_size=50, max_len=32, **sizes)).eval(), tmp_path / "model")


def test_the_command_compares_ours_with_theirs(ttutor, folder: Path) -> None:
    pytest.importorskip("transformers")
    assert "No difference in 4 places" in ttutor("compare", folder).stdout


def test_the_command_compares_two_folders_and_leaves_with_1_where_they_differ(ttutor, folder, tmp_path) -> None:
    from ttutor.interop import from_huggingface

    changed = from_huggingface(folder)
    changed.get_parameter("layers.1.feed_forward.narrow.weight").data.mul_(2)
    other = save_huggingface(changed, tmp_path / "other")
    said = ttutor("compare", folder, other, "--tokens", "7,8", code=1).stdout
    assert "differs is layers.1.feed_forward.narrow" in said
    assert "No difference" in ttutor("compare", folder, folder).stdout


@pytest.mark.parametrize(
    ("tokens", "said"), [("7,x", "--tokens takes numbers with commas"), ("50", "the model knows 0 to 49")]
)
def test_the_command_says_what_is_wrong_with_tokens(ttutor, folder: Path, tokens: str, said: str) -> None:
    assert said in ttutor("compare", folder, folder, "--tokens", tokens, code=2).stderr
