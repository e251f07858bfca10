"""Rotary positions in Hugging Face's words: a base, and how the turning is slowed for longer texts."""

from collections.abc import Mapping
from typing import Any

from ttutor.errors import SettingError
from ttutor.interop.families import agree
from ttutor.positions import RotaryScaling
from ttutor.positions.scaling import YarnScaling
from ttutor.variants.modern_decoder import ModernDecoderConfig

BASES = {"mixtral": 1e6, "gpt_oss": 150_000.0, "gemma3_text": 1e6}
"""The base of rotary positions where a config gives none, if it is not 10,000."""
GPT_OSS_YARN = {
    "rope_type": "yarn",
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}
SCALINGS = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
    "yarn": (
        "factor",
        "original_max_position_embeddings",
        "beta_fast",
        "beta_slow",
        "truncate",
        "attention_factor",
        "mscale",
        "mscale_all_dim",
    ),
}
"""What describes each kind of rotary positions besides its base."""


def rotary_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Bases and scaling: since transformers 5 in one entry, before in several, which win where they are given."""
    given, older = config["rope_parameters"] or {}, config["rope_scaling"] or {}
    for entry in (given, older):
        if not isinstance(entry, Mapping):
            raise SettingError(f"rotary positions must be described by a JSON object, but by {entry!r}")
    local: dict[str, Any] = {}
    if config["model_type"] == "gemma3_text":  # one for each kind of layer
        if strangers := given.keys() - {"full_attention", "sliding_attention"}:
            raise SettingError(f"rope_parameters must be given for each kind of layer, but has {sorted(strangers)}")
        near = {"rope_theta": config["rope_local_base_freq"] or 10_000.0, **(given.get("sliding_attention") or {})}
        if near.get("rope_type", "default") != "default" or near.keys() - {"rope_type", "rope_theta"}:
            raise SettingError(f"in layers with a window rotary positions are not scaled, but came {near}")
        local = {"local_rotary_base": near["rope_theta"]}
        theirs = {**(given.get("full_attention") or {}), **older}
    else:
        theirs = older or given or (GPT_OSS_YARN if config["model_type"] == "gpt_oss" else {})
    base = theirs.get("rope_theta", config["rope_theta"] or BASES.get(config["model_type"], 10_000.0))
    kind = theirs.get("rope_type", theirs.get("type", "default"))
    if kind not in SCALINGS:
        raise SettingError(f"the scaling of rotary positions must be one of {', '.join(SCALINGS)}: {kind!r}")
    if strangers := theirs.keys() - {"rope_type", "type", "rope_theta", *SCALINGS[kind]}:
        raise SettingError(f"rotary positions of the kind {kind!r} have no {', '.join(sorted(strangers))}")
    scaling = _scaling(config, {"original_max_position_embeddings": config["max_position_embeddings"], **theirs}, base)
    return {"rotary_base": base, **({} if scaling is None else {"rotary_scaling": scaling}), **local}


def _scaling(config: Mapping[str, Any], theirs: Mapping[str, Any], base: float) -> RotaryScaling | YarnScaling | None:
    """How the turning is slowed, if it is."""
    kind = theirs.get("rope_type", theirs.get("type", "default"))
    if kind == "linear":
        return RotaryScaling(factor=theirs["factor"])
    if kind == "llama3":
        return RotaryScaling(
            factor=theirs["factor"],
            trained_len=theirs["original_max_position_embeddings"],
            few_turns=theirs["low_freq_factor"],
            many_turns=theirs["high_freq_factor"],
        )
    if kind == "default":
        return None
    agree({"model_type": config["model_type"], **theirs}, attention_factor=None)
    if theirs.get("mscale") != theirs.get("mscale_all_dim") or (
        config["model_type"] == "deepseek_v3" and theirs.get("mscale_all_dim") != 1
    ):
        raise SettingError(f"YaRN must sharpen the softmax as its paper says, mscale and mscale_all_dim 1: {theirs}")
    return YarnScaling(
        factor=theirs["factor"],
        trained_len=theirs["original_max_position_embeddings"],
        few_turns=theirs.get("beta_slow") or 1.0,
        many_turns=theirs.get("beta_fast") or 32.0,
        base=base,
        in_whole_pairs=theirs.get("truncate", True),
    )


def written_rotary(config: ModernDecoderConfig) -> dict[str, Any]:
    """Base and scaling in their words."""
    written: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rotary_base}
    scaling = config.rotary_scaling
    if isinstance(scaling, YarnScaling):
        written |= {"rope_type": "yarn", "factor": scaling.factor, "truncate": scaling.in_whole_pairs}
        written |= {"original_max_position_embeddings": scaling.trained_len, "mscale": 1.0, "mscale_all_dim": 1.0}
        written |= {"beta_slow": scaling.few_turns, "beta_fast": scaling.many_turns}
        if config.latent is None:  # there the factor is said by how the other families leave it out
            del written["mscale"], written["mscale_all_dim"]
    elif isinstance(scaling, RotaryScaling):
        written |= {"rope_type": "linear", "factor": scaling.factor}
        if scaling.trained_len is not None:
            written |= {"rope_type": "llama3", "original_max_position_embeddings": scaling.trained_len}
            written |= {"low_freq_factor": scaling.few_turns, "high_freq_factor": scaling.many_turns}
    return written
