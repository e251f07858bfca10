"""The decoder: every position looks back at its own sequence and, where there is a memory, over to the encoder's."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import DecoderCache, LayerCache, layer_caches
from ttutor.layers import FeedForward, LayerNorm, residual_sublayer
from ttutor.masks import CAUSAL, Mask, combine_masks
from ttutor.multihead import MultiHeadAttention
from ttutor.names import AnsweringLayer, answer_other_names
from ttutor.positions import Rotation

__all__ = ["Decoder", "DecoderLayer"]


class DecoderLayer(AnsweringLayer, nn.Module):
    """Causal self-attention, cross-attention to the memory, feed-forward network, each in a residual connection.

    Vaswani et al. (2017), section 3.1 and figure 1 (right). In cross-attention the queries come from the decoder, the
    keys and values from the encoder's output. Without it (two sublayers) this is the layer of a decoder-only model.

    Args:
        d_model: width of the stream and of the memory.
        n_heads: number of attention heads.
        d_ff: inner width of the feed-forward network.
        cross_attention: whether there is a memory to look at.
        dropout: probability of dropping a feature of what each sublayer writes, while training (section 5.4).
        norm: ``"post"`` (the paper) or ``"pre"``.
        activation: ``"relu"`` (the paper) or another of `ttutor.layers.ACTIVATIONS`.
        attend: the attention function.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        cross_attention: bool = True,
        dropout: float = 0.0,
        norm: str = "post",
        activation: str = "relu",
        attend: Callable[..., Tensor] = scaled_dot_product_attention,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads, attend=attend)
        self.around_self_attention = residual_sublayer(norm, d_model, dropout)
        self.cross_attention: MultiHeadAttention | None = None
        if cross_attention:
            self.cross_attention = MultiHeadAttention(d_model, n_heads, attend=attend)
            self.around_cross_attention = residual_sublayer(norm, d_model, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.around_feed_forward = residual_sublayer(norm, d_model, dropout)

    def forward(
        self,
        hidden: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"] | None = None,
        mask: Mask | Bool[Tensor, "..."] | None = None,
        memory_mask: Mask | Bool[Tensor, "..."] | None = None,
        cache: LayerCache | None = None,
        *,
        bias: Float[Tensor, "..."] | None = None,
        rotation: Rotation | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """Look back, look over, transform.

        Args:
            hidden: the stream of the target.
            memory: the encoder's output; needed if and only if the layer has cross-attention.
            mask: which target tokens may be looked at, besides the causal mask that always holds.
            memory_mask: which tokens of the memory are real.
            cache: this layer's keys and values of earlier calls.
            bias, rotation: of self-attention, as for `MultiHeadAttention.forward`.
        """
        own, other = (None, None) if cache is None else (cache.self_attention, cache.cross_attention)
        if (memory is None) != (self.cross_attention is None):
            raise ValueError(
                "a decoder layer with cross-attention needs a memory, and one without takes none, "
                f"but cross_attention is {self.cross_attention is not None} and memory is {type(memory).__name__}"
            )
        hidden = self.around_self_attention(
            hidden,
            lambda stream: self.self_attention(
                stream, mask=combine_masks(CAUSAL, mask), cache=own, bias=bias, rotation=rotation
            ),
        )
        if self.cross_attention is not None:
            hidden = self.around_cross_attention(
                hidden, lambda stream: self.cross_attention(stream, memory, mask=memory_mask, cache=other)
            )
        return self.around_feed_forward(hidden, self.feed_forward)


class Decoder(AnsweringLayer, nn.Module):
    """A stack of `DecoderLayer`; with pre-norm a last norm follows.

    Args:
        d_model, n_heads, d_ff, cross_attention, norm: as for `DecoderLayer`.
        n_layers: number of layers.
        dropout: as for `DecoderLayer`; what ``make_layer`` has when left out.
        make_layer: makes each layer; ``partial(DecoderLayer, activation="gelu")`` to give its other choices.

    Example:
        >>> import torch
        >>> decoder = Decoder(d_model=8, n_heads=2, d_ff=16, n_layers=3)
        >>> decoder(torch.randn(2, 5, 8), memory=torch.randn(2, 7, 8)).shape
        torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_layers: int,
        *,
        cross_attention: bool = True,
        dropout: float | None = None,
        norm: str = "post",
        make_layer: Callable[..., nn.Module] = DecoderLayer,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {} if dropout is None else {"dropout": dropout}
        self.layers = nn.ModuleList(
            make_layer(d_model, n_heads, d_ff, cross_attention=cross_attention, norm=norm, **options)
            for _ in range(n_layers)
        )
        self.final_norm = LayerNorm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self,
        hidden: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"] | None = None,
        mask: Mask | Bool[Tensor, "..."] | None = None,
        memory_mask: Mask | Bool[Tensor, "..."] | None = None,
        cache: DecoderCache | None = None,
        *,
        bias: Float[Tensor, "..."] | None = None,
        rotation: Rotation | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """Send the stream through all layers; arguments as for `DecoderLayer.forward`."""
        for layer, layer_cache in zip(self.layers, layer_caches(cache, len(self.layers)), strict=True):
            hidden = layer(hidden, memory, mask, memory_mask, layer_cache, bias=bias, rotation=rotation)
        return self.final_norm(hidden)


answer_other_names(__name__)
