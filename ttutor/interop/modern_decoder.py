"""Decoder families in Hugging Face's form, from Llama to gpt-oss: the tensors that follow from a config's parts."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch
from einops import rearrange
from torch import Tensor

from ttutor.interop.decoder_configs import TABLE, family_of, read, write
from ttutor.interop.families import Family
from ttutor.interop.rules import Rule, copied, fused, linear, same
from ttutor.transformer.blueprint import Latent
from ttutor.variants.modern_decoder import ExpertsConfig, ModernDecoder


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> ModernDecoder:
    """Our model with the sizes and parts of their config."""
    return ModernDecoder(read(config))


def describe(model: ModernDecoder) -> dict[str, Any]:
    """Their config of our model."""
    return write(family_of(model.config), model.config)


NORMS = {
    "before": {
        "input_layernorm": "around_self_attention.norm",
        "post_attention_layernorm": "around_feed_forward.norm",
    },
    "after": {
        "post_attention_layernorm": "around_self_attention.output_norm",
        "post_feedforward_layernorm": "around_feed_forward.output_norm",
    },
    "both": {
        "input_layernorm": "around_self_attention.norm",
        "post_attention_layernorm": "around_self_attention.output_norm",
        "pre_feedforward_layernorm": "around_feed_forward.norm",
        "post_feedforward_layernorm": "around_feed_forward.output_norm",
    },
}
ATTENTION = {"q_proj": "to_query", "k_proj": "to_key", "v_proj": "to_value", "o_proj": "to_output"}
NETWORK = ("gate", "widen", "narrow")


def rules(model: ModernDecoder) -> Iterator[Rule]:
    """How Hugging Face's tensor names map to ours."""
    config = model.config
    model_type = family_of(config)
    gain = _gain_of_one_more if TABLE[model_type].gain_is_one_more else _gain
    yield same("model.embed_tokens.weight", "embedding.table.weight")
    for number in range(config.n_layers):
        theirs, ours = f"model.layers.{number}", f"layers.{number}"
        for their_name, our_name in NORMS[config.norm_place].items():
            yield gain(f"{theirs}.{their_name}", f"{ours}.{our_name}")
        if isinstance(config.latent, Latent):
            yield from _latent(f"{theirs}.self_attn", f"{ours}.self_attention", config.n_heads, config.latent)
        else:
            for their_name, our_name in ATTENTION.items():
                names = f"{theirs}.self_attn.{their_name}", f"{ours}.self_attention.{our_name}"
                yield from linear(*names, bias=config.attention_bias)
        if config.qk_norm is not None:
            for their_name, our_name in {"q_norm": "query_norm", "k_norm": "key_norm"}.items():
                inner = ".norm" if config.qk_norm == "all heads" else ""
                yield gain(f"{theirs}.self_attn.{their_name}", f"{ours}.self_attention.{our_name}{inner}")
        if config.has_sinks:
            yield same(f"{theirs}.self_attn.sinks", f"{ours}.self_attention.attend.sinks")
        experts = cast(ExpertsConfig | None, config.experts)
        if experts is None or number < experts.n_dense_layers:
            yield from _network(f"{theirs}.mlp", TABLE["llama"].mixture, f"{ours}.feed_forward")
        else:
            yield from _mixture(theirs, f"{ours}.feed_forward", TABLE[model_type].mixture, experts)
    yield gain("model.norm", "final_norm")
    if config.tie_embeddings:
        yield copied("lm_head.weight", "embedding.table.weight")
    else:
        yield same("lm_head.weight", "to_logits.weight")


def _gain(theirs: str, ours: str) -> Rule:
    return same(f"{theirs}.weight", f"{ours}.gain")


def _gain_of_one_more(theirs: str, ours: str) -> Rule:
    return Rule((f"{theirs}.weight",), (f"{ours}.gain",), lambda weight: (weight + 1,), lambda gain: (gain - 1,))


def _network(theirs: str, names: tuple[str, ...], ours: str) -> Iterator[Rule]:
    """The three maps of a gated network."""
    for their_name, our_name in zip(names[1:], NETWORK, strict=True):
        yield from linear(f"{theirs}.{their_name}", f"{ours}.{our_name}", bias=False)


