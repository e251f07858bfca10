"""Qwen 3, its mixtures of experts, and Mixtral against Hugging Face's, with the same random weights, in float64."""

from __future__ import annotations

import pytest
import torch
import transformers

from tests.interop.oracles import assert_same_tokens, padded, with_precise_norms
from ttutor.cache import DecoderCache
from ttutor.generation import greedy_search
from ttutor.interop import ConfigError, from_huggingface, save_huggingface
from ttutor.transformer import account
from ttutor.variants.experts import n_active_parameters
from ttutor.variants.llama_kin import ExpertsConfig, Mixtral, Qwen3, Qwen3Config

VOCAB, END = 53, 52
CLOSE = {"rtol": 0, "atol": 1e-10}
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 12,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": END,
    "rms_norm_eps": 1e-3,
    "attn_implementation": "sdpa",  # their eager attention takes the softmax in float32
}
EXPERTS = {"moe_intermediate_size": 9, "num_experts": 4, "num_experts_per_tok": 2}
KINDS = {
    "qwen3": transformers.Qwen3Config(**SIZES),
    "qwen3_moe": transformers.Qwen3MoeConfig(**SIZES, **EXPERTS, norm_topk_prob=True),
    "mixtral": transformers.MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=3, sliding_window=3),
}


def precise(model):
    """The same model with norms, rotary angles and the router's softmax in float64; theirs are float32."""

    def rotary(hidden, position_ids):
        frequencies = 1 / model.config.rope_parameters["rope_theta"] ** (torch.arange(0, 4, 2).double() / 4)
        angle = torch.einsum("bt,f->btf", position_ids.double(), frequencies).repeat(1, 1, 2)
        return angle.cos(), angle.sin()

    def route(router, hidden):
        probabilities = (hidden.flatten(0, -2) @ router.weight.mT).softmax(dim=-1)
        shares, chosen = probabilities.topk(router.top_k, dim=-1)
        return probabilities, shares / shares.sum(dim=-1, keepdim=True), chosen

    model.model.rotary_emb.forward = rotary
    for layer in model.model.layers:
        if hasattr(layer.mlp, "experts"):
            layer.mlp.gate.forward = lambda hidden, router=layer.mlp.gate: route(router, hidden)
    return with_precise_norms(model)


@pytest.fixture(scope="module", params=KINDS)
def theirs(request):
    torch.manual_seed(0)
    model = (
        transformers.AutoModelForCausalLM.from_config(KINDS[request.param], experts_implementation="eager")
        .double()
        .eval()
    )
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return precise(model)


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


def test_logits_padded_at_once_in_chunks_and_continued(ours, theirs):
    token_ids, is_real = torch.randint(VOCAB, (3, 7)), padded("left")
    positions = (is_real.cumsum(dim=-1) - 1).clamp(min=0)  # as their generate counts them
    expected = theirs(token_ids, attention_mask=is_real.long(), position_ids=positions).logits
    torch.testing.assert_close(ours(token_ids, is_real)[is_real], expected[is_real], **CLOSE)
    cache = DecoderCache(ours.config.n_layers)
    parts = [ours(token_ids[:, part], is_real[:, part], cache) for part in (slice(0, 3), slice(3, 4), slice(4, 7))]
    torch.testing.assert_close(torch.cat(parts, dim=1)[is_real], expected[is_real], **CLOSE)
    written = theirs.generate(
        token_ids, attention_mask=is_real.long(), max_new_tokens=5, do_sample=False, pad_token_id=END
    )
    found = greedy_search(ours, token_ids, is_real=is_real, eos_id=END, max_new_tokens=5)
    assert_same_tokens(found, written[:, 7:].tolist(), END)


def test_folders_go_both_ways(ours, theirs, tmp_path):
    token_ids = torch.randint(VOCAB, (2, 7))
    expected = ours(token_ids)
    theirs.save_pretrained(tmp_path / "theirs")
    assert torch.equal(from_huggingface(tmp_path / "theirs")(token_ids), expected)
    folder = save_huggingface(ours, tmp_path / "ours")
    loaded = type(theirs).from_pretrained(folder, dtype="auto", experts_implementation="eager")
    torch.testing.assert_close(precise(loaded)(token_ids).logits, expected, **CLOSE)


@pytest.mark.parametrize("changes", [{"decoder_sparse_step": 2}, {"mlp_only_layers": [0]}])
def test_layers_without_experts_among_those_with_them_are_refused(changes):
    config = transformers.Qwen3MoeConfig(**{**SIZES, **EXPERTS, **changes})
    with pytest.raises(ConfigError, match=next(iter(changes))):
        from_huggingface(transformers.AutoModelForCausalLM.from_config(config))


def test_mixtral_has_the_published_number_of_parameters():
    with torch.device("meta"):
        model = Mixtral(ExpertsConfig.mixtral_8x7b())
    assert sum(parameter.numel() for parameter in model.parameters()) == 46_702_792_704  # as released
    assert round(n_active_parameters(model) / 1e9, 1) == 12.9
    with pytest.raises(TypeError, match="cannot count mixtures of experts"):
        account(model.config)
    with pytest.raises(ValueError, match=r"at most all experts \(n_chosen=9, n_experts=8\)"):
        ExpertsConfig(n_chosen=9)


def test_an_account_of_qwen_3_counts_its_norms():
    config = Qwen3Config.qwen3_8b(n_layers=2)
    with torch.device("meta"):
        model = Qwen3(config)
    assert account(config).n_parameters == sum(parameter.numel() for parameter in model.parameters())
