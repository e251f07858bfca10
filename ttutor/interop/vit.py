"""ViT, DeiT and DINOv2 in Hugging Face's form: patches embedded by a convolution, in files under older names.

DeiT has a token that learned from a teacher and two classifiers; DINOv2 has scaled branches, with registers or without,
and no classifier.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from ttutor.errors import SettingError
from ttutor.interop.classes import class_names, n_classes
from ttutor.interop.families import Family, agree, architecture_of
from ttutor.interop.rules import Rule, linear, norm, rearranged, same
from ttutor.variants.heads import Pooler
from ttutor.variants.vit import DistilledViT, VisionEncoder, ViT, ViTConfig

NAMES = {
    "image_size": "image_size",
    "patch_size": "patch_size",
    "num_channels": "n_channels",
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "layer_norm_eps": "norm_eps",
}


@dataclass(frozen=True)
class Vision:
    """What one family calls things.

    Attributes:
        architectures: our class for each of theirs.
        names: of the two norms of a layer and the two maps of its feed-forward network.
        prefix: what stands before the encoder's tensors where a classifier stands beside it.
        demands: entries of the config that must have one value.
    """

    architectures: Mapping[str, type[nn.Module]]
    names: tuple[str, str, str, str] = ("layernorm_before", "layernorm_after", "intermediate.dense", "output.dense")
    prefix: str = ""
    demands: Mapping[str, Any] = field(default_factory=dict)


DINO_NAMES = ("norm1", "norm2", "mlp.fc1", "mlp.fc2")
DINO = {"use_swiglu_ffn": False, "drop_path_rate": 0.0}
TABLE = {
    "vit": Vision({"ViTModel": VisionEncoder, "ViTForImageClassification": ViT}, prefix="vit."),
    "deit": Vision({"DeiTModel": VisionEncoder, "DeiTForImageClassificationWithTeacher": DistilledViT}, prefix="deit."),
    "dinov2": Vision({"Dinov2Model": VisionEncoder}, DINO_NAMES, demands=DINO),
    "dinov2_with_registers": Vision({"Dinov2WithRegistersModel": VisionEncoder}, DINO_NAMES, demands=DINO),
}

# Version 5 of transformers renamed the modules, but goes on to write files with the names of version 4, as we do.
FILE_NAMES = {
    r"\blayers\.(\d+)": r"encoder.layer.\1",
    r"attention\.q_proj": "attention.attention.query",
    r"attention\.k_proj": "attention.attention.key",
    r"attention\.v_proj": "attention.attention.value",
    r"attention\.o_proj": "attention.output.dense",
}


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> nn.Module:
    """Our model with the sizes of their config."""
    family = TABLE[config["model_type"]]
    agree(config, hidden_act="gelu", qkv_bias=True, pooler_act="tanh", **family.demands)
    if config.get("pooler_output_size") is not None:
        agree(config, pooler_output_size=config["hidden_size"])
    kind = family.architectures[architecture_of(config, family.architectures)]
    if type(config["image_size"]) is not int or type(config["patch_size"]) is not int:
        raise SettingError(
            "images and patches must be square, their sizes single numbers, but "
            f"image_size={config['image_size']} and patch_size={config['patch_size']}"
        )
    is_dino = family.names == DINO_NAMES
    sizes = ViTConfig(
        **{ours: config[theirs] for theirs, ours in NAMES.items()},
        n_classes=n_classes(config),
        d_ff=int(config["hidden_size"] * config["mlp_ratio"]) if is_dino else config["intermediate_size"],
        dropout=config["hidden_dropout_prob"],
        is_distilled=config["model_type"] == "deit",
        n_registers=config["num_register_tokens"] if config["model_type"] == "dinov2_with_registers" else 0,
        layer_scale=float(config["layerscale_value"]) if is_dino else None,
    )
    if kind is not VisionEncoder:
        return kind(sizes)
    return VisionEncoder(sizes, pooler=any(name.startswith("pooler.") for name in tensors))


def family_of(config: ViTConfig) -> str:
    """What the family is called that has these parts."""
    if config.layer_scale is None and not config.n_registers:
        return "deit" if config.is_distilled else "vit"
    if config.layer_scale is None or config.is_distilled or config.d_ff % config.d_model:
        raise SettingError(f"none of {list(TABLE)} has just these parts: {config}")
    return "dinov2_with_registers" if config.n_registers else "dinov2"


def describe(model: ViT | DistilledViT | VisionEncoder) -> dict[str, Any]:
    """Their config of our model."""
    config = model.config
    model_type = family_of(config)
    family = TABLE[model_type]
    named = [theirs for theirs, ours in family.architectures.items() if type(model) is ours]
    if not named:
        raise SettingError(f"{model_type} has no {type(model).__name__}; there are {list(family.architectures)}")
    described = {
        "model_type": model_type,
        "architectures": named,
        **{theirs: getattr(config, ours) for theirs, ours in NAMES.items()},
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": 0.0,
        "hidden_act": "gelu",
        "qkv_bias": True,
        **class_names(config.n_classes),
        **family.demands,
    }
    if family.names != DINO_NAMES:
        return {**described, "intermediate_size": config.d_ff}
    own = {"mlp_ratio": config.d_ff // config.d_model, "layerscale_value": config.layer_scale}
    return {**described, **own, **({"num_register_tokens": config.n_registers} if config.n_registers else {})}


def rules(model: ViT | DistilledViT | VisionEncoder) -> Iterator[Rule]:
    """How Hugging Face's tensor names map to ours."""
    config, family = model.config, TABLE[family_of(model.config)]
    is_alone = isinstance(model, VisionEncoder)
    vision: Any = model if is_alone else model.vision
    theirs, ours = ("", "") if is_alone else (family.prefix, "vision.")
    token = ("1 1 d_model -> d_model", "d_model -> 1 1 d_model")
    yield rearranged(f"{theirs}embeddings.cls_token", f"{ours}class_token", *token)
    if config.is_distilled:
        yield rearranged(f"{theirs}embeddings.distillation_token", f"{ours}distillation_token", *token)
    table = ("1 tokens d_model -> tokens d_model", "tokens d_model -> 1 tokens d_model")
    if config.n_registers:
        yield rearranged(f"{theirs}embeddings.register_tokens", f"{ours}registers", *table)
    yield rearranged(f"{theirs}embeddings.position_embeddings", f"{ours}position.table.weight", *table)
    projection = f"{theirs}embeddings.patch_embeddings.projection"
    yield rearranged(
        f"{projection}.weight",
        f"{ours}embed_patches.weight",
        "d_model channels height width -> d_model (channels height width)",
        "d_model (channels height width) -> d_model channels height width",
        height=config.patch_size,
        width=config.patch_size,
    )
    yield same(f"{projection}.bias", f"{ours}embed_patches.bias")
    for i in range(config.n_layers):
        yield from _layer(f"{theirs}encoder.layer.{i}", f"{ours}encoder.layers.{i}", family.names)
    yield from norm(f"{theirs}layernorm", f"{ours}encoder.final_norm")
    if isinstance(vision.pooler, Pooler):
        yield from linear(f"{theirs}pooler.dense", f"{ours}pooler.map")
    if isinstance(model, ViT):
        yield from linear("classifier", "classifier")
    if isinstance(model, DistilledViT):
        yield from linear("cls_classifier", "classifier")
        yield from linear("distillation_classifier", "distilled_classifier")


