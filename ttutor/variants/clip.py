r"""CLIP: an image and its caption get vectors that point the same way.

$$s_{ij} = e^{\tau}\,\langle u_i, v_j\rangle, \qquad
  \mathcal{L} = \tfrac12\,\mathrm{CE}(s, \text{diagonal}) + \tfrac12\,\mathrm{CE}(s^\top, \text{diagonal})$$

$u_i$ and $v_j$ are the vectors of image $i$ and text $j$, of length one. Radford et al. (2021), section 2.3 and figure
3. A classifier for any classes is then a list of sentences, each naming one (section 3.1).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from einops import einsum, repeat
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ttutor.configs import Config
from ttutor.efficient import efficient_attention
from ttutor.names import AnsweringModel
from ttutor.shapes import check_shapes, has_values
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.variants.heads import initialise_normal
from ttutor.variants.vit import VisionEncoder, ViTConfig

__all__ = ["CLIP", "CLIPConfig", "contrastive_loss"]


PADDING = (0, 1)
"""What published tokenizers put behind the end mark, where it is not the end mark itself."""


@dataclass(frozen=True, kw_only=True)
class CLIPConfig(Config):
    """The sizes of a `CLIP`: those of its two towers, and of the space in which they meet.

    Args:
        vision: sizes of the tower for images.
        text: sizes of the tower for texts.
        d_shared: width of the vectors that are compared.
        end_id: the token that ends a text, at which its vector is read off; with None, the largest id of each text.
    """

    vision: ViTConfig
    text: GPTConfig
    d_shared: int = 512
    end_id: int | None = 49_407

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("d_shared")
        if self.end_id is not None and not 0 <= self.end_id < self.text.vocab_size:
            yield f"end_id must be one of {self.text.vocab_size} tokens (end_id={self.end_id!r})"

    @classmethod
    def base_32(cls) -> "CLIPConfig":
        """CLIP ViT-B/32, 151 M parameters: Radford et al. (2021), table 20."""
        text = GPTConfig(
            vocab_size=49_408, d_model=512, n_heads=8, d_ff=2048, max_len=77, dropout=0.0, activation="quick_gelu"
        )
        vision = ViTConfig(patch_size=32, norm_eps=1e-5, activation="quick_gelu", norms_embeddings=True)
        return cls(vision=vision, text=text)


class CLIP(AnsweringModel, nn.Module):
    """Scores of how well each text fits each image, from two towers that meet in one space.

    The tower for images is a `VisionEncoder`, that for texts a `GPT` without its output projection.

    Args:
        config: sizes and choices.
        attend: the attention function of all layers.

    Example:
        >>> sizes = {"d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20}
        >>> vision = ViTConfig(image_size=8, patch_size=4, norms_embeddings=True, **sizes)
        >>> clip = CLIP(CLIPConfig(vision=vision, text=GPTConfig(vocab_size=9, **sizes), d_shared=6, end_id=8))
        >>> clip(torch.randn(3, 3, 8, 8), torch.tensor([[2, 5, 8, 0], [2, 6, 7, 8]])).shape
        torch.Size([3, 2])
    """

    def __init__(self, config: CLIPConfig, *, attend: Callable[..., Tensor] = efficient_attention) -> None:
        super().__init__()
        self.config = config
        self.vision = VisionEncoder(config.vision, attend=attend)
        self.text = GPT(config.text, attend=attend)
        self.from_image = initialise_normal(nn.Linear(config.vision.d_model, config.d_shared, bias=False))
        self.from_text = initialise_normal(nn.Linear(config.text.d_model, config.d_shared, bias=False))
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))  # section 2.5

    def forward(
        self,
        images: Float[Tensor, "images channels height width"],
        token_ids: Int[Tensor, "texts tokens"],
    ) -> Float[Tensor, "images texts"]:
        """The score of every image with every text; a softmax over the texts classifies the images."""
        of_images, of_texts = self.encode_images(images), self.encode_texts(token_ids)
        similarity = einsum(of_images, of_texts, "images d_shared, texts d_shared -> images texts")
        return self.log_scale.exp() * similarity

    def encode_images(self, images: Float[Tensor, "images channels height width"]) -> Float[Tensor, "images d_shared"]:
        """The vector of each image, of length one."""
        return functional.normalize(self.from_image(self.vision.pool(self.vision(images))), dim=-1)

    def encode_texts(self, token_ids: Int[Tensor, "texts tokens"]) -> Float[Tensor, "texts d_shared"]:
        """The vector of each text, of length one, from its first end mark; padding after that is not seen."""
        check_shapes(token_ids=(token_ids, "texts tokens"))
        hidden = self.text.decode(token_ids)
        place = repeat(self._end_of(token_ids), "texts -> texts 1 d_model", d_model=hidden.shape[-1])
        return functional.normalize(self.from_text(hidden.gather(1, place).squeeze(1)), dim=-1)

    def _end_of(self, token_ids: Int[Tensor, "texts tokens"]) -> Int[Tensor, " texts"]:
        """Where each text ends."""
        if self.config.end_id is not None:
            is_end = token_ids == self.config.end_id
            if has_values(is_end) and not bool(is_end.any(dim=-1).all()):
                raise ValueError(f"every text must hold the token that ends it, end_id={self.config.end_id}")
            return is_end.int().argmax(dim=-1)
        place = token_ids.argmax(dim=-1)
        if has_values(token_ids):
            for row, end in zip(token_ids.tolist(), place.tolist(), strict=True):
                if set(row[end:]) - {row[end], *PADDING}:
                    raise ValueError(
                        f"the largest id of a text should end it, but after {row[end]} comes more than padding; is it "
                        "a word that was added to the vocabulary? Then give the config the end_id of its tokenizer"
                    )
        return place


def contrastive_loss(scores: Float[Tensor, "pairs pairs"]) -> Float[Tensor, ""]:
    """Small where each image scores highest with its own text, and each text with its own image.

    Radford et al. (2021), figure 3.

    Args:
        scores: of every image with every text; the pairs stand on the diagonal.

    Example:
        >>> contrastive_loss(torch.tensor([[9.0, 0.0], [0.0, 9.0]])), contrastive_loss(torch.zeros(2, 2))
        (tensor(0.0001), tensor(0.6931))
    """
    check_shapes(scores=(scores, "pairs pairs"))
    own = torch.arange(len(scores), device=scores.device)
    return (functional.cross_entropy(scores, own) + functional.cross_entropy(scores.mT, own)) / 2
