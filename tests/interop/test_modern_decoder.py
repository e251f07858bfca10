"""Decoders from Llama to gpt-oss against Hugging Face's, with the same random weights, in float64."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
import transformers

from tests.interop.decoders import END, FAMILIES, LLAMA3, SIZES, VOCAB, YARN, build
from tests.interop.oracles import assert_same_tokens, in_float64, padded
from ttutor.cache import DecoderCache
from ttutor.errors import FileError, SettingError
from ttutor.generation import greedy_search
from ttutor.inside import capture
from ttutor.interop import from_huggingface, save_huggingface, to_huggingface
from ttutor.transformer import account
from ttutor.variants.modern_decoder import ModernDecoder, ModernDecoderConfig

CLOSE = {"rtol": 0, "atol": 1e-10}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def theirs(family):
    return build(family)


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


@pytest.fixture
def token_ids():
    return torch.randint(VOCAB, (3, 7))


def logits_of(theirs, token_ids, is_real):
    """Theirs, with positions counted as their generate counts them."""
    positions = (is_real.cumsum(dim=-1) - 1).clamp(min=0)
    with in_float64():
        return theirs(token_ids, attention_mask=is_real.long(), position_ids=positions).logits


def test_logits_and_every_hidden_state(ours, theirs, token_ids):
    with in_float64():
        expected = theirs(token_ids, output_hidden_states=True)
    with capture(ours, "embedding", "layers.*", "final_norm") as seen:
        logits = ours(token_ids)
    torch.testing.assert_close(logits, expected.logits, **CLOSE)
    inner = [f"layers.{i}" for i in range(ours.config.n_layers - 1)]  # the last layer's they give normalised only
    for name, other in zip(["embedding", *inner, "final_norm"], expected.hidden_states, strict=True):
        torch.testing.assert_close(seen[name], other, **CLOSE)


def test_padded_on_either_side_and_in_chunks_with_a_cache(ours, theirs, token_ids):
    for side in ("left", "right"):
        is_real = padded(side)
        expected = logits_of(theirs, token_ids, is_real)[is_real]
        torch.testing.assert_close(ours(token_ids, is_real)[is_real], expected, **CLOSE)
        cache, chunks = DecoderCache(ours.config.n_layers), [3, 1, 1, 2]
        parts = [
            ours(ids, real, cache)
            for ids, real in zip(token_ids.split(chunks, dim=1), is_real.split(chunks, dim=1), strict=True)
        ]
        torch.testing.assert_close(torch.cat(parts, dim=1)[is_real], expected, **CLOSE)


def test_greedy_continuations_token_by_token(ours, theirs, token_ids):
    is_real = padded("left")
    with in_float64():
        expected = theirs.generate(
            token_ids, attention_mask=is_real.long(), max_new_tokens=6, do_sample=False, pad_token_id=END
        )
    found = greedy_search(ours, token_ids, is_real=is_real, eos_id=END, max_new_tokens=6)
    assert_same_tokens(found, expected[:, 7:].tolist(), END)


def test_folders_go_both_ways(ours, theirs, token_ids, tmp_path):
    expected = ours(token_ids)
    theirs.save_pretrained(tmp_path / "theirs")
    torch.testing.assert_close(from_huggingface(tmp_path / "theirs")(token_ids), expected, **CLOSE)
    folder = save_huggingface(ours, tmp_path / "ours")
    again = from_huggingface(folder)
    assert again.config == ours.config
    with in_float64():
        kinds = {"dtype": "auto", "attn_implementation": "eager", "experts_implementation": "eager"}
        loaded = type(theirs).from_pretrained(folder, **kinds).double()
        logits = loaded(token_ids).logits
    torch.testing.assert_close(logits, expected, **CLOSE)


def test_rotary_positions_as_they_compute_them_in_float32(token_ids):
    for rotary in ({"rope_type": "default"}, {"rope_type": "linear", "factor": 4.0}, LLAMA3, YARN):
        config = transformers.LlamaConfig(**{**SIZES, "head_dim": 10, "rope_parameters": {**rotary, "rope_theta": 1e2}})
        model = transformers.LlamaForCausalLM(config).double().eval()
        ours = from_huggingface(model)
        cos, sin = model.model.rotary_emb(torch.zeros(1, dtype=torch.float64), torch.arange(16)[None])
        rotation, factor = ours.rotary(torch.arange(16)[None]), model.model.rotary_emb.attention_scaling
        torch.testing.assert_close(factor * rotation.cos[:, 0], cos[..., :5], rtol=0, atol=1e-6)
        torch.testing.assert_close(factor * rotation.sin[:, 0], sin[..., :5], rtol=0, atol=1e-6)
        torch.testing.assert_close(ours(token_ids), model(token_ids).logits, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "scaling", [None, {"type": "linear", "factor": 4.0}, {**LLAMA3, "rope_theta": 500.0}], ids=["none", "old", "llama3"]
)
def test_configs_from_before_transformers_5(scaling, tmp_path):
    """They had the rotary base and its scaling in two entries; what the library makes of them is the oracle."""
    build("Llama 3").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    del config["rope_parameters"]
    config |= {"rope_theta": 500.0, "rope_scaling": scaling}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    ours = from_huggingface(tmp_path).config
    assert ours == from_huggingface(transformers.LlamaForCausalLM.from_pretrained(tmp_path)).config
    assert ours.rotary_base == 500.0
    assert (ours.rotary_scaling is None) == (scaling is None)


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("Llama 3", {"attention_bias": True}, "attention_bias=True"),
        ("Llama 3", {"mlp_bias": True, "hidden_act": "relu"}, r"hidden_act='relu' .*; mlp_bias=True"),
        (
            "Llama 3",
            {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}},
            "yarn: 'dynamic'",
        ),
        ("Qwen 3, experts", {"decoder_sparse_step": 2}, "decoder_sparse_step=2"),
        ("Qwen 3, experts", {"mlp_only_layers": [0]}, r"mlp_only_layers=\[0\]"),
        ("Gemma 3", {"layer_types": ["full_attention", "sliding_attention"] * 2}, "must come in an even step"),
        ("DeepSeek-V3", {"rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.0}}, "mscale_all_dim 1"),
        ("gpt-oss", {"swiglu_limit": 5.0}, "swiglu_limit=5.0"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(family, changes, message):
    with pytest.raises(SettingError, match=message):
        from_huggingface(build(family, **changes))


def test_parts_that_no_family_has_together_are_refused():
    sizes = {"vocab_size": 9, "d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 12}
    with pytest.raises(SettingError, match="has just these parts"):
        to_huggingface(ModernDecoder(ModernDecoderConfig(**sizes, norm_place="after")))


def test_checkpoints_of_other_times_and_of_the_bare_model(token_ids):
    """The first converted Llamas hold the rotary frequencies of each layer; the bare model has no prefix."""
    model = build("Llama 3")
    expected = from_huggingface(model)(token_ids)
    assert torch.equal(from_huggingface(model.model)(token_ids), expected)
    for layer in model.model.layers:
        layer.self_attn.rotary_emb = torch.nn.Module()
        layer.self_attn.rotary_emb.register_buffer("inv_freq", torch.ones(2))
    assert torch.equal(from_huggingface(model)(token_ids), expected)


def test_tensors_that_do_not_fit_are_named():
    model = build("Mistral")
    with pytest.raises(FileError, match=r"missing: lm_head\.weight"):
        from_huggingface(model.model)
    model.model.layers[1].mlp.gate_proj = torch.nn.Linear(12, 20)
    with pytest.raises(FileError, match=r"surplus: model\.layers\.1\.mlp\.gate_proj\.bias"):
        from_huggingface(model)
    tied = build("Llama 3")
    tied.lm_head.weight = torch.nn.Parameter(torch.randn(VOCAB, 12, dtype=torch.float64))
    with pytest.raises(FileError, match="should be what embedding.table.weight has"):
        from_huggingface(tied)


# The table of the reference

PUBLISHED = {
    "Llama 3": ("Llama 3 8B", ModernDecoderConfig.llama3_8b()),
    "Mistral": ("Mistral 7B", ModernDecoderConfig.mistral_7b()),
    "Mixtral": ("Mixtral 8x7B", ModernDecoderConfig.mixtral_8x7b()),
    "Qwen 3": ("Qwen3-8B", ModernDecoderConfig.qwen3_8b()),
    "Qwen 3, experts": ("Qwen3-30B-A3B", ModernDecoderConfig.qwen3_30b_a3b()),
    "OLMo 2": ("OLMo 2 7B", ModernDecoderConfig.olmo2_7b()),
    "Gemma 2": ("Gemma 2 2B", ModernDecoderConfig.gemma2_2b()),
    "Gemma 3": ("Gemma 3 1B", ModernDecoderConfig.gemma3_1b()),
    "DeepSeek-V3": ("DeepSeek-V3", ModernDecoderConfig.deepseek_v3()),
    "gpt-oss": ("gpt-oss-20b", ModernDecoderConfig.gpt_oss_20b()),
}


def parts_of(config: ModernDecoderConfig) -> str:
    """What a config has besides Llama's parts, in a few words."""
    parts = {
        "scaled rotary": config.rotary_scaling is not None,
        "grouped queries": config.n_kv_heads not in (None, config.n_heads),
        "latent attention": config.latent is not None,
        f"norms {config.norm_place} the branch" if config.norm_place != "both" else "norms on both sides": (
            config.norm_place != "before"
        ),
        f"QK-norm over {config.qk_norm}": config.qk_norm is not None,
        "soft caps": config.score_cap is not None,
        "sinks": config.has_sinks,
        "biases": config.attention_bias,
        f"window of {config.window}": config.window is not None,
        f"every {config.global_every}th layer global" if config.global_every != 2 else "every second layer global": (
            config.global_every is not None
        ),
        "GeGLU": config.activation != "silu",
    }
    if config.experts is not None:
        experts = config.experts
        shared = f" and {experts.n_shared} shared" * bool(experts.n_shared)
        parts[f"{experts.n_chosen} of {experts.n_experts} experts{shared}"] = True
        parts["bias-based balance"] = experts.is_balanced
    return ", ".join(part for part, has in parts.items() if has)


def test_the_reference_shows_what_is_measured(ours, theirs, family, token_ids):
    """Each row of the table in the reference: parts, parameters, cache, and the order of the largest deviation."""
    page = Path(__file__).parents[2] / "book" / "api-interop.md"
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.read_text().splitlines() if "|" in line]
    name, config = PUBLISHED[family]
    costs = account(config, dtype=torch.bfloat16)
    billions = [f"{count / 1e9:.1f}" for count in (costs.n_parameters, costs.n_active_parameters)]
    kilobytes = f"{costs.cache_bytes_per_token / 1000:.0f}"
    deviation = (ours(token_ids) - logits_of(theirs, token_ids, torch.ones(3, 7, dtype=torch.bool))).abs().max().item()
    expected = [name, parts_of(config), *billions, kilobytes]
    found = next((row for row in rows if row[0] == name), [])
    assert found[:5] == expected, f"the row should be | {' | '.join([*expected, f'{deviation:.0e}'])} |"
    assert abs(math.log10(float(found[5])) - math.log10(max(deviation, 1e-17))) < 1.5
    assert deviation < 1e-10
