"""The encoder: every position looks at every other, layer after layer."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ttutor.attention import scaled_dot_product_attention
from ttutor.layers import FeedForward, LayerNorm, residual_sublayer
from ttutor.masks import Mask
from ttutor.multihead import MultiHeadAttention
from ttutor.names import AnsweringLayer, answer_other_names
from ttutor.positions import Rotation

__all__ = ["Encoder", "EncoderLayer"]


class EncoderLayer(AnsweringLayer, nn.Module):
    """Self-attention, then the feed-forward network, each inside a residual connection; the shape stays the same.

    Vaswani et al. (2017), section 3.1 and figure 1 (left).

    Args:
        d_model: width of the stream.
        n_heads: number of attention heads.
        d_ff: inner width of the feed-forward network.
        dropout: probability of dropping a feature of what each sublayer writes, while training (section 5.4).
        norm: ``"post"`` (the paper) or ``"pre"``.
        activation: ``"relu"`` (the paper) or another of `ttutor.layers.ACTIVATIONS`.
        make_norm: makes a norm from ``d_model``.
        attend: the attention function.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm: str = "post",
        activation: str = "relu",
        make_norm: Callable[[int], nn.Module] = LayerNorm,
        attend: Callable[..., Tensor] = scaled_dot_product_attention,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads, attend=attend)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.around_attention = residual_sublayer(norm, d_model, dropout, make_norm=make_norm)
        self.around_feed_forward = residual_sublayer(norm, d_model, dropout, make_norm=make_norm)

    def forward(
        self,
        hidden: Float[Tensor, "batch tokens d_model"],
        mask: Mask | Bool[Tensor, "..."] | None = None,
        *,
        bias: Float[Tensor, "..."] | None = None,
        rotation: Rotation | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Mix the positions, then transform each; ``bias`` and ``rotation`` as for `MultiHeadAttention.forward`."""
        hidden = self.around_attention(
            hidden, lambda stream: self.self_attention(stream, mask=mask, bias=bias, rotation=rotation)
        )
        return self.around_feed_forward(hidden, self.feed_forward)


class Encoder(AnsweringLayer, nn.Module):
    """A stack of `EncoderLayer`; with pre-norm a last norm follows, since the stream itself was never normalised.

    Args:
        d_model, n_heads, d_ff, norm, make_norm: as for `EncoderLayer`.
        n_layers: number of layers.
        dropout: as for `EncoderLayer`; what ``make_layer`` has when left out.
        make_layer: makes each layer; ``partial(EncoderLayer, activation="gelu")`` to give its other choices.

    Example:
        >>> import torch
        >>> encoder = Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=3)
        >>> encoder(torch.randn(2, 5, 8)).shape
        torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_layers: int,
        *,
        dropout: float | None = None,
        norm: str = "post",
        make_norm: Callable[[int], nn.Module] = LayerNorm,
        make_layer: Callable[..., nn.Module] = EncoderLayer,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {} if dropout is None else {"dropout": dropout}
        self.layers = nn.ModuleList(
            make_layer(d_model, n_heads, d_ff, norm=norm, make_norm=make_norm, **options) for _ in range(n_layers)
        )
        self.final_norm = make_norm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self,
        hidden: Float[Tensor, "batch tokens d_model"],
        mask: Mask | Bool[Tensor, "..."] | None = None,
        *,
        bias: Float[Tensor, "..."] | None = None,
        rotation: Rotation | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Send the stream through all layers; ``mask`` says which tokens are real (True = may attend)."""
        for layer in self.layers:
            hidden = layer(hidden, mask, bias=bias, rotation=rotation)
        return self.final_norm(hidden)


answer_other_names(__name__)
