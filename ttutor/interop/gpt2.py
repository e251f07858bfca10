"""GPT-2 in Hugging Face's form: linear maps stored transposed, query, key and value in one tensor."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from ttutor.interop.families import Family, agree, choose
from ttutor.interop.rules import Rule, copied, fused, norm, rearranged, same
from ttutor.variants.gpt import GPT, GPTConfig

ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}
NAMES = {
    "vocab_size": "vocab_size",
    "n_embd": "d_model",
    "n_head": "n_heads",
    "n_layer": "n_layers",
    "n_positions": "max_len",
}
TO_OURS, TO_THEIRS = "d_in d_out -> d_out d_in", "d_out d_in -> d_in d_out"


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> GPT:
    """Our model with the sizes of their config."""
    agree(
        config,
        add_cross_attention=False,
        scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=False,
        layer_norm_epsilon=1e-5,
    )
    return GPT(
        GPTConfig(
            **{ours: config[theirs] for theirs, ours in NAMES.items()},
            d_ff=config["n_inner"] or 4 * config["n_embd"],
            dropout=config["resid_pdrop"],
            activation=choose(config, "activation_function", ACTIVATIONS),
            tie_embeddings=config["tie_word_embeddings"],
        )
    )


def describe(model: GPT) -> dict[str, Any]:
    """Their config of our model."""
    config = model.config
    agree({"model_type": "gpt2", **config.to_dict()}, positions="learned")
    return {
        "architectures": ["GPT2LMHeadModel"],
        **{theirs: getattr(config, ours) for theirs, ours in NAMES.items()},
        "n_inner": config.d_ff,
        "activation_function": {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}[config.activation],
        "tie_word_embeddings": config.tie_embeddings,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": 0.0,
        # Their defaults are GPT-2's own marks, which another vocabulary has not.
        "bos_token_id": None,
        "eos_token_id": None,
    }


def rules(model: GPT) -> Iterator[Rule]:
    """How Hugging Face's tensor names map to ours."""
    yield same("transformer.wte.weight", "embeddings.token.table.weight")
    yield same("transformer.wpe.weight", "embeddings.position.table.weight")
    for i in range(model.config.n_layers):
        theirs, ours = f"transformer.h.{i}", f"decoder.layers.{i}"
        yield from norm(f"{theirs}.ln_1", f"{ours}.around_self_attention.norm")
        names = [f"{ours}.self_attention.to_{part}" for part in ("query", "key", "value")]
        yield fused(
            f"{theirs}.attn.c_attn.weight",
            tuple(f"{name}.weight" for name in names),
            "d_in (parts d_out) -> parts d_out d_in",
            "parts d_out d_in -> d_in (parts d_out)",
        )
        yield fused(
            f"{theirs}.attn.c_attn.bias",
            tuple(f"{name}.bias" for name in names),
            "(parts d_out) -> parts d_out",
            "parts d_out -> (parts d_out)",
        )
        yield from _transposed(f"{theirs}.attn.c_proj", f"{ours}.self_attention.to_output")
        yield from norm(f"{theirs}.ln_2", f"{ours}.around_feed_forward.norm")
        yield from _transposed(f"{theirs}.mlp.c_fc", f"{ours}.feed_forward.widen")
        yield from _transposed(f"{theirs}.mlp.c_proj", f"{ours}.feed_forward.narrow")
    yield from norm("transformer.ln_f", "decoder.final_norm")
    if model.config.tie_embeddings:
        yield copied("lm_head.weight", "embeddings.token.table.weight")
    else:
        yield same("lm_head.weight", "to_logits.weight")


def _transposed(theirs: str, ours: str) -> Iterator[Rule]:
    yield rearranged(f"{theirs}.weight", f"{ours}.weight", TO_OURS, TO_THEIRS)
    yield same(f"{theirs}.bias", f"{ours}.bias")


def normalise(tensors: dict[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Give the bare model's names their prefix; drop the causal masks that older checkpoints hold as tensors."""
    bare = not any(name.startswith("transformer.") for name in tensors)
    named = {f"transformer.{name}" if bare and name != "lm_head.weight" else name: tensors[name] for name in tensors}
    return {name: tensor for name, tensor in named.items() if not name.endswith((".attn.bias", ".attn.masked_bias"))}


FAMILY = Family("gpt2", GPT, build, describe, rules, normalise)
