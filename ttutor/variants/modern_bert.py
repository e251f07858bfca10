"""ModernBERT: an encoder of texts with the parts that decoders have had since.

Warner et al. (2024), section 2.1. Against BERT: norms before the sublayers and without a bias, as everything else;
rotary positions; GeGLU; and of three layers only one looks at the whole text, the others at near words.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.configs import Config
from ttutor.efficient import efficient_attention
from ttutor.embeddings import TokenEmbedding
from ttutor.encoder import EncoderLayer
from ttutor.layers import GatedFeedForward, LayerNorm
from ttutor.masks import Mask, combine_masks
from ttutor.multihead import MultiHeadAttention
from ttutor.names import AnsweringModel
from ttutor.positions import RotaryPositions
from ttutor.shapes import check_shapes
from ttutor.transformer.blueprint import Blueprint, Stack
from ttutor.variants.heads import MaskedTokenHead, initialise_normal

__all__ = ["ModernBERT", "ModernBERTConfig", "ModernBERTForMaskedLM"]


@dataclass(frozen=True, kw_only=True)
class ModernBERTConfig(Config):
    """The sizes of a `ModernBERT`; the defaults are those of the base model: Warner et al. (2024), table 3.

    Args:
        vocab_size: number of tokens.
        d_model: width of the stream.
        n_heads: attention heads of each layer.
        n_layers: number of layers.
        d_ff: inner width of the gated feed-forward networks.
        max_len: the longest text in training, in tokens.
        norm_eps: added to the variance in the norms.
        window: a token in a local layer sees those nearer than this, on both sides.
        global_every: the first layer and every n-th after it see the whole text.
        rotary_base, local_rotary_base: the bases in layers that see all, and in local ones.

    Example:
        >>> from ttutor.transformer import account
        >>> account(ModernBERTConfig()).n_parameters
        149014272
    """

    vocab_size: int = 50_368
    d_model: int = 768
    n_heads: int = 12
    n_layers: int = 22
    d_ff: int = 1152
    max_len: int = 8192
    norm_eps: float = 1e-5
    window: int = 65
    global_every: int = 3
    rotary_base: float = 160_000.0
    local_rotary_base: float = 10_000.0

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")
        yield from self.require_positive_int("window", "global_every")
        yield from self.require_multiple("d_model", "n_heads")
        yield from self.require_positive_number("norm_eps", "rotary_base", "local_rotary_base")

    def blueprint(self) -> Blueprint:
        """What the model is made of, for `ttutor.transformer.account`; its norms have a gain alone, as RMSNorm has."""
        encoder = Stack.of(
            self,
            "encoder",
            gated=True,
            activation="gelu",
            attention_bias=False,
            feed_forward_bias=False,
            rms=True,
        )
        # The first layer's missing norm and the one of the embeddings are alike.
        further = {"embeddings": self.vocab_size * self.d_model}
        return Blueprint(name="ModernBERT", n_tokens=self.max_len, stacks=(encoder,), further=further)


class ModernBERT(AnsweringModel, nn.Module):
    """Gives each token of a text a hidden vector that is informed by all the others.

    Args:
        config: sizes and choices.
        attend: the attention function of all layers.

    Example:
        >>> config = ModernBERTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=4, d_ff=20)
        >>> ModernBERT(config)(torch.tensor([[2, 7, 3]])).shape
        torch.Size([1, 3, 12])
    """

    def __init__(self, config: ModernBERTConfig, *, attend: Callable[..., Tensor] = efficient_attention) -> None:
        super().__init__()
        self.config = config
        d_head = config.d_model // config.n_heads
        make_norm = partial(LayerNorm, eps=config.norm_eps, bias=False)
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model, factor=1.0)
        self.norm = make_norm(config.d_model)
        self.rotary = RotaryPositions(d_head, base=config.rotary_base)
        self.local_rotary = RotaryPositions(d_head, base=config.local_rotary_base)
        self.layers = nn.ModuleList()
        for _ in range(config.n_layers):
            layer: Any = EncoderLayer(config.d_model, config.n_heads, config.d_ff, norm="pre", make_norm=make_norm)
            layer.self_attention = MultiHeadAttention(config.d_model, config.n_heads, bias=False, attend=attend)
            layer.feed_forward = GatedFeedForward(config.d_model, config.d_ff, activation="gelu")
            if len(self.layers) == 0:
                layer.around_attention.norm = nn.Identity()  # the embeddings were just normalised
            self.layers.append(layer)
        self.final_norm = make_norm(config.d_model)
        initialise_normal(self)

    def forward(
        self, token_ids: Int[Tensor, "batch tokens"], is_real: Bool[Tensor, "batch tokens"] | None = None
    ) -> Float[Tensor, "batch tokens d_model"]:
        """The last hidden vectors.

        Args:
            token_ids: the texts, padded on one side only.
            is_real: which tokens are no padding; all of them when left out.
        """
        is_real = torch.ones_like(token_ids, dtype=torch.bool) if is_real is None else is_real
        check_shapes(token_ids=(token_ids, "batch tokens"), is_real=(is_real, "batch tokens"))
        places = rearrange(torch.arange(token_ids.shape[-1], device=token_ids.device), "tokens -> 1 tokens")
        real = Mask(dense=rearrange(is_real, "batch tokens -> batch 1 1 tokens"))
        of_global = (real, self.rotary(places))
        of_local = (combine_masks(real, Mask(window=self.config.window)), self.local_rotary(places))
        hidden = self.norm(self.embedding(token_ids))
        for number, layer in enumerate(self.layers):
            mask, rotation = of_local if number % self.config.global_every else of_global
            hidden = layer(hidden, mask, rotation=rotation)
        return self.final_norm(hidden)


class ModernBERTForMaskedLM(nn.Module):
    """Logits of the token that stood where each hidden vector is.

    Args:
        encoder: gives the hidden vectors.

    Example:
        >>> config = ModernBERTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=4, d_ff=20)
        >>> ModernBERTForMaskedLM(ModernBERT(config))(torch.tensor([[2, 7, 3]])).shape
        torch.Size([1, 3, 50])
    """

    def __init__(self, encoder: ModernBERT) -> None:
        super().__init__()
        self.encoder, self.config = encoder, encoder.config
        self.head = MaskedTokenHead(encoder.embedding.table)
        self.head.transform = initialise_normal(nn.Linear(self.config.d_model, self.config.d_model, bias=False))
        self.head.norm = LayerNorm(self.config.d_model, eps=self.config.norm_eps, bias=False)

    def forward(
        self, token_ids: Int[Tensor, "batch tokens"], is_real: Bool[Tensor, "batch tokens"] | None = None
    ) -> Float[Tensor, "batch tokens vocab_size"]:
        """Logits over the vocabulary at every place; arguments as for `ModernBERT.forward`."""
        return self.head(self.encoder(token_ids, is_real))
