"""A small model of each decoder family of theirs, of odd shapes and with random weights."""

from __future__ import annotations

import torch
import transformers

from tests.interop.oracles import in_float64, randomised

VOCAB, END = 53, 52
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 12,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "num_hidden_layers": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": END,
    "pad_token_id": None,
    "rms_norm_eps": 1e-3,
}
EXPERTS = {"moe_intermediate_size": 9, "num_experts": 4, "num_experts_per_tok": 2}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 100.0,
    "factor": 8.0,
    "original_max_position_embeddings": 16,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 100.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
}
GEMMA = {"sliding_window": 3, "query_pre_attn_scalar": 7, "final_logit_softcapping": 2.0}
LATENT = {
    "num_key_value_heads": 6,
    "kv_lora_rank": 5,
    "q_lora_rank": 7,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 5,
    "v_head_dim": 3,
    "rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0},
}
BALANCED = {
    "moe_intermediate_size": 9,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "n_group": 4,
    "topk_group": 2,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
}
LOCAL_AND_GLOBAL = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e4},
    "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
}
# The family, its config, and what of `SIZES` is otherwise.
FAMILIES = {
    "Llama 3": (transformers.LlamaConfig, {"rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    "Mistral": (transformers.MistralConfig, {"sliding_window": 3}),
    "Mixtral": (transformers.MixtralConfig, {"num_local_experts": 4, "num_experts_per_tok": 3, "sliding_window": 3}),
    "Qwen 3": (transformers.Qwen3Config, {"rope_parameters": YARN}),
    "Qwen 3, experts": (transformers.Qwen3MoeConfig, {**EXPERTS, "norm_topk_prob": True}),
    "OLMo 2": (transformers.Olmo2Config, {"num_key_value_heads": 3}),
    "Gemma 2": (transformers.Gemma2Config, {**GEMMA, "attn_logit_softcapping": 1.5}),
    "Gemma 3": (
        transformers.Gemma3TextConfig,
        {**GEMMA, "rope_parameters": LOCAL_AND_GLOBAL, "layer_types": ["sliding_attention", "full_attention"] * 2},
    ),
    "DeepSeek-V3": (transformers.DeepseekV3Config, {**LATENT, **BALANCED}),
    "gpt-oss": (
        transformers.GptOssConfig,
        {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": 3,
            "rope_parameters": {**YARN, "truncate": False},
        },
    ),
}


def config_of(family: str, **changes: object) -> transformers.PreTrainedConfig:
    """A small config of theirs."""
    kind, own = FAMILIES[family]
    sizes = {**SIZES, **own, **changes}
    if family == "Gemma 3":
        sizes["num_hidden_layers"] = 4
    if family == "OLMo 2":  # whose heads are always as wide as the stream allows
        del sizes["head_dim"]
    return kind(**sizes)


def build(family: str, **changes: object) -> transformers.PreTrainedModel:
    """A model of theirs in float64; call it within `in_float64`, too."""
    torch.manual_seed(0)
    with in_float64():
        model = transformers.AutoModelForCausalLM.from_config(
            config_of(family, **changes), attn_implementation="eager", experts_implementation="eager"
        )
        for buffer in model.buffers():
            if buffer.shape == (8,):  # DeepSeek's balancing bias
                torch.nn.init.normal_(buffer, std=0.3)
        return randomised(model.double())