def _layer(theirs: str, ours: str, names: tuple[str, str, str, str]) -> Iterator[Rule]:
    before_attention, before_feed_forward, widen, narrow = names
    yield from norm(f"{theirs}.{before_attention}", f"{ours}.around_attention.norm")
    for part in ("query", "key", "value"):
        yield from linear(f"{theirs}.attention.attention.{part}", f"{ours}.self_attention.to_{part}")
    yield from linear(f"{theirs}.attention.output.dense", f"{ours}.self_attention.to_output")
    yield from norm(f"{theirs}.{before_feed_forward}", f"{ours}.around_feed_forward.norm")
    yield from linear(f"{theirs}.{widen}", f"{ours}.feed_forward.widen")
    yield from linear(f"{theirs}.{narrow}", f"{ours}.feed_forward.narrow")
    if names == DINO_NAMES:
        yield same(f"{theirs}.layer_scale1.lambda1", f"{ours}.around_attention.factor")
        yield same(f"{theirs}.layer_scale2.lambda1", f"{ours}.around_feed_forward.factor")


def normalise(tensors: dict[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Give the tensors of a live module the names they have in files; drop the token that hides patches in training."""
    own = dict(zip((r"mlp\.fc1", r"mlp\.fc2"), TABLE[config["model_type"]].names[2:], strict=True))
    renamed = {}
    for name, tensor in tensors.items():
        for pattern, replacement in {**FILE_NAMES, **own}.items():
            name = re.sub(pattern, replacement, name)
        if name != "embeddings.mask_token":
            renamed[name] = tensor
    return renamed


FAMILY = Family("vit", (ViT, DistilledViT, VisionEncoder), build, describe, rules, normalise)
