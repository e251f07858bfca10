"""ModernBERT in Hugging Face's form: query, key and value in one tensor, and the gate with what it lets pass."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from ttutor.errors import SettingError
from ttutor.interop.families import Family, agree, architecture_of
from ttutor.interop.rules import Rule, copied, fused, same
from ttutor.variants.modern_bert import ModernBERT, ModernBERTConfig, ModernBERTForMaskedLM

ARCHITECTURES: dict[str, type[nn.Module]] = {
    "ModernBertModel": ModernBERT,
    "ModernBertForMaskedLM": ModernBERTForMaskedLM,
}
NAMES = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "intermediate_size": "d_ff",
    "max_position_embeddings": "max_len",
    "norm_eps": "norm_eps",
}
DEMANDS = {
    "hidden_activation": "gelu",
    "classifier_activation": "gelu",
    "attention_bias": False,
    "mlp_bias": False,
    "norm_bias": False,
    "classifier_bias": False,
    "decoder_bias": True,
    "tie_word_embeddings": True,
}
BASES = {
    "full_attention": ("global_rope_theta", 160_000.0),
    "sliding_attention": ("local_rope_theta", 10_000.0),
}
SPLIT = ("(parts d_out) d_in -> parts d_out d_in", "parts d_out d_in -> (parts d_out) d_in")


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> nn.Module:
    """Our model with the sizes of their config."""
    agree(config, **DEMANDS)
    kind = ARCHITECTURES[architecture_of(config, ARCHITECTURES)]
    if config["local_attention"] % 2:
        raise SettingError(f"near words must be as many on both sides, but local_attention={config['local_attention']}")
    agree(config, position_embedding_type="absolute")
    kinds = config["layer_types"] or _layer_types(config["num_hidden_layers"], config["global_attn_every_n_layers"])
    every = kinds.index("full_attention", 1) if "full_attention" in kinds[1:] else len(kinds)
    if kinds != _layer_types(len(kinds), every) or len(kinds) != config["num_hidden_layers"]:
        raise SettingError(f"layers that see everything must come in an even step, but layer_types={kinds}")
    bases = _bases(config)
    encoder = ModernBERT(
        ModernBERTConfig(
            **{ours: config[theirs] for theirs, ours in NAMES.items()},
            window=config["local_attention"] // 2 + 1,
            global_every=every,
            rotary_base=bases["full_attention"],
            local_rotary_base=bases["sliding_attention"],
        )
    )
    return encoder if kind is ModernBERT else ModernBERTForMaskedLM(encoder)


def _bases(config: Mapping[str, Any]) -> dict[str, float]:
    """The base of rotary positions in each kind of layer; older configs have an entry for each."""
    given, bases = config["rope_parameters"] or {}, {}
    if config["rope_scaling"] or given.keys() - BASES.keys():
        raise SettingError(
            f"rotary positions must be described for {' and '.join(BASES)}, and not be scaled, but came "
            f"rope_parameters={given}, rope_scaling={config['rope_scaling']}"
        )
    for kind, (older, default) in BASES.items():
        own = {"rope_type": "default", "rope_theta": config[older] or default, **(given.get(kind) or {})}
        if own.keys() != {"rope_type", "rope_theta"} or own["rope_type"] != "default":
            raise SettingError(f"rotary positions must not be scaled, but rope_parameters={given}")
        bases[kind] = float(own["rope_theta"])
    return bases


def _layer_types(n_layers: int, every: int) -> list[str]:
    return ["sliding_attention" if layer % every else "full_attention" for layer in range(n_layers)]


def describe(model: ModernBERT | ModernBERTForMaskedLM) -> dict[str, Any]:
    """Their config of our model."""
    config = model.config
    bases = {"full_attention": config.rotary_base, "sliding_attention": config.local_rotary_base}
    return {
        "architectures": [next(theirs for theirs, ours in ARCHITECTURES.items() if isinstance(model, ours))],
        **{theirs: getattr(config, ours) for theirs, ours in NAMES.items()},
        **DEMANDS,
        "local_attention": 2 * (config.window - 1),
        "layer_types": _layer_types(config.n_layers, config.global_every),
        "rope_parameters": {kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()},
        # Their defaults are marks of a vocabulary of their own.
        **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id", "cls_token_id", "sep_token_id")),
    }


def rules(model: ModernBERT | ModernBERTForMaskedLM) -> Iterator[Rule]:
    """How Hugging Face's tensor names map to ours."""
    theirs, ours = ("", "") if isinstance(model, ModernBERT) else ("model.", "encoder.")
    yield same(f"{theirs}embeddings.tok_embeddings.weight", f"{ours}embedding.table.weight")
    yield same(f"{theirs}embeddings.norm.weight", f"{ours}norm.gain")
    for i in range(model.config.n_layers):
        layer, own = f"{theirs}layers.{i}", f"{ours}layers.{i}"
        if i > 0:
            yield same(f"{layer}.attn_norm.weight", f"{own}.around_attention.norm.gain")
        parts = tuple(f"{own}.self_attention.to_{part}.weight" for part in ("query", "key", "value"))
        yield fused(f"{layer}.attn.Wqkv.weight", parts, *SPLIT)
        yield same(f"{layer}.attn.Wo.weight", f"{own}.self_attention.to_output.weight")
        yield same(f"{layer}.mlp_norm.weight", f"{own}.around_feed_forward.norm.gain")
        inward = (f"{own}.feed_forward.gate.weight", f"{own}.feed_forward.widen.weight")
        yield fused(f"{layer}.mlp.Wi.weight", inward, *SPLIT)
        yield same(f"{layer}.mlp.Wo.weight", f"{own}.feed_forward.narrow.weight")
    yield same(f"{theirs}final_norm.weight", f"{ours}final_norm.gain")
    if isinstance(model, ModernBERTForMaskedLM):
        yield same("head.dense.weight", "head.transform.weight")
        yield same("head.norm.weight", "head.norm.gain")
        yield same("decoder.bias", "head.to_logits.bias")
        yield copied("decoder.weight", "encoder.embedding.table.weight")


FAMILY = Family("modernbert", tuple(ARCHITECTURES.values()), build, describe, rules)
