"""ViT: the encoder reads an image as a text of patches.

Dosovitskiy et al. (2021). Cut the image into squares, map each to a vector, add what says where it was, and set a class
token before them all: from there on nothing is new.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from einops import rearrange, repeat
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.configs import Config
from ttutor.efficient import efficient_attention
from ttutor.encoder import Encoder, EncoderLayer
from ttutor.errors import ShapeError
from ttutor.layers import ACTIVATIONS, LayerNorm, ScaledPreNorm
from ttutor.names import AnsweringModel
from ttutor.positions import LearnedPositions
from ttutor.shapes import check_dtypes, check_shapes
from ttutor.transformer.blueprint import Blueprint, Projection, Stack
from ttutor.variants.heads import Pooler, first_token, initialise_normal
from ttutor.variants.patches import interpolate_positions, patchify

__all__ = ["DistilledViT", "ViT", "ViTConfig", "VisionEncoder", "with_image_size"]


@dataclass(frozen=True, kw_only=True)
class ViTConfig(Config):
    """The sizes of a `ViT`; the defaults are those of ViT-B/16.

    Args:
        image_size: height and width of the images, in pixels.
        patch_size: height and width of the patches, in pixels.
        n_channels: values of a pixel.
        n_classes: how many classes there are.
        d_model: width of the stream.
        n_heads: attention heads of each layer.
        n_layers: number of layers.
        d_ff: inner width of the feed-forward networks; four times ``d_model`` in all published sizes.
        dropout: probability of dropping a feature of the embeddings and of what each sublayer writes, while training;
            by table 3 of the paper 0.1 in pre-training on ImageNet-21k, 0 on the larger JFT and in fine-tuning.
        norm_eps: added to the variance in the norms: 1e-6 in the authors' code, 1e-12 in Hugging Face's configs.
        is_distilled: whether a second token, after the class token, learns from a teacher (DeiT: Touvron et al. 2021,
            section 4).
        n_registers: further tokens without a position, in which the model may keep what belongs to no patch (DINOv2:
            Darcet et al. 2024, section 2.2).
        activation: of the feed-forward networks, one of `ttutor.layers.ACTIVATIONS`.
        norms_embeddings: whether a norm stands before the first layer; the map of the patches has no bias then (CLIP).
        layer_scale: where the factors of `ttutor.layers.ScaledPreNorm` start; none when left out.
    """

    image_size: int = 224
    patch_size: int = 16
    n_channels: int = 3
    n_classes: int = 1000
    d_model: int = 768
    n_heads: int = 12
    n_layers: int = 12
    d_ff: int = 3072
    dropout: float = 0.0
    norm_eps: float = 1e-6
    is_distilled: bool = False
    n_registers: int = 0
    activation: str = "gelu"
    norms_embeddings: bool = False
    layer_scale: float | None = None

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("image_size", "patch_size", "n_channels", "n_classes")
        yield from self.require_bool("is_distilled", "norms_embeddings")
        yield from self.require_one_of("activation", ACTIVATIONS)
        if type(self.n_registers) is not int or self.n_registers < 0:
            yield f"n_registers must be an integer of at least 0 (n_registers={self.n_registers!r})"
        if self.layer_scale is not None:
            yield from self.require_positive_number("layer_scale")
        yield from self.require_positive_int("d_model", "n_heads", "n_layers", "d_ff")
        yield from self.require_multiple("image_size", "patch_size")
        yield from self.require_multiple("d_model", "n_heads")
        yield from self.require_probability("dropout", "norm_eps")

    @property
    def n_patches(self) -> int:
        """How many patches an image is cut into."""
        return (self.image_size // self.patch_size) ** 2

    @property
    def n_tokens(self) -> int:
        """How many tokens the encoder reads: the patches, and those that stand before them."""
        return self.n_patches + 1 + self.is_distilled + self.n_registers

    @classmethod
    def tiny(cls, **changes: Any) -> "ViTConfig":
        """DeiT-Ti, 5 M parameters: Touvron et al. (2021), table 1, first row."""
        return cls(**{"d_model": 192, "n_heads": 3, "d_ff": 768, **changes})

    @classmethod
    def small(cls, **changes: Any) -> "ViTConfig":
        """DeiT-S, 22 M parameters: Touvron et al. (2021), table 1, second row."""
        return cls(**{"d_model": 384, "n_heads": 6, "d_ff": 1536, **changes})

    @classmethod
    def base(cls, **changes: Any) -> "ViTConfig":
        """ViT-B/16, 86 M parameters: Dosovitskiy et al. (2021), table 1, first row."""
        return cls(**changes)

    @classmethod
    def large(cls, **changes: Any) -> "ViTConfig":
        """ViT-L/16, 307 M parameters: Dosovitskiy et al. (2021), table 1, second row."""
        return cls(**{"d_model": 1024, "n_heads": 16, "n_layers": 24, "d_ff": 4096, **changes})

    def blueprint(self) -> Blueprint:
        """What a `ViT` is made of, for `ttutor.transformer.account`."""
        stack = Stack.of(
            self,
            "encoder",
            activation=self.activation,
            is_masked=False,
        )
        d_patch = self.n_channels * self.patch_size**2
        return Blueprint(
            name="ViT",
            n_tokens=self.n_tokens,
            stacks=(stack,),
            projections=(
                Projection(
                    part="embeddings",
                    d_in=d_patch,
                    d_out=self.d_model,
                    bias=not self.norms_embeddings,
                    acts_on="later tokens",
                    n_first=self.n_tokens - self.n_patches,
                ),
                Projection(part="output projection", d_in=self.d_model, d_out=self.n_classes, acts_on="first token"),
            ),
            further={
                # The positions, of registers none, and the tokens before the patches.
                "embeddings": (2 * self.n_tokens - self.n_patches - self.n_registers) * self.d_model,
                "norms": 2 * self.d_model * self.norms_embeddings,
                "other": 2 * self.n_layers * self.d_model * (self.layer_scale is not None),
            },
        )


class VisionEncoder(nn.Module):
    r"""Gives the class token and each patch of an image a hidden vector that is informed by all the others.

    $$z_0 = [x_\mathrm{class};\; x_1 E;\; \dots;\; x_N E] + E_\mathrm{pos}$$

    with $x_1, \dots, x_N$ the patches, row by row, each as one line of numbers. What follows is an encoder whose norms
    stand before its sublayers. Dosovitskiy et al. (2021), equations 1 to 3.

    Args:
        config: sizes and choices.
        pooler: whether to have the `Pooler` that a classifier of pre-training has under it (section 3.1).
        attend: the attention function of all layers.

    Example:
        >>> config = ViTConfig.tiny(image_size=32, patch_size=8, n_layers=2)
        >>> VisionEncoder(config)(torch.randn(2, 3, 32, 32)).shape  # 16 patches and the class token
        torch.Size([2, 17, 192])
    """

    def __init__(
        self,
        config: ViTConfig,
        *,
        pooler: bool = False,
        attend: Callable[..., Tensor] = efficient_attention,
    ) -> None:
        super().__init__()
        self.config = ViTConfig.checked(config)
        d_patch = config.n_channels * config.patch_size**2
        self.embed_patches = nn.Linear(d_patch, config.d_model, bias=not config.norms_embeddings)
        self.class_token = nn.Parameter(torch.zeros(config.d_model))
        self.distillation_token = nn.Parameter(torch.zeros(config.d_model)) if config.is_distilled else None
        self.registers = nn.Parameter(torch.zeros(config.n_registers, config.d_model)) if config.n_registers else None
        self.position = LearnedPositions(config.d_model, config.n_tokens - config.n_registers)
        make_norm = partial(LayerNorm, eps=config.norm_eps)
        self.norm = make_norm(config.d_model) if config.norms_embeddings else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(
            config.d_model,
            config.n_heads,
            config.d_ff,
            config.n_layers,
            norm="pre",
            make_norm=make_norm,
            make_layer=partial(EncoderLayer, dropout=config.dropout, activation=config.activation, attend=attend),
        )
        if config.layer_scale is not None:
            around = partial(ScaledPreNorm, config.d_model, config.dropout, initial=config.layer_scale)
            for layer in self.encoder.layers:
                layer.around_attention, layer.around_feed_forward = (around(make_norm=make_norm) for _ in range(2))
        self.pooler = Pooler(config.d_model) if pooler else nn.Identity()
        initialise_normal(self.embed_patches)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch tokens d_model"]:
        """The last hidden vectors, normalised."""
        return self.encoder(self.embed(images))

    def embed(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch tokens d_model"]:
        """What enters the first layer: the class token and the patches, each with its position (equation 1)."""
        size = self.config.image_size
        check_shapes({"channels": self.config.n_channels}, images=(images, "batch channels height width"))
        check_dtypes(self.embed_patches, images=images)
        if tuple(images.shape[-2:]) != (size, size):
            raise ShapeError(
                f"images are {tuple(images.shape[-2:])} pixels, but this model's positions are for ({size}, {size}); "
                "resize the images, or the positions by ttutor.variants.vit.with_image_size"
            )
        patches = self.embed_patches(patchify(images, self.config.patch_size))
        first = [self.class_token] if self.distillation_token is None else [self.class_token, self.distillation_token]
        before = [repeat(token, "d_model -> batch 1 d_model", batch=images.shape[0]) for token in first]
        tokens = torch.cat([*before, patches], dim=1)
        positions = torch.arange(tokens.shape[1], device=images.device)
        tokens = tokens + self.position(rearrange(positions, "tokens -> 1 tokens"))
        if self.registers is not None:  # which stand nowhere
            registers = repeat(self.registers, "registers d_model -> batch registers d_model", batch=images.shape[0])
            tokens = torch.cat([tokens[:, :1], registers, tokens[:, 1:]], dim=1)
        return self.dropout(self.norm(tokens))

    def pool(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch d_model"]:
        """One vector for each image: that of the class token, through the pooler if there is one."""
        return self.pooler(first_token(hidden))


class ViT(AnsweringModel, nn.Module):
    """Tells the class of an image: a `VisionEncoder`, and a linear map on what it made of the class token.

    Dosovitskiy et al. (2021), figure 1 and equation 4.

    Args:
        config: sizes and choices.
        attend: the attention function of all layers.

    Example:
        >>> config = ViTConfig.tiny(image_size=32, patch_size=8, n_channels=1, n_classes=10, n_layers=2)
        >>> ViT(config)(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(self, config: ViTConfig, *, attend: Callable[..., Tensor] = efficient_attention) -> None:
        super().__init__()
        self.config = config
        self.vision = VisionEncoder(config, attend=attend)
        self.classifier = initialise_normal(nn.Linear(config.d_model, config.n_classes))

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch n_classes"]:
        """Logits of the classes for each image; it complains as `VisionEncoder.forward` does."""
        return self.classifier(self.vision.pool(self.vision(images)))


class DistilledViT(nn.Module):
    """Tells the class of an image twice, from the class token and from the one that learned from a teacher.

    While training the two are held against the true class and against the teacher's; afterwards their mean counts.
    Touvron et al. (2021), section 4.

    Args:
        config: sizes and choices, with ``is_distilled``.
        attend: the attention function of all layers.

    Example:
        >>> config = ViTConfig.tiny(image_size=32, patch_size=8, n_classes=10, n_layers=2, is_distilled=True)
        >>> DistilledViT(config)(torch.randn(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(self, config: ViTConfig, *, attend: Callable[..., Tensor] = efficient_attention) -> None:
        super().__init__()
        if not config.is_distilled:
            raise ValueError("a DistilledViT needs its second token: ViTConfig(is_distilled=True)")
        self.config = config
        self.vision = VisionEncoder(config, attend=attend)
        self.classifier = initialise_normal(nn.Linear(config.d_model, config.n_classes))
        self.distilled_classifier = initialise_normal(nn.Linear(config.d_model, config.n_classes))

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch n_classes"]:
        """Logits of the classes for each image, the mean of both."""
        of_class, of_teacher = self.both(images)
        return (of_class + of_teacher) / 2

    def both(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch n_classes"], Float[Tensor, "batch n_classes"]]:
        """The logits of each token, for the two losses of training."""
        hidden = self.vision(images)
        return self.classifier(hidden[:, 0]), self.distilled_classifier(hidden[:, 1])


def with_image_size(model: ViT, image_size: int) -> ViT:
    """A copy of a model for images of another size, as one makes before fine-tuning it on larger ones.

    The patches stay as large as they are, so there are more of them, and their positions are interpolated.
    Dosovitskiy et al. (2021), section 3.2.

    Example:
        >>> model = ViT(ViTConfig.tiny(image_size=32, patch_size=8, n_layers=2))
        >>> with_image_size(model, 48)(torch.randn(2, 3, 48, 48)).shape
        torch.Size([2, 1000])
    """
    resized = copy.deepcopy(model)
    resized.config = resized.vision.config = model.config.replace(image_size=image_size)
    side = image_size // model.config.patch_size
    table = interpolate_positions(model.vision.position.table.weight.detach(), side, side)
    resized.vision.position = LearnedPositions(model.config.d_model, len(table)).to(table).train(model.training)
    resized.vision.position.table.weight.data.copy_(table)
    return resized
