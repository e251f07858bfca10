"""The configs of all families: what is out of range is named with its value, and all survive as JSON."""

import json

import pytest

from ttutor.configs import Config
from ttutor.positions import RotaryScaling
from ttutor.transformer import TransformerConfig
from ttutor.variants.bert import BERTConfig
from ttutor.variants.gpt import GPTConfig
from ttutor.variants.llama import LlamaConfig
from ttutor.variants.t5 import T5Config
from ttutor.variants.vit import ViTConfig

BASE, LLAMA = TransformerConfig.base(), LlamaConfig(d_model=12, n_heads=6, n_kv_heads=2, d_head=4)


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (BASE, {"n_heads": 5}, r"d_model must be a multiple of n_heads \(d_model=512, n_heads=5\)"),
        (BASE, {"n_layers": 2.0}, r"n_layers must be a positive integer \(n_layers=2.0\)"),
        (BASE, {"dropout": 1.0}, r"dropout must be at least 0 and below 1 \(dropout=1.0\)"),
        (BASE, {"norm": "mid"}, r"norm must be \"post\" or \"pre\" \(norm='mid'\)"),
        (BASE, {"positions": "rotating"}, r"positions must be one of .*\(positions='rotating'\)"),
        (BASE, {"pad_id": 37_000}, r"pad_id must be a token id \(pad_id=37000, vocab_size=37000\)"),
        (BASE, {"tie_embeddings": 1}, r"tie_embeddings must be True or False \(tie_embeddings=1\)"),
        (GPTConfig(), {"n_layers": 0, "positions": "learnt"}, r"\(n_layers=0\); positions must be one of"),
        (BERTConfig(), {"d_model": 10, "n_segments": 0}, r"n_segments must be .*; d_model must be a multiple of"),
        (
            ViTConfig(),
            {"image_size": 9},
            r"image_size must be a multiple of patch_size \(image_size=9, patch_size=16\)",
        ),
        (T5Config(), {"feed_forward": "gelu"}, r"feed_forward must be one of .*'swiglu'\] \(feed_forward='gelu'\)"),
        (T5Config(), {"pad_id": -1}, r"pad_id must be a token id \(pad_id=-1"),
        (LLAMA, {"n_kv_heads": 4}, r"n_heads must be a multiple of n_kv_heads \(n_heads=6, n_kv_heads=4\)"),
        (LLAMA, {"d_head": None, "n_heads": 5, "n_kv_heads": None}, r"d_model must be a multiple .*n_heads=5\)"),
        (LLAMA, {"rotary_base": -1.0}, r"rotary_base must be a positive number \(rotary_base=-1.0\)"),
    ],
)
@pytest.mark.usefixtures("as_readers_run_it")
def test_impossible_configs_name_their_values(config: Config, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config.replace(**changes)


@pytest.mark.parametrize("family", [TransformerConfig, GPTConfig, BERTConfig])
def test_the_inner_width_is_four_times_the_outer_unless_given(family: type) -> None:
    sizes = {"vocab_size": 10, "d_model": 12, "n_heads": 3}
    assert family(**sizes).d_ff == 48
    assert family(**sizes, d_ff=20).replace(d_model=24).d_ff == 20


@pytest.mark.parametrize(
    "config",
    [BASE, GPTConfig(), BERTConfig(), ViTConfig(), T5Config.v1_1_base(), LLAMA],
    ids=lambda c: type(c).__name__,
)
def test_a_config_survives_as_json(config: Config) -> None:
    assert type(config)(**json.loads(json.dumps(config.to_dict()))) == config


def test_a_config_in_a_config_survives_too() -> None:
    config = LLAMA.replace(rotary_scaling=RotaryScaling(factor=8.0, trained_len=16))
    assert LlamaConfig(**json.loads(json.dumps(config.to_dict()))) == config
