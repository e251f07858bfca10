"""Patches: an image cut into squares, the text that they become, and what a ViT's attention does with it."""

import html
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import traitlets as t
from einops import rearrange, reduce, repeat
from jaxtyping import Float
from torch import Tensor, nn

from ttutor import assets
from ttutor.evaluating import evaluating
from ttutor.inside import capture
from ttutor.variants.vit import VisionEncoder, ViT
from ttutor.widgets.base import Explorer, one_of, within
from ttutor.widgets.patch_values import (
    NOTES,
    answer_words,
    count_patches,
    cut_picture,
    drawn,
    hexadecimal,
    hundredths,
    largest_table,
    read_image,
    thousandths,
    without_patches,
)


@dataclass(frozen=True, eq=False)
class ReadViT:
    """What a ViT did with one image.

    Attributes:
        image: for the eye, between 0 and 1.
        patch_size: of the model, in pixels.
        attention: averaged over heads; the class token comes first.
        positions: cosine similarity of the position embeddings.
        probabilities: of the classes by name; None without a classifier.
        hidden: the same in their order, with one patch after the other hidden: all its pixels are the image's mean, of
            each channel by itself.
    """

    image: Float[Tensor, "channels height width"]
    patch_size: int
    attention: Float[Tensor, "layers tokens tokens"]
    positions: Float[Tensor, "tokens tokens"]
    probabilities: dict[str, float] | None
    hidden: Float[Tensor, "patches classes"] | None


def read_vit(vit: Any, image: Any, class_names: list[str] | None = None) -> ReadViT:
    """Run a ViT on one image; the model is left as it was.

    Example:
        >>> from ttutor.variants.vit import ViTConfig
        >>> model = ViT(ViTConfig.tiny(image_size=16, patch_size=8, n_classes=3, n_layers=2))
        >>> read_vit(model, torch.rand(3, 16, 16)).attention.shape
        torch.Size([2, 5, 5])
    """
    config: Any = getattr(vit, "config", None)
    if hasattr(config, "model_type"):
        from ttutor.interop import from_huggingface

        vit, class_names = from_huggingface(vit), class_names or list(config.id2label.values())
    if not isinstance(vit, ViT | VisionEncoder):
        raise TypeError(f"expected a ViT of ours or of Hugging Face, not {type(vit).__name__}")
    images = _one_image(image).to(next(vit.parameters()))
    vision, prefix = (vit.vision, "vision.") if isinstance(vit, ViT) else (vit, "")
    with evaluating(vit), torch.no_grad():
        with capture(vit, f"{prefix}encoder.layers.*.self_attention.weights") as seen:
            out = vit(images)
        hidden = _without_each_patch(vit, images) if isinstance(vit, ViT) else None
    shown = images[0].cpu().double()
    span = (shown.max() - shown.min()).clamp_min(1e-12)
    return ReadViT(
        image=(shown - shown.min()) / span,
        patch_size=vit.config.patch_size,
        attention=reduce(seen.stack().cpu().double(), "layers 1 heads queries keys -> layers queries keys", "mean"),
        positions=position_similarity(vision.position.table.weight),
        probabilities=_named(out[0].cpu().double().softmax(-1), class_names) if isinstance(vit, ViT) else None,
        hidden=hidden,
    )


def _without_each_patch(vit: ViT, images: Float[Tensor, "1 channels height width"]) -> Float[Tensor, "patches classes"]:
    """What the model answers when it sees the mean of the image in place of one patch."""
    side, (height, width) = vit.config.patch_size, images.shape[-2:]
    mean = reduce(images, "1 channels height width -> 1 channels 1 1", "mean")
    rows, columns = height // side, width // side
    answers = []
    for places in torch.eye(rows * columns, dtype=torch.bool, device=images.device).split(_AT_ONCE):
        pattern = "images (rows columns) -> images 1 (rows height) (columns width)"
        is_hidden = repeat(places, pattern, rows=rows, height=side, width=side)
        answers.append(vit(torch.where(is_hidden, mean, images)).cpu().double().softmax(-1))
    return torch.cat(answers)