def _mixture(theirs: str, ours: str, names: tuple[str, ...], experts: ExpertsConfig) -> Iterator[Rule]:
    """The router and the experts of one layer."""
    theirs = f"{theirs}.{names[0]}"
    yield from linear(f"{theirs}.{'router' if experts.bias else 'gate'}", f"{ours}.router.to_scores", bias=experts.bias)
    if experts.is_balanced:
        yield same(f"{theirs}.gate.e_score_correction_bias", f"{ours}.router.bias")
    if experts.n_shared:
        yield from _network(f"{theirs}.shared_experts", names, f"{ours}.shared")
    if not experts.bias:
        for number in range(experts.n_experts):
            yield from _network(f"{theirs}.experts.{number}", names, f"{ours}.experts.{number}")
        return
    for kind in ("weight", "bias"):  # gpt-oss holds all experts in one tensor, its maps from the left
        inward = tuple(f"{ours}.experts.{i}.{name}.{kind}" for i in range(experts.n_experts) for name in NETWORK[:2])
        outward = tuple(f"{ours}.experts.{i}.narrow.{kind}" for i in range(experts.n_experts))
        suffix, d_in, d_out = ("", " d_in", " d_out") if kind == "weight" else ("_bias", "", " d_out")
        yield fused(
            f"{theirs}.experts.gate_up_proj{suffix}",
            inward,
            f"experts{d_in} (d_out two) -> (experts two){d_out}{d_in}",
            f"(experts two){d_out}{d_in} -> experts{d_in} (d_out two)",
            two=2,
        )
        yield fused(
            f"{theirs}.experts.down_proj{suffix}",
            outward,
            f"experts{d_in} d_out -> experts{d_out}{d_in}",
            f"experts{d_out}{d_in} -> experts{d_in} d_out",
        )


def _latent(theirs: str, ours: str, n_heads: int, widths: Latent) -> Iterator[Rule]:
    """Latent attention: two of their tensors hold two of ours each, one after the other or head by head."""
    if widths.d_query_latent is None:
        yield same(f"{theirs}.q_proj.weight", f"{ours}.to_query.weight")
    else:
        yield same(f"{theirs}.q_a_proj.weight", f"{ours}.to_query_latent.0.weight")
        yield _gain(f"{theirs}.q_a_layernorm", f"{ours}.to_query_latent.1")
        yield same(f"{theirs}.q_b_proj.weight", f"{ours}.to_query.weight")
    yield _gain(f"{theirs}.kv_a_layernorm", f"{ours}.to_latent.1")
    yield same(f"{theirs}.o_proj.weight", f"{ours}.to_output.weight")
    yield _side_by_side(
        f"{theirs}.kv_a_proj_with_mqa.weight",
        {f"{ours}.to_latent.0.weight": widths.d_latent, f"{ours}.to_rotary_key.weight": widths.d_rotary},
        1,
    )
    yield _side_by_side(
        f"{theirs}.kv_b_proj.weight",
        {f"{ours}.to_key.weight": widths.d_head, f"{ours}.to_value.weight": widths.d_value},
        n_heads,
    )


def _side_by_side(theirs: str, widths: Mapping[str, int], n_heads: int) -> Rule:
    """One weight whose rows are, in each head, those of several of ours."""
    split, merge = "(heads width) d_in -> heads width d_in", "heads width d_in -> (heads width) d_in"

    def forwards(weight: Tensor) -> tuple[Tensor, ...]:
        by_head = rearrange(weight, split, heads=n_heads, width=sum(widths.values()))
        return tuple(rearrange(part, merge) for part in by_head.split(list(widths.values()), dim=1))

    def backwards(*weights: Tensor) -> tuple[Tensor, ...]:
        by_head = [rearrange(weight, split, heads=n_heads) for weight in weights]
        return (rearrange(torch.cat(by_head, dim=1), merge),)

    return Rule((theirs,), tuple(widths), forwards, backwards)


def normalise(tensors: dict[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """The names that files have: the bare model's get a prefix, a live model's experts three tensors each.

    Dropped are the rotary frequencies that older checkpoints hold, and layers after the last, which predict a token
    further ahead (DeepSeek-V3).
    """
    bare = not any(name.startswith("model.") for name in tensors)
    named = {f"model.{name}" if bare and name != "lm_head.weight" else name: tensors[name] for name in tensors}
    beyond = f"model.layers.{config.get('num_hidden_layers')}."
    mixture, *maps = TABLE[config["model_type"]].mixture
    apart: dict[str, Tensor] = {}
    for name, tensor in named.items():
        stem, _, last = name.replace(".mlp.", f".{mixture}.").rpartition(".")
        if name.endswith(".rotary_emb.inv_freq") or name.startswith(beyond):
            continue
        if config["model_type"] == "gpt_oss" or not stem.endswith(".experts"):
            apart[f"{stem}.{last}" if stem else last] = tensor
            continue
        for number, of_expert in enumerate(tensor):
            parts = of_expert.chunk(2) if last == "gate_up_proj" else (of_expert,)
            own = maps[:2] if last == "gate_up_proj" else maps[2:]
            apart |= {f"{stem}.{number}.{each}.weight": part for each, part in zip(own, parts, strict=True)}
    return apart


FAMILY = Family("llama", ModernDecoder, build, describe, rules, normalise)
