"""Read a ViT, ours or Hugging Face's, for the explorer of patches: what it saw, attended to and answered."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from einops import rearrange, reduce
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.inside import capture
from ttutor.variants.vit import VisionEncoder, ViT

__all__ = ["ReadViT", "position_similarity", "read_vit"]


@dataclass(frozen=True, eq=False)
class ReadViT:
    """What a ViT did with one image.

    Attributes:
        image: for the eye, between 0 and 1.
        patch_size: of the model, in pixels.
        attention: averaged over heads; the class token comes first.
        positions: cosine similarity of the position embeddings.
        probabilities: of the classes by name; None without a classifier.
    """

    image: Float[Tensor, "channels height width"]
    patch_size: int
    attention: Float[Tensor, "layers tokens tokens"]
    positions: Float[Tensor, "tokens tokens"] | None
    probabilities: dict[str, float] | None


def read_vit(vit: Any, image: Any, class_names: list[str] | None = None) -> ReadViT:
    """Run a ViT on one image; the model is left as it was.

    Raises:
        TypeError: it is no ViT of ours and none of Hugging Face.
        ValueError: there is more than one image, attention is missing, or names and classes differ in number.

    Example:
        >>> from ttutor.variants.vit import ViTConfig
        >>> model = ViT(ViTConfig.tiny(image_size=16, patch_size=8, n_classes=3, n_layers=2))
        >>> read_vit(model, torch.rand(3, 16, 16)).attention.shape
        torch.Size([2, 5, 5])
    """
    images = _one_image(image)
    is_ours = isinstance(vit, ViT | VisionEncoder)
    if not is_ours and not (isinstance(vit, nn.Module) and isinstance(_config_of(vit, "patch_size"), int)):
        raise TypeError(
            f"expected a ViT of ours or a ViT module of Hugging Face (with square patches), not {type(vit).__name__}"
        )
    first = next(vit.parameters())
    images = images.to(first)
    with _evaluating(vit), torch.no_grad():
        weights, logits, table = _run_ours(vit, images) if is_ours else _run_theirs(vit, images)
    shown = images[0].detach().cpu().double()
    span = (shown.max() - shown.min()).clamp_min(1e-12)
    return ReadViT(
        image=(shown - shown.min()) / span,
        patch_size=_config_of(vit, "patch_size"),
        attention=reduce(weights.cpu().double(), "layers 1 heads queries keys -> layers queries keys", "mean"),
        positions=None if table is None else position_similarity(table),
        probabilities=None if logits is None else _named(logits[0].cpu().double().softmax(-1), vit, class_names),
    )


def position_similarity(table: Float[Tensor, "tokens d_model"]) -> Float[Tensor, "tokens tokens"]:
    """The cosine of the angle between any two positions' embeddings."""
    unit = nn.functional.normalize(table.detach().cpu().double(), dim=-1)
    return unit @ unit.T


def _run_ours(vit: ViT | VisionEncoder, images: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
    vision, prefix = (vit.vision, "vision.") if isinstance(vit, ViT) else (vit, "")
    with capture(vit, f"{prefix}encoder.layers.*.self_attention.weights") as seen:
        out = vit(images)
    return seen.stack(), out if isinstance(vit, ViT) else None, vision.position.table.weight


def _run_theirs(vit: nn.Module, images: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
    before = getattr(vit.config, "_attn_implementation", None)
    try:
        if hasattr(vit, "set_attn_implementation"):
            vit.set_attn_implementation("eager")  # the only one that gives weights
        out = vit(pixel_values=images, output_attentions=True)
    finally:
        if before is not None and hasattr(vit, "set_attn_implementation"):
            vit.set_attn_implementation(before)
    weights = [one for one in getattr(out, "attentions", None) or () if one is not None]
    if not weights:
        raise ValueError(f"{type(vit).__name__} gave no attention; load it with attn_implementation='eager'")
    tables = [one for name, one in vit.named_parameters() if name.endswith("position_embeddings") and one.ndim == 3]
    fits = tables and tables[0].shape[1] == weights[0].shape[-1]
    return torch.stack(weights), getattr(out, "logits", None), tables[0][0] if fits else None


def _one_image(image: Any) -> Tensor:
    images = torch.as_tensor(image, dtype=torch.float32)
    if images.ndim == 3:
        images = rearrange(images, "channels height width -> 1 channels height width")
    if images.ndim != 4 or len(images) != 1:
        raise ValueError(f"image has shape {tuple(images.shape)}, expected one image (channels, height, width)")
    if not torch.isfinite(images).all():
        raise ValueError("image holds a number that is NaN or infinite")
    return images


def _named(probabilities: Tensor, vit: nn.Module, names: list[str] | None) -> dict[str, float]:
    if names is None:
        known = _config_of(vit, "id2label") or {}
        names = [known.get(i, str(i)) for i in range(len(probabilities))]
    if len(names) != len(probabilities):
        raise ValueError(f"class_names has {len(names)} names, but the model has {len(probabilities)} classes")
    order = probabilities.argsort(descending=True)[:5].tolist()
    return {str(names[i]): probabilities[i].item() for i in order}


def _config_of(model: Any, name: str) -> Any:
    return getattr(getattr(model, "config", None), name, None)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Every part in evaluation mode for a while, and then as it was."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