def _busiest(image: np.ndarray, patch_size: int) -> int:
    """The place in the sequence of the patch whose values differ most: there is something to see in it."""
    cut = "channels (rows height) (columns width) -> (rows columns) (channels height width)"
    return 1 + int(rearrange(image, cut, height=patch_size, width=patch_size).std(axis=1).argmax())


def position_similarity(table: Float[Tensor, "tokens d_model"]) -> Float[Tensor, "tokens tokens"]:
    """The cosine of the angle between any two positions' embeddings."""
    unit = nn.functional.normalize(table.detach().cpu().double(), dim=-1)
    return unit @ unit.T


def _one_image(image: Any) -> Tensor:
    images = torch.as_tensor(image, dtype=torch.float32)
    if images.ndim == 3:
        images = rearrange(images, "channels height width -> 1 channels height width")
    if images.ndim != 4 or len(images) != 1:
        raise ValueError(f"image has shape {tuple(images.shape)}, expected one image (channels, height, width)")
    return images


def _named(probabilities: Tensor, names: list[str] | None) -> dict[str, float]:
    names = [str(i) for i in range(len(probabilities))] if names is None else list(names)
    if len(names) != len(probabilities):
        raise ValueError(f"class_names has {len(names)} names, but the model has {len(probabilities)} classes")
    # ImageNet has two classes that are called crane.
    own = [str(name) if names.count(name) == 1 else f"{name} ({i})" for i, name in enumerate(names)]
    return dict(zip(own, probabilities.tolist(), strict=True))


VIEWS = ("image", "hide", "attention", "positions")
_AT_ONCE = 32
_RECORDING = "vit_recording"


