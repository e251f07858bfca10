"""Small GGUF files of the architecture "llama", written as llama.cpp's converter writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import transformers

SIZES = {
    "vocab_size": 64,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
}
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
PIECES = ["<s>", "</s>", "<tool>", *(chr(code) for code in range(33, 90)), "Ġ", "TH", "THE", "ĠTHE"]
MERGES = ["T H", "TH E", "Ġ THE"]
FIELDS = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.context_length": 128,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10_000.0,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": PIECES,
    "tokenizer.ggml.token_type": [3, 3, 4, *[1] * 61],
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.bos_token_id": 0,
    "tokenizer.ggml.eos_token_id": 1,
    "tokenizer.chat_template": (
        "{% for m in messages %}<s>{{ m['content'] }}</s>{% endfor %}{% if add_generation_prompt %}<s>{% endif %}"
    ),
}


def config(**changes: Any) -> transformers.LlamaConfig:
    """The config of the model in the file."""
    return transformers.LlamaConfig(**{**SIZES, "tie_word_embeddings": False, **changes})


def write(
    path: Path,
    model: transformers.LlamaForCausalLM,
    *,
    kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    fields: dict[str, Any] | None = None,
    extra: dict[str, np.ndarray] | None = None,
) -> Path:
    """Write a model of `transformers`; a field that is None is left out, and ``extra`` are more tensors."""
    writer = gguf.GGUFWriter(path, arch="")
    writer.kv_data[0].clear()
    for name, value in {**FIELDS, **(fields or {})}.items():
        match value:
            case None:
                continue
            case str():
                writer.add_string(name, value)
            case bool():
                writer.add_bool(name, value)
            case int():
                writer.add_uint32(name, value)
            case float():
                writer.add_float32(name, value)
            case list():
                writer.add_array(name, value)
    heads = {"attn_q": model.config.num_attention_heads, "attn_k": model.config.num_key_value_heads}
    tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
    for name, tensor in model.state_dict().items():
        if name in tied:
            continue
        stem, weight = name.removesuffix(".weight"), tensor.float().numpy()
        if stem.startswith("model.layers."):
            number, _, part = stem.removeprefix("model.layers.").partition(".")
            stem = f"blk.{number}.{NAMES[part]}"
            n = heads.get(NAMES[part])
            if n:  # what llama.cpp's converter calls permute
                weight = weight.reshape(n, 2, weight.shape[0] // n // 2, -1).swapaxes(1, 2).reshape(weight.shape)
        else:
            stem = NAMES[stem]
        number_format = kind if weight.ndim == 2 else gguf.GGMLQuantizationType.F32
        data = gguf.quants.quantize(np.ascontiguousarray(weight), number_format)
        writer.add_tensor(f"{stem}.weight", data, raw_dtype=number_format)
    for name, weight in (extra or {}).items():
        writer.add_tensor(name, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
