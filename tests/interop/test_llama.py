"""Llama and Mistral against Hugging Face's, with the same random weights, in float64."""

from __future__ import annotations

import json

import pytest
import torch
import transformers

from tests.interop.oracles import (
    assert_same_tensors,
    assert_same_tokens,
    padded,
    with_precise_norms,
)
from ttutor.cache import DecoderCache
from ttutor.generation import greedy_search
from ttutor.inside import capture
from ttutor.interop import ConfigError, WeightsError, from_huggingface, save_huggingface, to_huggingface

VOCAB, END = 53, 52
CLOSE = {"rtol": 0, "atol": 1e-10}
LLAMA3 = {"factor": 8.0, "original_max_position_embeddings": 16, "low_freq_factor": 1.0, "high_freq_factor": 4.0}

SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 12,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": END,
    "attn_implementation": "sdpa",  # their eager attention takes the softmax in float32
}
KINDS = {
    "one each, tied": {"tie_word_embeddings": True},
    "grouped, wide heads": {
        "hidden_size": 18,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 4,
        "rms_norm_eps": 1e-3,
        "rope_parameters": {"rope_type": "default", "rope_theta": 50.0},
    },
    "with a window": {"num_attention_heads": 6, "num_key_value_heads": 3, "num_hidden_layers": 3, "sliding_window": 3},
}


def build(**changes) -> transformers.PreTrainedModel:
    """A model of theirs as it is, none of whose weights is zero or one by design."""
    family = transformers.MistralConfig if "sliding_window" in changes else transformers.LlamaConfig
    config = family(**{**SIZES, **changes})
    model = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def precise(model: transformers.PreTrainedModel) -> transformers.PreTrainedModel:
    """The same model with norms and rotary angles in float64; theirs are float32 whatever the weights."""
    d_head, base = model.config.head_dim, model.config.rope_parameters["rope_theta"]
    assert model.config.rope_parameters["rope_type"] == "default"

    def rotary(hidden, position_ids):
        frequencies = 1 / base ** (torch.arange(0, d_head, 2).double() / d_head)
        angle = torch.einsum("bt,f->btf", position_ids.double(), frequencies).repeat(1, 1, 2)
        return angle.cos(), angle.sin()

    model.model.rotary_emb.forward = rotary
    return with_precise_norms(model)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.replace(" ", "_"))
def theirs(request):
    torch.manual_seed(0)
    return precise(build(**KINDS[request.param]))


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


@pytest.fixture
def token_ids():
    return torch.randint(VOCAB, (3, 7))


def test_logits_and_every_hidden_state(ours, theirs, token_ids):
    expected = theirs(token_ids, output_hidden_states=True)
    with capture(ours, "embedding", "layers.*", "final_norm") as seen:
        logits = ours(token_ids)
    torch.testing.assert_close(logits, expected.logits, **CLOSE)
    inner = [f"layers.{i}" for i in range(ours.config.n_layers - 1)]  # the last layer's they give normalised only
    for name, other in zip(["embedding", *inner, "final_norm"], expected.hidden_states, strict=True):
        torch.testing.assert_close(seen[name], other, **CLOSE)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side(ours, theirs, token_ids, side):
    is_real = padded(side)
    positions = (is_real.cumsum(dim=-1) - 1).clamp(min=0)  # as their generate counts them
    expected = theirs(token_ids, attention_mask=is_real.long(), position_ids=positions).logits
    torch.testing.assert_close(ours(token_ids, is_real)[is_real], expected[is_real], **CLOSE)


@pytest.mark.parametrize("chunks", [[3, 4], [4, 1, 1, 1]])
def test_cached_in_chunks_equals_theirs_at_once(ours, theirs, token_ids, chunks):
    cache, is_real = DecoderCache(ours.config.n_layers), padded("left")
    positions = (is_real.cumsum(dim=-1) - 1).clamp(min=0)
    expected = theirs(token_ids, attention_mask=is_real.long(), position_ids=positions).logits
    parts = [
        ours(ids, real, cache)
        for ids, real in zip(token_ids.split(chunks, dim=1), is_real.split(chunks, dim=1), strict=True)
    ]
    torch.testing.assert_close(torch.cat(parts, dim=1)[is_real], expected[is_real], **CLOSE)


def test_greedy_continuations_token_by_token(ours, theirs, token_ids):
    is_real = padded("left")
    expected = theirs.generate(
        token_ids, attention_mask=is_real.long(), max_new_tokens=6, do_sample=False, pad_token_id=END
    )
    found = greedy_search(ours, token_ids, is_real=is_real, eos_id=END, max_new_tokens=6)
    assert_same_tokens(found, expected[:, 7:].tolist(), END)


