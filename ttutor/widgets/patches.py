"""Patches: an image cut into squares, the text that they become, and what a ViT's attention does with it."""

import base64
import html
import struct
import warnings
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import traitlets as t
from einops import rearrange, reduce
from jaxtyping import Float
from torch import Tensor, nn

from ttutor import assets
from ttutor.evaluating import evaluating
from ttutor.inside import attention_rollout, capture
from ttutor.variants.vit import VisionEncoder, ViT
from ttutor.widgets.base import Explorer, number_array, one_of, rounded_array, within
from ttutor.widgets.style import PALETTE

NOTES = {
    "CLS": "No pixels: a learnt vector, the same for every image. In the end the class is read from it.",
    "image": "Read row by row, channel after channel; one linear map, the same for every patch, makes them a token.",
    "attention": "The mean of the heads; all weights together are 1.",
    "scale": "In the picture and the sequence the full colour is the largest number besides the token's own.",
    "rollout": "Read so that in every layer half of a patch stays and half comes from where it looks. It is one "
    "reading of attention, not an explanation: values, feed-forward networks and norms are left out.",
    "positions": "Cosine of two position embeddings, −1 to 1. The model was never told which patches are neighbours.",
}
"""What the figure says, of the source, of CLS and of each view."""


def cut_picture(pixels: list[str], channels: int, side: int) -> str:
    """The image as SVG, cut into patches of ``side`` drawn pixels that are numbered as they are read."""
    width, height = len(pixels[0]) // (2 * channels), len(pixels)
    columns = width // side
    cuts = [f"M{x} 0V{height}" for x in range(side, width, side)] + [
        f"M0 {y}H{width}" for y in range(side, height, side)
    ]
    places = range(columns * (height // side))
    numbers = "".join(
        f'<text x="{(place % columns + 0.1) * side:g}" y="{(place // columns + 0.4) * side:g}">{place + 1}</text>'
        for place in places
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" width="320" role="img" '
        f'aria-label="The image, cut into {len(places)} patches that are numbered row by row">'
        f'<image href="{png(pixels, channels)}" width="{width}" height="{height}" style="image-rendering:pixelated"/>'
        f'<path d="{"".join(cuts)}" stroke="{PALETTE["memory"]}" stroke-width="{side / 20:g}"/>'
        f'<g font-size="{side / 3:g}" fill="{PALETTE["key"]}">{numbers}</g></svg>'
    )


def largest_table(weights: np.ndarray, caption: str) -> str:
    """The six tokens with the largest numbers, by their place."""
    order = np.argsort(-weights, kind="stable")[:6]
    names = (f"patch {place}" if place else "CLS" for place in order)
    rows = (
        f'<tr><th scope="row">{name}</th><td>{weights[place]:.3f}</td></tr>'
        for name, place in zip(names, order, strict=True)
    )
    return f"<table><caption>{caption}</caption>{''.join(rows)}</table>"


def png(pixels: list[str], channels: int) -> str:
    """Hexadecimal rows as the address of a picture that holds itself."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    width = len(pixels[0]) // (2 * channels)
    header = struct.pack(">IIBBBBB", width, len(pixels), 8, 0 if channels == 1 else 2, 0, 0, 0)
    lines = zlib.compress(b"".join(b"\0" + bytes.fromhex(row) for row in pixels), 9)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


MAX_SIDE = 64
"""Pixels of the image as it is drawn."""
MAX_PATCHES = 256
MAX_WEIGHTS = 30_000
"""Of all layers together: a page that holds more loads slowly."""


def read_image(image: Any) -> np.ndarray:
    """An image as ``channels height width`` between 0 and 1.

    >>> read_image(np.full((2, 2), 255, dtype=np.uint8)).tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
    """
    is_bytes = str(getattr(image, "dtype", "")).endswith("uint8")
    values = number_array("image", image) / (255 if is_bytes else 1)
    if values.ndim == 2:
        values = rearrange(values, "height width -> 1 height width")
    if values.ndim != 3 or values.shape[0] not in (1, 3) or min(values.shape) == 0:
        hint = "; put the channels first" if values.ndim == 3 and values.shape[-1] in (1, 3) else ""
        raise ValueError(
            f"image has shape {values.shape}, expected (height, width) or (channels, height, width) "
            f"with 1 or 3 channels{hint}"
        )
    if not np.isfinite(values).all():
        raise ValueError("image holds a number that is NaN or infinite")
    if values.min() < 0 or values.max() > 1:
        raise ValueError(
            f"image goes from {values.min():.3g} to {values.max():.3g}; give floats from 0 to 1, or bytes (uint8)"
        )
    return values


def count_patches(size: tuple[int, int], patch_size: int) -> int:
    """How many patches an image becomes."""
    height, width = size
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError(f"patch_size is {patch_size}, but has to divide both sides of an image of {height} x {width}")
    n_patches = height // patch_size * (width // patch_size)
    if n_patches > MAX_PATCHES:
        raise ValueError(f"patches of {patch_size} pixels would be {n_patches}; this figure draws up to {MAX_PATCHES}")
    return n_patches


def drawn(image: np.ndarray, patch_size: int) -> tuple[np.ndarray, int]:
    """The image small enough to be drawn, and how many of its pixels, in each direction, one drawn pixel is mean of."""
    longest = max(image.shape[1:])
    steps = [step for step in range(1, patch_size + 1) if patch_size % step == 0 and longest <= MAX_SIDE * step]
    if not steps:
        raise ValueError(
            f"an image of {longest} pixels cannot be drawn with {MAX_SIDE} when patches have {patch_size}; "
            "resize it, or choose larger patches"
        )
    if steps[0] > 1:
        warnings.warn(
            f"the image is larger than {MAX_SIDE} pixels; each drawn pixel is the mean of {steps[0]} x {steps[0]}",
            stacklevel=4,
        )
    pattern = "channels (rows height) (columns width) -> channels rows columns"
    return reduce(image, pattern, "mean", height=steps[0], width=steps[0]), steps[0]


def hexadecimal(image: np.ndarray) -> list[str]:
    """Each row of pixels as text, two digits a value, the channels of a pixel side by side."""
    rows = np.rint(255 * rearrange(image, "channels height width -> height (width channels)"))
    return [row.tobytes().hex() for row in rows.astype(np.uint8)]


def thousandths(attention: Any, n_tokens: int) -> list[list[list[int]]]:
    """Weights averaged over heads and rounded to thousandths, each row still adding up to one."""
    values = number_array("attention", attention)
    if values.ndim == 4:
        values = reduce(values, "layers heads queries keys -> layers queries keys", "mean")
    if values.ndim != 3 or values.shape[1:] != (n_tokens, n_tokens) or len(values) == 0:
        raise ValueError(
            f"attention has shape {values.shape}, expected (layers, {n_tokens}, {n_tokens}): "
            "a class token and one token for each patch"
        )
    if values.size > MAX_WEIGHTS:
        raise ValueError(
            f"{n_tokens} tokens in {len(values)} layers are {values.size:,} weights, more than the {MAX_WEIGHTS:,} "
            "that a page should hold; take a smaller image (ttutor.variants.vit.with_image_size) or larger patches"
        )
    if not (np.isfinite(values).all() and values.min() >= 0 and np.allclose(values.sum(-1), 1, atol=0.01)):
        raise ValueError("each row of attention has to hold weights of at least 0 that add up to one")
    exact = 1000 * values / values.sum(-1, keepdims=True)
    whole = np.floor(exact).astype(int)
    # What is missing to 1000 goes to those that lost most by rounding down.
    rank = np.argsort(np.argsort(whole - exact, axis=-1, kind="stable"), axis=-1)
    return (whole + (rank < 1000 - whole.sum(-1, keepdims=True))).tolist()


def hundredths(similarity: Any, n_tokens: int) -> list[list[int]]:
    """Cosine similarities, rounded to hundredths."""
    rows = rounded_array("positions", similarity, (n_tokens, n_tokens), 2, axes="tokens, tokens")
    return np.rint(100 * np.array(rows)).astype(int).tolist()


def answer_words(probabilities: dict[str, float] | None, answer: str) -> str:
    """What a model answered, in one sentence.

    >>> answer_words({"square": 0.25, "circle": 0.75}, "circle")
    'The model answers circle (0.750), then square (0.250); the right answer is circle.'
    """
    shares = [] if not probabilities else [(float(share), str(name)) for name, share in probabilities.items()]
    best = sorted(shares, reverse=True)[:2]
    said = ", then ".join(f"{name} ({share:.3f})" for share, name in best)
    parts = [f"The model answers {said}"] * bool(said) + [f"the right answer is {answer}"] * bool(answer)
    text = "; ".join(parts) + "." * bool(parts)
    return text[:1].upper() + text[1:]


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
    positions: Float[Tensor, "tokens tokens"]
    probabilities: dict[str, float] | None


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
    with evaluating(vit), torch.no_grad(), capture(vit, f"{prefix}encoder.layers.*.self_attention.weights") as seen:
        out = vit(images)
    shown = images[0].cpu().double()
    span = (shown.max() - shown.min()).clamp_min(1e-12)
    return ReadViT(
        image=(shown - shown.min()) / span,
        patch_size=vit.config.patch_size,
        attention=reduce(seen.stack().cpu().double(), "layers 1 heads queries keys -> layers queries keys", "mean"),
        positions=position_similarity(vision.position.table.weight),
        probabilities=_named(out[0].cpu().double().softmax(-1), class_names) if isinstance(vit, ViT) else None,
    )


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
    names = [str(i) for i in range(len(probabilities))] if names is None else names
    if len(names) != len(probabilities):
        raise ValueError(f"class_names has {len(names)} names, but the model has {len(probabilities)} classes")
    order = probabilities.argsort(descending=True)[:5].tolist()
    return {str(names[i]): probabilities[i].item() for i in order}


VIEWS = ("image", "attention", "rollout", "positions")
_RECORDING = "vit_recording"


class PatchesExplorer(Explorer):
    """An image as a ViT reads it: cut it coarser or finer, follow a patch into the sequence, see whom it draws from.

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
        answer: str = "",
        note: str = "",
    ) -> None:
        values = read_image(image)
        n_tokens = count_patches(values.shape[1:], patch_size) + 1
        picture, step = drawn(values, patch_size)
        weights = [] if attention is None else thousandths(attention, n_tokens)
        super().__init__(
            pixels=hexadecimal(picture),
            channels=len(values),
            step=step,
            patch_size=patch_size,
            model_patch_size=patch_size,
            attention=weights,
            positions=[] if positions is None else hundredths(positions, n_tokens),
            notes={**NOTES, "source": f"{answer_words(probabilities, answer)} {note}".strip()},
            view="image",
            layer=len(weights),
        )

    @classmethod
    def recorded(cls, image: int = 0) -> "PatchesExplorer":
        """Our small ViT on one of a few drawings that it was not trained on: ``experiments/vit_recording.py``.

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
        """What the figure shows of the selected token, one number for each token; None where it shows the image."""
        if self.view == "image" or self.patch_size != self.model_patch_size:
            return None
        if self.view == "positions":
            return np.array(self.positions)[self.selected] / 100
        layers = torch.tensor(self.attention, dtype=torch.float64) / 1000
        if self.view == "attention":
            return layers[self.layer - 1, self.selected].numpy()
        rolled = attention_rollout(rearrange(layers[: self.layer], "layers tokens keys -> layers 1 1 tokens keys"))
        return rolled[0, self.selected].numpy()

    def describe(self) -> str:
        """The sizes."""
        (height, width), patch = self.size, self.patch_size
        parts = [f"{height} x {width} pixels", f"patches of {patch} x {patch}", f"{self.n_tokens} tokens"]
        return ", ".join(parts + ([f"{len(self.attention)} layers"] if self.attention else []))

    def fallback_html(self) -> str:
        """The image with the cuts and the places, and the patches that the selected token draws from most."""
        height, width = self.size
        picture = cut_picture(self.pixels, self.channels, self.patch_size // self.step)
        words = (
            f"{height} x {width} pixels in patches of {self.patch_size} x {self.patch_size}: {self.n_tokens - 1} "
            f"patches and the class token, {self.n_tokens} tokens, {self.n_tokens**2:,} pairs of query and key in "
            f"every layer and head. {self.notes.get('source', '')}"
        )
        if self.weights is None:
            return f"{picture}<p>{html.escape(words)}</p>"
        what = {"attention": f"attention in layer {self.layer}", "rollout": f"rollout through {self.layer} layers"}
        caption = (
            f"Token {self.selected or 'CLS'}, {what.get(self.view, 'similarity of position')}: the largest numbers"
        )
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
        needed = {"image": True, "positions": self.positions}
        there = [view for view in VIEWS if needed.get(view, self.attention)]
        return one_of("view", proposal["value"], there)

    @t.validate("layer")
    def _check_layer(self, proposal: dict) -> int:
        n_layers = len(self.attention)
        return within("layer", proposal["value"], min(1, n_layers), n_layers)

    @t.validate("selected")
    def _check_selected(self, proposal: dict) -> int:
        return within("selected", proposal["value"], 0, self.n_tokens - 1, "0 is CLS")

    @t.observe("patch_size")
    def _keep_selected_inside(self, _: dict) -> None:
        if self.selected >= self.n_tokens:
            self.selected = 0
