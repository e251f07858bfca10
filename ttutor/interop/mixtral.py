"""Mixtral in Hugging Face's form: Llama's tensors, and three for each expert."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from torch import Tensor

from ttutor.interop import llama
from ttutor.interop.families import Family
from ttutor.interop.rules import Rule, linear
from ttutor.variants.llama_kin import ExpertsConfig, Mixtral, Qwen3Experts

__all__ = ["FAMILY", "expert_rules", "split_experts"]

EXPERT = {"w1": "gate", "w3": "widen", "w2": "narrow"}


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Mixtral:
    """Our model with the sizes of their config."""
    chosen = {"n_experts": config["num_local_experts"], "n_chosen": config["num_experts_per_tok"]}
    return Mixtral(ExpertsConfig(**llama.sizes(config), **chosen))


def describe(model: Mixtral) -> dict[str, Any]:
    """Their config of our model."""
    config = cast(ExpertsConfig, model.config)
    return {
        **llama.describe(model),
        "model_type": "mixtral",  # with a window it would be Mistral's
        "architectures": ["MixtralForCausalLM"],
        "num_local_experts": config.n_experts,
        "num_experts_per_tok": config.n_chosen,
        "sliding_window": config.window,
    }


def rules(model: Mixtral) -> Iterator[Rule]:
    """Which tensor is which."""
    yield from llama.rules_but_feed_forward(model)
    yield from expert_rules(model, "block_sparse_moe", EXPERT)


def expert_rules(model: Mixtral | Qwen3Experts, block: str, names: Mapping[str, str]) -> Iterator[Rule]:
    """The router and the experts of every layer.

    Args:
        model: ours.
        block: what they call the mixture.
        names: our name of each map of an expert, by theirs.
    """
    for i in range(model.config.n_layers):
        theirs, ours = f"model.layers.{i}.{block}", f"layers.{i}.feed_forward"
        yield from linear(f"{theirs}.gate", f"{ours}.router.to_scores", bias=False)
        for e in range(cast(ExpertsConfig, model.config).n_experts):
            for their_name, our_name in names.items():
                yield from linear(f"{theirs}.experts.{e}.{their_name}", f"{ours}.experts.{e}.{our_name}", bias=False)


def split_experts(tensors: dict[str, Tensor], block: str, names: Mapping[str, str]) -> dict[str, Tensor]:
    """A model in memory holds the experts of a layer in two tensors; give each expert its three, as in the files."""
    gate, widen, narrow = names
    apart: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        prefix, _, last = name.replace(".mlp.", f".{block}.").rpartition(".")
        if last == "gate_up_proj" and tensor.ndim == 3:
            for e, both in enumerate(tensor):
                apart[f"{prefix}.{e}.{gate}.weight"], apart[f"{prefix}.{e}.{widen}.weight"] = both.chunk(2)
        elif last == "down_proj" and tensor.ndim == 3:
            for e, of_expert in enumerate(tensor):
                apart[f"{prefix}.{e}.{narrow}.weight"] = of_expert
        else:
            apart[f"{prefix}.{last}" if prefix else last] = tensor
    return apart


def normalise(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The names that the files have."""
    return split_experts(llama.normalise(tensors), "block_sparse_moe", EXPERT)


FAMILY = Family("mixtral", Mixtral, build, describe, rules, normalise)