class PatchesExplorer(Explorer):
    """An image as a ViT reads it: follow a patch into the sequence, hide it from the model, see whom it looks at.

    Make it by `recorded` (our small ViT on drawings that it has not seen) or by `from_model` (your ViT, your image);
    an image alone shows the cutting and its cost.

    Args:
        image: ``height width`` or ``channels height width`` with 1 or 3 channels; floats from 0 to 1 or bytes (a
            tensor, an array or nested lists). A larger one than 64 pixels is drawn smaller, with a warning and a label.
        patch_size: height and width of a patch, in pixels; it divides both sides of the image.
        attention: ``layers tokens tokens`` or ``layers heads tokens tokens``, the class token first: what a model gave
            for this image cut at this size. Averaged over heads, and rounded so that each row adds up to one.
        positions: ``tokens tokens``, cosine similarity of the model's position embeddings.
        probabilities: each class's name and its probability, as the model answered.
        hidden: ``patches classes``, the probabilities with one patch after the other hidden, the classes in the order
            of ``probabilities``. Of many classes those are kept that are ever the answer, and the likeliest.
        answer: what was right.
        note: where model and image come from.

    >>> explorer = PatchesExplorer(np.eye(8), patch_size=4)
    >>> explorer
    PatchesExplorer(8 x 8 pixels, patches of 4 x 4, 5 tokens)
    >>> explorer.patch_size = 2
    >>> explorer.n_tokens
    17
    """

    _module = "patches"
    _title = "Patches"

    pixels = t.List(t.Unicode(), help="rows of the image as drawn, two hexadecimal digits a value").tag(sync=True)
    channels = t.Int(1).tag(sync=True)
    step = t.Int(1, help="pixels of the image that one drawn pixel stands for, in each direction").tag(sync=True)
    patch_size = t.Int().tag(sync=True)
    model_patch_size = t.Int(help="the patch size at which attention and positions were read").tag(sync=True)
    attention = t.List(t.List(t.List(t.Int())), help="layers, queries, keys in thousandths").tag(sync=True)
    positions = t.List(t.List(t.Int()), help="cosine similarities in hundredths").tag(sync=True)
    classes = t.List(t.Unicode(), help="names, the likeliest first").tag(sync=True)
    hidden = t.List(
        t.List(t.Int()), help="their probabilities in thousandths: of the whole image, then without each patch"
    ).tag(sync=True)
    answer = t.Unicode(help="the class that is right; empty if nobody said").tag(sync=True)
    tried = t.List(t.Int(), help="the patches that the reader has hidden").tag(sync=True)
    notes = t.Dict(t.Unicode(), help="what is said of the source, of CLS and of each view").tag(sync=True)
    view = t.Unicode("image").tag(sync=True)
    layer = t.Int(0, help="1 is the first layer").tag(sync=True)
    selected = t.Int(0, help="place in the sequence; 0 is the class token").tag(sync=True)

    def __init__(
        self,
        image: Any,
        patch_size: int,
        attention: Any = None,
        *,
        positions: Any = None,
        probabilities: dict[str, float] | None = None,
        hidden: Any = None,
        answer: str = "",
        note: str = "",
    ) -> None:
        values = read_image(image)
        n_tokens = count_patches(values.shape[1:], patch_size) + 1
        picture, step = drawn(values, patch_size)
        weights = [] if attention is None else thousandths(attention, n_tokens)
        classes, answers = ([], []) if hidden is None else without_patches(hidden, n_tokens - 1, probabilities)
        super().__init__(
            pixels=hexadecimal(picture),
            channels=len(values),
            step=step,
            patch_size=patch_size,
            model_patch_size=patch_size,
            attention=weights,
            positions=[] if positions is None else hundredths(positions, n_tokens),
            classes=classes,
            hidden=answers,
            answer=answer,
            notes={**NOTES, "source": f"{answer_words(probabilities, answer)} {note}".strip()},
            view="image",
            layer=len(weights),
            selected=_busiest(values, patch_size),
        )

    @classmethod
    def recorded(cls, image: int = 4) -> "PatchesExplorer":
        """Our small ViT on one of a few drawings that it was not trained on: ``experiments/vit_recording.py``.

        Number 4, the last, is the first that the model gets wrong; 0 to 3 are one of each class.

        >>> PatchesExplorer.recorded()
        PatchesExplorer(24 x 24 pixels, patches of 4 x 4, 37 tokens, 2 layers)
        """
        record = assets.load(_RECORDING)
        images = record["images"]
        one = images[within("image", image, 0, len(images) - 1, "it numbers the recorded drawings")]
        rows = [list(bytes.fromhex(row)) for row in one["pixels"]]
        words = "A ViT of {n_layers} layers and {n_heads} heads, trained on {n_train:,} drawings"
        right = f"of {record['settings']['n_held_out']:,} others it names {100 * record['accuracies'][0]:.1f} % rightly"
        return cls(
            np.array(rows, dtype=np.uint8),
            record["settings"]["patch_size"],
            np.array([[row.split() for row in layer] for layer in one["attention"]], dtype=float) / 1000,
            positions=np.array([row.split() for row in record["positions"]], dtype=float) / 100,
            probabilities=dict(zip(record["classes"], one["probabilities"], strict=True)),
            hidden=np.array([row.split() for row in one["hidden"]], dtype=float) / 1000,
            answer=one["class"],
            note=f"{words.format(**record['settings'])}; {right} ({record['provenance']['command']}).",
        )

    @classmethod
    def from_model(
        cls, vit: Any, image: Any, *, class_names: list[str] | None = None, answer: str = ""
    ) -> "PatchesExplorer":
        """A model on one image: a `ViT` or `VisionEncoder` of ours, or a ViT of Hugging Face.

        Args:
            vit: the model.
            image: ``channels height width`` as the model wants it, scaled and normalised. What is drawn is stretched
                from the lowest value to the highest, since an image may have been normalised.
            class_names: the classes' names; those in a Hugging Face config when left out, else numbers.
            answer: what is right.
        """
        read = read_vit(vit, image, class_names)
        return cls(
            read.image,
            read.patch_size,
            read.attention,
            positions=read.positions,
            probabilities=read.probabilities,
            hidden=read.hidden,
            answer=answer,
            note=f"{type(vit).__name__} of {len(read.attention)} layers.",
        )

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the image, in pixels."""
        return len(self.pixels) * self.step, len(self.pixels[0]) // (2 * self.channels) * self.step

    @property
    def n_tokens(self) -> int:
        """How many tokens the image becomes at the patch size that is chosen: the patches and the class token."""
        return count_patches(self.size, self.patch_size) + 1

    @property
    def weights(self) -> np.ndarray | None:
        """What the figure shows, one number for each token; None where it shows the image.

        Of attention and positions it is the selected token's row. In the view ``hide`` it is what the model's answer
        loses without each patch; on the page a patch shows that when it has been hidden.
        """
        if self.view == "image" or self.patch_size != self.model_patch_size:
            return None
        if self.view == "positions":
            return np.array(self.positions)[self.selected] / 100
        if self.view == "attention":
            return np.array(self.attention)[self.layer - 1, self.selected] / 1000
        first = np.array(self.hidden)[:, 0] / 1000
        return first[0] - first

    def describe(self) -> str:
        """The sizes."""
        (height, width), patch = self.size, self.patch_size
        parts = [f"{height} x {width} pixels", f"patches of {patch} x {patch}", f"{self.n_tokens} tokens"]
        return ", ".join(parts + ([f"{len(self.attention)} layers"] if self.attention else []))

    def fallback_html(self) -> str:
        """The image with the cuts and the places, and the largest numbers of what the figure shows."""
        height, width = self.size
        picture = cut_picture(self.pixels, self.channels, self.patch_size // self.step)
        words = (
            f"{height} x {width} pixels in patches of {self.patch_size} x {self.patch_size}: {self.n_tokens - 1} "
            f"patches and the class token, {self.n_tokens} tokens, {self.n_tokens**2:,} pairs of query and key in "
            f"every layer and head. {self.notes.get('source', '')}"
        )
        if self.weights is None:
            return f"{picture}<p>{html.escape(words)}</p>"
        captions = {
            "hide": f"What the answer {self.classes[0] if self.classes else ''} loses when one patch is hidden",
            "attention": f"Token {self.selected or 'CLS'}, attention in layer {self.layer}",
            "positions": f"Token {self.selected or 'CLS'}, similarity of position",
        }
        caption = html.escape(f"{captions[self.view]}: the largest numbers")
        table = largest_table(self.weights, caption)
        return f"{picture}<p>{html.escape(words)}</p>{table}<p>{html.escape(self.notes.get(self.view, ''))}</p>"

    @t.validate("patch_size")
    def _check_patch_size(self, proposal: dict) -> int:
        count_patches(self.size, proposal["value"])
        if proposal["value"] % self.step:
            raise ValueError(f"patch_size has to be a multiple of {self.step}, the pixels that are drawn as one")
        return proposal["value"]

    @t.validate("view")
    def _check_view(self, proposal: dict) -> str:
        needed = {"image": True, "hide": self.hidden, "attention": self.attention, "positions": self.positions}
        there = [view for view in VIEWS if needed[view]]
        return one_of("view", proposal["value"], there)

    @t.validate("layer")
    def _check_layer(self, proposal: dict) -> int:
        n_layers = len(self.attention)
        return within("layer", proposal["value"], min(1, n_layers), n_layers)

    @t.validate("selected")
    def _check_selected(self, proposal: dict) -> int:
        return within("selected", proposal["value"], 0, self.n_tokens - 1, "0 is CLS")

    @t.validate("tried")
    def _check_tried(self, proposal: dict) -> list[int]:
        n_patches = count_patches(self.size, self.model_patch_size)
        return [within("tried", place, 1, n_patches, "it lists patches") for place in proposal["value"]]

    @t.observe("patch_size")
    def _keep_selected_inside(self, _: dict) -> None:
        if self.selected >= self.n_tokens:
            self.selected = 0
