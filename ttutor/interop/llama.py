"""Llama in Hugging Face's form, and Mistral, which is a Llama with a sliding window."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from torch import Tensor

from ttutor.interop.families import ConfigError, Family, agree
from ttutor.interop.rules import Rule, copied, linear, norm, same
from ttutor.positions import RotaryScaling
from ttutor.variants.llama import Llama, LlamaConfig


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Llama:
    """Our model with the sizes of their config."""
    return Llama(LlamaConfig(**sizes(config)))


def sizes(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of our config that theirs tells, for Llama and its kin."""
    agree(config, hidden_act="silu", attention_bias=False, mlp_bias=False)
    base, scaling = _rotary(config)
    return {
        "vocab_size": config["vocab_size"],
        "d_model": config["hidden_size"],
        "n_heads": config["num_attention_heads"],
        "n_kv_heads": config.get("num_key_value_heads") or config["num_attention_heads"],
        "d_head": config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
        "n_layers": config["num_hidden_layers"],
        "d_ff": config["intermediate_size"],
        "max_len": config["max_position_embeddings"],
        "norm_eps": config["rms_norm_eps"],
        "rotary_base": base,
        "rotary_scaling": scaling,
        "window": config.get("sliding_window") if config["model_type"] in ("mistral", "mixtral") else None,
        "tie_embeddings": config.get("tie_word_embeddings", False),
    }


def _rotary(config: Mapping[str, Any]) -> tuple[float, RotaryScaling | None]:
    """Base and scaling: since transformers 5 in one entry, before in two."""
    theirs = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(theirs, Mapping):
        raise ConfigError(f"rotary positions must be described by a JSON object, but by {theirs!r}")
    base = theirs.get("rope_theta", config.get("rope_theta", 10_000.0))
    kind = theirs.get("rope_type", theirs.get("type", "default"))
    if kind == "default":
        return base, None
    if kind == "linear":
        return base, RotaryScaling(factor=theirs["factor"])
    if kind == "llama3":
        return base, RotaryScaling(
            factor=theirs["factor"],
            trained_len=theirs["original_max_position_embeddings"],
            few_turns=theirs["low_freq_factor"],
            many_turns=theirs["high_freq_factor"],
        )
    raise ConfigError(f"the scaling of rotary positions must be one of default, linear, llama3, but is {kind!r}")


def describe(model: Llama) -> dict[str, Any]:
    """Their config of our model."""
    config = model.config
    rotary: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rotary_base}
    scaling = cast(RotaryScaling | None, config.rotary_scaling)  # a mapping was replaced when the config was made
    if scaling is not None:
        rotary |= {"rope_type": "linear", "factor": scaling.factor}
        if scaling.trained_len is not None:
            rotary |= {
                "rope_type": "llama3",
                "original_max_position_embeddings": scaling.trained_len,
                "low_freq_factor": scaling.few_turns,
                "high_freq_factor": scaling.many_turns,
            }
    family: dict[str, Any] = {"architectures": ["LlamaForCausalLM"]}
    if config.window is not None:
        family = {
            "model_type": "mistral",
            "architectures": ["MistralForCausalLM"],
            "sliding_window": config.window,
        }
    return {
        **family,
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_kv_heads or config.n_heads,
        "head_dim": config.d_head or config.d_model // config.n_heads,
        "num_hidden_layers": config.n_layers,
        "intermediate_size": config.d_ff,
        "max_position_embeddings": config.max_len,
        "rms_norm_eps": config.norm_eps,
        "rope_parameters": rotary,
        # For versions of transformers before 5, which read these two instead.
        "rope_theta": config.rotary_base,
        "rope_scaling": None if scaling is None else rotary,
        "hidden_act": "silu",
        "tie_word_embeddings": config.tie_embeddings,
        # Their defaults are Llama's own marks, which another vocabulary has not.
        "bos_token_id": None,
        "eos_token_id": None,
    }


def rules(model: Llama) -> Iterator[Rule]:
    """Which tensor is which."""
    yield from rules_but_feed_forward(model)
    for i in range(model.config.n_layers):
        for their_name, our_name in FEED_FORWARD.items():
            yield from linear(f"model.layers.{i}.mlp.{their_name}", f"layers.{i}.feed_forward.{our_name}", bias=False)


FEED_FORWARD = {"gate_proj": "gate", "up_proj": "widen", "down_proj": "narrow"}


def rules_but_feed_forward(model: Llama) -> Iterator[Rule]:
    """Which tensor is which, in all that Llama and its kin have in common."""
    yield same("model.embed_tokens.weight", "embedding.table.weight")
    for i in range(model.config.n_layers):
        theirs, ours = f"model.layers.{i}", f"layers.{i}"
        yield from norm(f"{theirs}.input_layernorm", f"{ours}.around_self_attention.norm", bias=False)
        yield from norm(f"{theirs}.post_attention_layernorm", f"{ours}.around_feed_forward.norm", bias=False)
        for their_name, our_name in [
            ("self_attn.q_proj", "self_attention.to_query"),
            ("self_attn.k_proj", "self_attention.to_key"),
            ("self_attn.v_proj", "self_attention.to_value"),
            ("self_attn.o_proj", "self_attention.to_output"),
        ]:
            yield from linear(f"{theirs}.{their_name}", f"{ours}.{our_name}", bias=False)
    yield from norm("model.norm", "final_norm", bias=False)
    if model.config.tie_embeddings:
        yield copied("lm_head.weight", "embedding.table.weight")
    else:
        yield same("lm_head.weight", "to_logits.weight")


def normalise(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Give the bare model's names their prefix; drop the rotary frequencies that older checkpoints hold as tensors."""
    bare = not any(name.startswith("model.") for name in tensors)
    named = {f"model.{name}" if bare and name != "lm_head.weight" else name: tensors[name] for name in tensors}
    return {name: tensor for name, tensor in named.items() if not name.endswith(".rotary_emb.inv_freq")}


FAMILY = Family("llama", Llama, build, describe, rules, normalise)
