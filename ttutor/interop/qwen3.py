"""Qwen 3 in Hugging Face's form: Llama's tensors, and the gains of two norms in each layer."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from ttutor.interop import llama
from ttutor.interop.families import Family, agree
from ttutor.interop.rules import Rule, norm
from ttutor.variants.llama_kin import Qwen3, Qwen3Config

__all__ = ["FAMILY", "norm_rules"]


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Qwen3:
    """Our model with the sizes of their config."""
    agree(config, use_sliding_window=False)
    return Qwen3(Qwen3Config(**llama.sizes(config)))


def describe(model: Qwen3) -> dict[str, Any]:
    """Their config of our model."""
    return {**llama.describe(model), "architectures": ["Qwen3ForCausalLM"]}


def rules(model: Qwen3) -> Iterator[Rule]:
    """Which tensor is which."""
    yield from llama.rules(model)
    yield from norm_rules(model)


def norm_rules(model: Qwen3) -> Iterator[Rule]:
    """The norms of queries and keys in every layer."""
    for i in range(model.config.n_layers):
        theirs, ours = f"model.layers.{i}.self_attn", f"layers.{i}.self_attention"
        yield from norm(f"{theirs}.q_norm", f"{ours}.query_norm", bias=False)
        yield from norm(f"{theirs}.k_norm", f"{ours}.key_norm", bias=False)


FAMILY = Family("qwen3", Qwen3, build, describe, rules, llama.normalise)