def test_there_and_back(ours, theirs):
    config, tensors = to_huggingface(ours)
    assert_same_tensors(tensors, theirs.state_dict())
    described = theirs.config.to_dict()
    asked = {*SIZES, "head_dim", "rms_norm_eps", "num_key_value_heads", "rope_parameters", "model_type"}
    for name in asked - {"eos_token_id", "attn_implementation"}:
        assert config[name] == described[name], name


@pytest.mark.parametrize("max_shard_size", ["5GB", "6KB"])
def test_a_folder_of_theirs(theirs, token_ids, tmp_path, max_shard_size):
    theirs.save_pretrained(tmp_path, max_shard_size=max_shard_size)
    n_files = len(list(tmp_path.glob("*.safetensors")))
    assert n_files == 1 if max_shard_size == "5GB" else n_files > 1
    torch.testing.assert_close(from_huggingface(tmp_path)(token_ids), theirs(token_ids).logits, **CLOSE)


def test_a_folder_of_ours(ours, theirs, token_ids, tmp_path):
    folder = save_huggingface(ours, tmp_path / "saved")
    loaded = type(theirs).from_pretrained(folder, dtype="auto")
    torch.testing.assert_close(precise(loaded)(token_ids).logits, ours(token_ids), **CLOSE)


@pytest.mark.parametrize("rotary", [{}, {"rope_type": "linear", "factor": 4.0}, {"rope_type": "llama3", **LLAMA3}])
def test_rotary_positions_as_they_compute_them_in_float32(rotary, token_ids, tmp_path):
    model = build(head_dim=10, rope_parameters={"rope_type": "default", "rope_theta": 100.0, **rotary})
    ours, positions = from_huggingface(model), torch.arange(16)[None]
    cos, sin = model.model.rotary_emb(torch.zeros(1, dtype=torch.float64), positions)
    rotation = ours.rotary(positions)
    torch.testing.assert_close(rotation.cos[:, 0], cos[..., :5], rtol=0, atol=1e-6)
    torch.testing.assert_close(rotation.sin[:, 0], sin[..., :5], rtol=0, atol=1e-6)
    torch.testing.assert_close(ours(token_ids), model(token_ids).logits, rtol=0, atol=1e-6)
    reloaded = type(model).from_pretrained(save_huggingface(ours, tmp_path / "saved"))
    assert reloaded.config.rope_parameters == model.config.rope_parameters
    assert from_huggingface(reloaded).config == ours.config


@pytest.mark.parametrize("scaling", [None, {"type": "linear", "factor": 4.0}, {"rope_type": "llama3", **LLAMA3}])
def test_configs_from_before_transformers_5(scaling, tmp_path):
    """They had the rotary base and its scaling in two entries; what the library makes of them is the oracle."""
    build().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    del config["rope_parameters"], config["head_dim"]
    config |= {"rope_theta": 500.0, "rope_scaling": scaling}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    ours = from_huggingface(tmp_path).config
    assert ours == from_huggingface(transformers.LlamaForCausalLM.from_pretrained(tmp_path)).config
    assert ours.rotary_base == 500.0
    assert (ours.rotary_scaling is None) == (scaling is None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention_bias": True}, "attention_bias=True"),
        ({"mlp_bias": True, "hidden_act": "relu"}, r"hidden_act='relu' .*; mlp_bias=True"),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, "but is 'dynamic'"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        from_huggingface(build(**changes))


def test_checkpoints_of_other_times_and_of_the_bare_model(token_ids, tmp_path):
    """The first converted Llamas hold the rotary frequencies of each layer; the bare model has no prefix."""
    model = build(tie_word_embeddings=True)
    expected = from_huggingface(model)(token_ids)
    torch.testing.assert_close(from_huggingface(model.model)(token_ids), expected, rtol=0, atol=0)
    for layer in model.model.layers:
        layer.self_attn.rotary_emb = torch.nn.Module()
        layer.self_attn.rotary_emb.register_buffer("inv_freq", torch.ones(2))
    assert "model.layers.1.self_attn.rotary_emb.inv_freq" in model.state_dict()
    torch.testing.assert_close(from_huggingface(model)(token_ids), expected, rtol=0, atol=0)


def test_an_untied_model_without_its_projection_is_refused():
    model = build()
    with pytest.raises(WeightsError, match="missing: lm_head.weight"):
        from_huggingface(model.model)
    model.model.layers[1].mlp.gate_proj = torch.nn.Linear(12, 20)
    with pytest.raises(WeightsError, match=r"surplus: model.layers.1.mlp.gate_proj.bias"):
        from_huggingface(model)


def test_a_tied_model_with_another_projection_is_refused():
    model = build(tie_word_embeddings=True)
    model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCAB, 12, dtype=torch.float64))
    with pytest.raises(WeightsError, match="two values: lm_head.weight should be what embedding.table.weight has"):
        from_huggingface(model)
