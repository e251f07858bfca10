"""ViT in Hugging Face's form: patches embedded by a convolution, in files under older names than in live modules."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from ttutor.interop.classes import class_names, n_classes
from ttutor.interop.families import ConfigError, Family, agree
from ttutor.interop.rules import Rule, linear, norm, rearranged, same
from ttutor.variants.heads import Pooler
from ttutor.variants.vit import VisionEncoder, ViT, ViTConfig

ARCHITECTURES: dict[str, type[nn.Module]] = {"ViTModel": VisionEncoder, "ViTForImageClassification": ViT}

# Version 5 of transformers renamed the modules, but goes on to write files with the names of version 4, as we do.
FILE_NAMES = {
    r"\blayers\.(\d+)": r"encoder.layer.\1",
    r"attention\.q_proj": "attention.attention.query",
    r"attention\.k_proj": "attention.attention.key",
    r"attention\.v_proj": "attention.attention.value",
    r"attention\.o_proj": "attention.output.dense",
    r"mlp\.fc1": "intermediate.dense",
    r"mlp\.fc2": "output.dense",
}


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> nn.Module:
    """Our model with the sizes of their config."""
    agree(config, hidden_act="gelu", qkv_bias=True, pooler_act="tanh", pooler_output_size=config["hidden_size"])
    named = config.get("architectures") or [None]
    if not isinstance(named, list) or len(named) != 1 or named[0] not in ARCHITECTURES:
        raise ConfigError(f"architectures must hold one of {list(ARCHITECTURES)}, but is {config.get('architectures')}")
    if type(config["image_size"]) is not int or type(config["patch_size"]) is not int:
        raise ConfigError(
            "images and patches must be square, their sizes single numbers, but "
            f"image_size={config['image_size']} and patch_size={config['patch_size']}"
        )
    sizes = ViTConfig(
        image_size=config["image_size"],
        patch_size=config["patch_size"],
        n_channels=config["num_channels"],
        n_classes=n_classes(config),
        d_model=config["hidden_size"],
        n_heads=config["num_attention_heads"],
        n_layers=config["num_hidden_layers"],
        d_ff=config["intermediate_size"],
        dropout=config.get("hidden_dropout_prob", 0.0),
        norm_eps=config["layer_norm_eps"],
    )
    if ARCHITECTURES[named[0]] is ViT:
        return ViT(sizes)
    return VisionEncoder(sizes, pooler=any(name.startswith("pooler.") for name in tensors))


def describe(model: ViT | VisionEncoder) -> dict[str, Any]:
    """Their config of our model."""
    config = model.config
    return {
        "architectures": ["ViTForImageClassification" if isinstance(model, ViT) else "ViTModel"],
        "image_size": config.image_size,
        "patch_size": config.patch_size,
        "num_channels": config.n_channels,
        "hidden_size": config.d_model,
        "num_attention_heads": config.n_heads,
        "num_hidden_layers": config.n_layers,
        "intermediate_size": config.d_ff,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": config.norm_eps,
        "hidden_act": "gelu",
        "qkv_bias": True,
        **class_names(config.n_classes),
    }


def rules(model: ViT | VisionEncoder) -> Iterator[Rule]:
    """Which tensor is which."""
    vision, theirs, ours = (model.vision, "vit.", "vision.") if isinstance(model, ViT) else (model, "", "")
    yield rearranged(
        f"{theirs}embeddings.cls_token", f"{ours}class_token", "1 1 d_model -> d_model", "d_model -> 1 1 d_model"
    )
    yield rearranged(
        f"{theirs}embeddings.position_embeddings",
        f"{ours}position.table.weight",
        "1 tokens d_model -> tokens d_model",
        "tokens d_model -> 1 tokens d_model",
    )
    projection = f"{theirs}embeddings.patch_embeddings.projection"
    yield rearranged(
        f"{projection}.weight",
        f"{ours}embed_patches.weight",
        "d_model channels height width -> d_model (channels height width)",
        "d_model (channels height width) -> d_model channels height width",
        height=model.config.patch_size,
        width=model.config.patch_size,
    )
    yield same(f"{projection}.bias", f"{ours}embed_patches.bias")
    for i in range(model.config.n_layers):
        yield from _layer(f"{theirs}encoder.layer.{i}", f"{ours}encoder.layers.{i}")
    yield from norm(f"{theirs}layernorm", f"{ours}encoder.final_norm")
    if isinstance(vision.pooler, Pooler):
        yield from linear(f"{theirs}pooler.dense", f"{ours}pooler.map")
    if isinstance(model, ViT):
        yield from linear("classifier", "classifier")


def _layer(theirs: str, ours: str) -> Iterator[Rule]:
    yield from norm(f"{theirs}.layernorm_before", f"{ours}.around_attention.norm")
    for part in ("query", "key", "value"):
        yield from linear(f"{theirs}.attention.attention.{part}", f"{ours}.self_attention.to_{part}")
    yield from linear(f"{theirs}.attention.output.dense", f"{ours}.self_attention.to_output")
    yield from norm(f"{theirs}.layernorm_after", f"{ours}.around_feed_forward.norm")
    yield from linear(f"{theirs}.intermediate.dense", f"{ours}.feed_forward.widen")
    yield from linear(f"{theirs}.output.dense", f"{ours}.feed_forward.narrow")


def normalise(tensors: dict[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Give the tensors of a live module the names they have in files."""
    renamed = {}
    for name, tensor in tensors.items():
        for pattern, replacement in FILE_NAMES.items():
            name = re.sub(pattern, replacement, name)
        renamed[name] = tensor
    return renamed


FAMILY = Family("vit", tuple(ARCHITECTURES.values()), build, describe, rules, normalise)
