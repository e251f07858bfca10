"""Qwen 3's mixtures of experts in Hugging Face's form: Qwen 3's tensors, and three for each expert."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from torch import Tensor

from ttutor.interop import llama
from ttutor.interop.families import Family, agree
from ttutor.interop.mixtral import expert_rules, split_experts
from ttutor.interop.qwen3 import norm_rules
from ttutor.interop.rules import Rule
from ttutor.variants.llama_kin import ExpertsConfig, Qwen3Experts

__all__ = ["FAMILY"]


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Qwen3Experts:
    """Our model with the sizes of their config."""
    agree(config, use_sliding_window=False, decoder_sparse_step=1, mlp_only_layers=[])
    sizes = {**llama.sizes(config), "d_ff": config["moe_intermediate_size"]}
    return Qwen3Experts(
        ExpertsConfig(
            **sizes,
            n_experts=config.get("num_experts") or config["num_local_experts"],
            n_chosen=config["num_experts_per_tok"],
            renormalise=config.get("norm_topk_prob", False),
        )
    )


def describe(model: Qwen3Experts) -> dict[str, Any]:
    """Their config of our model."""
    config = cast(ExpertsConfig, model.config)
    return {
        **llama.describe(model),
        "architectures": ["Qwen3MoeForCausalLM"],
        "moe_intermediate_size": config.d_ff,
        "num_experts": config.n_experts,
        "num_experts_per_tok": config.n_chosen,
        "norm_topk_prob": config.renormalise,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def rules(model: Qwen3Experts) -> Iterator[Rule]:
    """Which tensor is which."""
    yield from llama.rules_but_feed_forward(model)
    yield from norm_rules(model)
    yield from expert_rules(model, "mlp", llama.FEED_FORWARD)


def normalise(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The names that the files have."""
    return split_experts(llama.normalise(tensors), "mlp", llama.FEED_FORWARD)


FAMILY = Family("qwen3_moe", Qwen3Experts, build, describe, rules, normalise)
