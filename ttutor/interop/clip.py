"""CLIP in Hugging Face's form: two towers under the same names of layers, and the two maps to what they share."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from ttutor.errors import SettingError
from ttutor.interop.entries import completed
from ttutor.interop.families import Family, agree, choose
from ttutor.interop.rules import Rule, linear, norm, rearranged, same
from ttutor.variants.clip import CLIP, CLIPConfig
from ttutor.variants.gpt import GPTConfig
from ttutor.variants.vit import ViTConfig

ACTIVATIONS = {"quick_gelu": "quick_gelu", "gelu": "gelu"}
TOWER = {"hidden_size": "d_model", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}
TOWER |= {"intermediate_size": "d_ff"}
TEXT = {**TOWER, "vocab_size": "vocab_size", "max_position_embeddings": "max_len"}
VISION = {**TOWER, "image_size": "image_size", "patch_size": "patch_size", "num_channels": "n_channels"}
VISION |= {"layer_norm_eps": "norm_eps"}
PARTS = {"q_proj": "to_query", "k_proj": "to_key", "v_proj": "to_value", "out_proj": "to_output"}


def build(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> CLIP:
    """Our model with the sizes of their config."""
    text, vision = (_tower(config, tower) for tower in ("text", "vision"))
    agree(text, layer_norm_eps=1e-5)
    end_id = text["eos_token_id"]
    return CLIP(
        CLIPConfig(
            vision=ViTConfig(
                **{ours: vision[theirs] for theirs, ours in VISION.items()},
                activation=choose(vision, "hidden_act", ACTIVATIONS),
                norms_embeddings=True,
            ),
            text=GPTConfig(
                **{ours: text[theirs] for theirs, ours in TEXT.items()},
                activation=choose(text, "hidden_act", ACTIVATIONS),
                dropout=0.0,
            ),
            d_shared=config["projection_dim"],
            end_id=None if end_id == 2 else end_id,  # the first configs gave a wrong one
        )
    )


def _tower(config: Mapping[str, Any], tower: str) -> dict[str, Any]:
    """The config of one tower; older files give it in two entries, of which the second counts."""
    family, given, older = f"clip_{tower}_model", config[f"{tower}_config"] or {}, config[f"{tower}_config_dict"]
    return {
        **completed(given if older is None else {**given, **completed(older, family)}, family),
        "model_type": "clip",
    }


def describe(model: CLIP) -> dict[str, Any]:
    """Their config of our model."""
    config = model.config
    agree({"model_type": "clip", **config.text.to_dict()}, positions="learned")
    agree({"model_type": "clip", **config.vision.to_dict()}, norms_embeddings=True, is_distilled=False, n_registers=0)
    activations = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
    text = {theirs: getattr(config.text, ours) for theirs, ours in TEXT.items()}
    vision = {theirs: getattr(config.vision, ours) for theirs, ours in VISION.items()}
    if config.end_id == 2:
        raise SettingError(
            "transformers takes an end_id of 2 to mean the largest id of each text: give CLIP another one"
        )
    marks = {"bos_token_id": None, "eos_token_id": 2 if config.end_id is None else config.end_id, "pad_token_id": None}
    shared = {"projection_dim": config.d_shared}
    return {
        "architectures": ["CLIPModel"],
        **shared,
        "text_config": {**text, **marks, **shared, "hidden_act": activations[config.text.activation]},
        "vision_config": {**vision, **shared, "hidden_act": activations[config.vision.activation]},
    }


def rules(model: CLIP) -> Iterator[Rule]:
    """How Hugging Face's tensor names map to ours."""
    yield same("logit_scale", "log_scale")
    yield same("text_projection.weight", "from_text.weight")
    yield same("visual_projection.weight", "from_image.weight")
    yield same("text_model.embeddings.token_embedding.weight", "text.embeddings.token.table.weight")
    yield same("text_model.embeddings.position_embedding.weight", "text.embeddings.position.table.weight")
    for i in range(model.config.text.n_layers):
        yield from _layer(f"text_model.encoder.layers.{i}", f"text.decoder.layers.{i}", "around_self_attention")
    yield from norm("text_model.final_layer_norm", "text.decoder.final_norm")
    yield same("vision_model.embeddings.class_embedding", "vision.class_token")
    yield same("vision_model.embeddings.position_embedding.weight", "vision.position.table.weight")
    yield rearranged(
        "vision_model.embeddings.patch_embedding.weight",
        "vision.embed_patches.weight",
        "d_model channels height width -> d_model (channels height width)",
        "d_model (channels height width) -> d_model channels height width",
        height=model.config.vision.patch_size,
        width=model.config.vision.patch_size,
    )
    yield from norm("vision_model.pre_layrnorm", "vision.norm")
    for i in range(model.config.vision.n_layers):
        yield from _layer(f"vision_model.encoder.layers.{i}", f"vision.encoder.layers.{i}", "around_attention")
    yield from norm("vision_model.post_layernorm", "vision.encoder.final_norm")


def _layer(theirs: str, ours: str, around_attention: str) -> Iterator[Rule]:
    yield from norm(f"{theirs}.layer_norm1", f"{ours}.{around_attention}.norm")
    for their_name, our_name in PARTS.items():
        yield from linear(f"{theirs}.self_attn.{their_name}", f"{ours}.self_attention.{our_name}")
    yield from norm(f"{theirs}.layer_norm2", f"{ours}.around_feed_forward.norm")
    yield from linear(f"{theirs}.mlp.fc1", f"{ours}.feed_forward.widen")
    yield from linear(f"{theirs}.mlp.fc2", f"{ours}.feed_forward.narrow")


FAMILY = Family("clip", CLIP, build, describe, rules)
