"""Configs of decoder families in Hugging Face's form, from Llama to gpt-oss: a table of what each adds to Llama.

`TABLE` says for each family which entries of its config are which fields of ours, which fields it has besides, and
which entries must have the one value that our model supports. Read forwards the table loads a config, read backwards
it writes one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ttutor.errors import SettingError
from ttutor.interop.entries import OLDER, completed
from ttutor.interop.families import agree
from ttutor.interop.rotary import rotary_fields, written_rotary
from ttutor.variants.modern_decoder import ModernDecoderConfig

COMMON = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "head_dim": "d_head",
    "num_hidden_layers": "n_layers",
    "intermediate_size": "d_ff",
    "max_position_embeddings": "max_len",
    "rms_norm_eps": "norm_eps",
    "tie_word_embeddings": "tie_embeddings",
}
WINDOW = {"sliding_window": "window"}
GEMMA = {
    **WINDOW,
    "layer_types": "global_every",
    "query_pre_attn_scalar": "d_scale",
    "final_logit_softcapping": "logit_cap",
}
EXPERTS = {"num_experts_per_tok": "experts.n_chosen", "moe_intermediate_size": "experts.d_ff"}


@dataclass(frozen=True)
class Decoder:
    """One row of the table.

    Attributes:
        architecture: the class that a config names.
        entries: our fields by the names of their entries, besides `COMMON`; a dot leads into a part's own fields.
        parts: values of our fields that all models of the family have.
        demands: values of their entries besides ``attention_bias=False``, the only ones that our model supports.
        without: entries of `COMMON` that the family has not.
        gain_is_one_more: whether norms multiply by one more than their weight.
        mixture: what they call a layer's mixture of experts and the maps of an expert: gate, widen, narrow.
    """

    architecture: str
    entries: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)
    demands: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    gain_is_one_more: bool = False
    mixture: tuple[str, ...] = ("mlp", "gate_proj", "up_proj", "down_proj")


SILU = {"hidden_act": "silu"}
TABLE = {
    "llama": Decoder("LlamaForCausalLM", demands={**SILU, "mlp_bias": False}),
    "mistral": Decoder("MistralForCausalLM", WINDOW, demands=SILU),
    "mixtral": Decoder(
        "MixtralForCausalLM",
        {**WINDOW, "num_local_experts": "experts.n_experts", "num_experts_per_tok": "experts.n_chosen"},
        {"experts.d_ff": "d_ff"},
        demands=SILU,
        mixture=("block_sparse_moe", "w1", "w3", "w2"),
    ),
    "qwen3": Decoder("Qwen3ForCausalLM", parts={"qk_norm": "each head"}, demands={**SILU, "use_sliding_window": False}),
    "qwen3_moe": Decoder(
        "Qwen3MoeForCausalLM",
        {**EXPERTS, "num_experts": "experts.n_experts", "norm_topk_prob": "experts.renormalise"},
        {"qk_norm": "each head"},
        {**SILU, "use_sliding_window": False, "decoder_sparse_step": 1, "mlp_only_layers": []},
    ),
    "olmo2": Decoder(
        "Olmo2ForCausalLM",
        parts={"norm_place": "after", "qk_norm": "all heads"},
        demands=SILU,
        without=("head_dim",),
    ),
    "gemma2": Decoder(
        "Gemma2ForCausalLM",
        {**GEMMA, "attn_logit_softcapping": "score_cap"},
        {"norm_place": "both", "activation": "gelu_tanh", "scale_embeddings": True},
        {"hidden_activation": "gelu_pytorch_tanh", "use_bidirectional_attention": False},
        gain_is_one_more=True,
    ),
    "gemma3_text": Decoder(
        "Gemma3ForCausalLM",
        GEMMA,
        {"norm_place": "both", "qk_norm": "each head", "activation": "gelu_tanh", "scale_embeddings": True},
        {
            "hidden_activation": "gelu_pytorch_tanh",
            "use_bidirectional_attention": False,
            "attn_logit_softcapping": None,
        },
        gain_is_one_more=True,
    ),
    "deepseek_v3": Decoder(
        "DeepseekV3ForCausalLM",
        {
            **EXPERTS,
            "n_routed_experts": "experts.n_experts",
            "n_shared_experts": "experts.n_shared",
            "first_k_dense_replace": "experts.n_dense_layers",
            "routed_scaling_factor": "experts.factor",
            "n_group": "experts.n_groups",
            "topk_group": "experts.n_groups_chosen",
            "qk_nope_head_dim": "latent.d_head",
            "qk_rope_head_dim": "latent.d_rotary",
            "v_head_dim": "latent.d_value",
            "kv_lora_rank": "latent.d_latent",
            "q_lora_rank": "latent.d_query_latent",
        },
        {"experts.is_balanced": True},
        {**SILU, "norm_topk_prob": True, "rope_interleave": True},
        without=("num_key_value_heads", "head_dim"),
    ),
    "gpt_oss": Decoder(
        "GptOssForCausalLM",
        {
            **WINDOW,
            "layer_types": "global_every",
            "num_local_experts": "experts.n_experts",
            "num_experts_per_tok": "experts.n_chosen",
        },
        {"experts.d_ff": "d_ff", "experts.bias": True, "has_sinks": True, "attention_bias": True},
        {**SILU, "attention_bias": True, "swiglu_alpha": 1.702, "swiglu_limit": 7.0},
    ),
}
"""What each family adds to Llama, by what its config calls itself."""


# Configs


def read(config: Mapping[str, Any]) -> ModernDecoderConfig:
    """Our config for theirs."""
    family = TABLE[config["model_type"]]
    agree(config, **{"attention_bias": False, **family.demands}, **_derived(config))
    common = {theirs: ours for theirs, ours in COMMON.items() if theirs not in family.without}
    ours: dict[str, Any] = {}
    for theirs, name in {**common, **family.entries}.items():
        part, _, own = name.rpartition(".")
        place = ours.setdefault(part, {}) if part else ours
        place[own] = _value(config, theirs)
    for name, value in family.parts.items():
        part, _, own = name.rpartition(".")
        place = ours.setdefault(part, {}) if part else ours
        place[own] = ours["d_ff"] if value == "d_ff" else value
    return ModernDecoderConfig(**ours, **rotary_fields(config))


def _derived(config: Mapping[str, Any]) -> dict[str, Any]:
    """What entries that follow from others in some families have to be where they are given."""
    n_heads, expected = config["num_attention_heads"], {}
    if config["model_type"] == "deepseek_v3":
        d_rotary = config["qk_rope_head_dim"]
        expected = {"head_dim": d_rotary, "qk_head_dim": d_rotary + config["qk_nope_head_dim"]}
        expected |= {"num_key_value_heads": n_heads, **OLDER["deepseek_v3"]} | expected
    elif config["model_type"] == "olmo2":
        expected = {"head_dim": config["hidden_size"] // n_heads}
    elif config["model_type"] == "qwen3":
        expected = {"layer_types": ["full_attention"] * config["num_hidden_layers"]}
    return {name: value for name, value in expected.items() if config[name] is not None}


def _value(config: Mapping[str, Any], name: str) -> Any:
    """An entry, as our config has it."""
    value = config[name]
    if name == "layer_types":
        return _every(config)
    if value is None and name == "num_key_value_heads":
        return config["num_attention_heads"]
    if value is None and name == "head_dim":
        return config["hidden_size"] // config["num_attention_heads"]
    return value


def _every(config: Mapping[str, Any]) -> int | None:
    """Return n where every n-th layer has no window, or None where all have one."""
    default = config["sliding_window_pattern"] if config["model_type"] == "gemma3_text" else 2
    kinds = config["layer_types"] or _layer_types(config["num_hidden_layers"], default)
    every = kinds.index("full_attention") + 1 if "full_attention" in kinds else None
    if list(kinds) != _layer_types(len(kinds), every) or len(kinds) != config["num_hidden_layers"]:
        raise SettingError(f"layers without a window must come in an even step, but layer_types={kinds}")
    return every


def _layer_types(n_layers: int, every: int | None) -> list[str]:
    is_global = [every is not None and layer % every == 0 for layer in range(1, n_layers + 1)]
    return ["full_attention" if each else "sliding_attention" for each in is_global]


def write(model_type: str, config: ModernDecoderConfig) -> dict[str, Any]:
    """Their config of ours, as far as the family can say it."""
    family = TABLE[model_type]
    entries = {theirs: ours for theirs, ours in COMMON.items() if theirs not in family.without} | dict(family.entries)
    written: dict[str, Any] = {"model_type": model_type, "architectures": [family.architecture]}
    written |= {"hidden_act": "silu", "attention_bias": False, **family.demands}
    for theirs, ours in entries.items():
        part, _, own = ours.rpartition(".")
        written[theirs] = getattr(getattr(config, part) if part else config, own)
    written["num_key_value_heads"] = config.n_kv_heads or config.n_heads
    if "head_dim" in written:
        written["head_dim"] = config.d_head or config.d_model // config.n_heads
    if "layer_types" in family.entries:
        written["layer_types"] = _layer_types(config.n_layers, written["layer_types"])
    rotary = written_rotary(config)
    # For versions of transformers before 5, which read two entries instead of one.
    written |= {"rope_theta": config.rotary_base, "rope_scaling": rotary if config.rotary_scaling else None}
    if config.local_rotary_base is not None:
        near = {"rope_type": "default", "rope_theta": config.local_rotary_base}
        written["rope_parameters"] = {"full_attention": rotary, "sliding_attention": near}
    else:
        written["rope_parameters"] = rotary
    # Their defaults are marks of a family's own vocabulary, which another has not.
    return {**written, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


def family_of(config: ModernDecoderConfig) -> str:
    """The first family that can say all of a config: what it writes, it reads as the same."""
    nested = {part for part in ("experts", "latent") if getattr(config, part) is not None}
    for model_type, family in TABLE.items():
        names = [*family.entries.values(), *family.parts]
        has_parts = {name.partition(".")[0] for name in names if "." in name} == nested
        can_say_it = has_parts and (config.window is None or "window" in names)
        if can_say_it and _is_read_back(model_type, config):
            return model_type
    raise SettingError(f"none of {list(TABLE)} has just these parts: {config}")


def _is_read_back(model_type: str, config: ModernDecoderConfig) -> bool:
    """Whether what a family writes of a config says it all."""
    try:
        return _explicit(read(completed(write(model_type, config)))) == _explicit(config)
    except SettingError:  # it has to have what the config has not, such as a window
        return False


def _explicit(config: ModernDecoderConfig) -> ModernDecoderConfig:
    """The same config with what follows from other sizes written out."""
    if config.latent is not None:
        return config
    d_head = config.d_head or config.d_model // config.n_heads
    d_scale = config.d_scale or d_head
    return config.replace(n_kv_heads=config.n_kv_heads or config.n_heads, d_head=d_head, d_scale=d_scale)
