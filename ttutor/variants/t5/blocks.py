"""T5's block, one for encoder and decoder, and a stack of blocks with its biases by distance."""

from collections.abc import Callable, Iterable
from functools import partial

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import DecoderCache, LayerCache, layer_caches
from ttutor.layers import FeedForward, GatedFeedForward, PreNorm, RMSNorm
from ttutor.masks import CAUSAL, Mask, combine_masks
from ttutor.multihead import MultiHeadAttention
from ttutor.positions import RelativePositions
from ttutor.variants.t5.config import FEED_FORWARDS


class T5Block(nn.Module):
    r"""Self-attention, in the decoder cross-attention, feed-forward network, each in a residual connection.

    $$\mathrm{head}(x) = \mathrm{softmax}\big(Q K^\top + B\big)\,V$$

    with $B$ the bias by distance, in self-attention only. Raffel et al. (2020), section 2.1. As in the authors' code,
    no map has a bias, and scores are not divided by $\sqrt{d_\mathrm{head}}$: the queries start smaller instead.

    Args:
        d_model: width of the stream and of the memory.
        n_heads: number of attention heads.
        d_ff: inner width of the feed-forward network.
        d_head: width of a head; ``d_model / n_heads`` when left out.
        feed_forward: ``"relu"`` (the paper), ``"geglu"`` (T5 1.1) or ``"swiglu"``.
        cross_attention: whether there is a memory to look at, as in the decoder.
        dropout: probability of dropping what `T5Config` lists, while training.
        attend: the attention function.

    Example:
        >>> import torch
        >>> T5Block(d_model=12, n_heads=3, d_ff=32)(torch.randn(2, 5, 12)).shape
        torch.Size([2, 5, 12])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        d_head: int | None = None,
        feed_forward: str = "relu",
        cross_attention: bool = False,
        dropout: float = 0.0,
        attend: Callable[..., Tensor] = scaled_dot_product_attention,
    ) -> None:
        super().__init__()
        make_attention = partial(
            MultiHeadAttention,
            d_model,
            n_heads,
            d_head=d_head,
            bias=False,
            dropout=dropout,
            scale=1.0,
            attend=attend,
        )
        self.self_attention = make_attention()
        self.around_self_attention = PreNorm(d_model, dropout, make_norm=RMSNorm)
        self.cross_attention: MultiHeadAttention | None = None
        if cross_attention:
            self.cross_attention = make_attention()
            self.around_cross_attention = PreNorm(d_model, dropout, make_norm=RMSNorm)
        gated, activation = FEED_FORWARDS[feed_forward]
        kind = GatedFeedForward if gated else FeedForward
        self.feed_forward = kind(d_model, d_ff, activation=activation, dropout=dropout, bias=False)
        self.around_feed_forward = PreNorm(d_model, dropout, make_norm=RMSNorm)

    def forward(
        self,
        hidden: Float[Tensor, "batch tokens d_model"],
        memory: Float[Tensor, "batch source d_model"] | None = None,
        mask: Mask | Bool[Tensor, "..."] | None = None,
        memory_mask: Mask | Bool[Tensor, "..."] | None = None,
        cache: LayerCache | None = None,
        *,
        bias: Float[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Look at the stream, then at the memory, then transform each token.

        Args:
            hidden: the stream.
            memory: the encoder's output, for a block with cross-attention.
            mask, bias: of the self-attention, as for `MultiHeadAttention.forward`.
            memory_mask: which tokens of the memory are real.
            cache: earlier tokens of this layer; it is extended by the new ones.
        """
        if (memory is None) != (self.cross_attention is None):
            raise ValueError(
                "a block with cross-attention needs a memory, and one without takes none, "
                f"but cross_attention is {self.cross_attention is not None} and memory is {type(memory).__name__}"
            )
        own, other = (None, None) if cache is None else (cache.self_attention, cache.cross_attention)
        hidden = self.around_self_attention(
            hidden, lambda stream: self.self_attention(stream, mask=mask, cache=own, bias=bias)
        )
        if self.cross_attention is not None:
            hidden = self.around_cross_attention(
                hidden, lambda stream: self.cross_attention(stream, memory, mask=memory_mask, cache=other)
            )
        return self.around_feed_forward(hidden, self.feed_forward)


class T5Stack(nn.Module):
    """Blocks that share one table of biases by distance, with dropout before the first and after a last norm.

    Args:
        d_model: width of the stream.
        positions: the biases. Bidirectional ones make an encoder, the others a decoder, which looks back only.
        blocks: the blocks, with cross-attention in a decoder.
        dropout: probability of dropping a feature of what enters and leaves, while training.

    Example:
        >>> import torch
        >>> encoder = T5Stack(12, RelativePositions(n_heads=3), [T5Block(d_model=12, n_heads=3, d_ff=32)])
        >>> encoder(torch.randn(1, 4, 12), positions=torch.tensor([[0, 1, 2, 3]])).shape
        torch.Size([1, 4, 12])
    """

    def __init__(
        self, d_model: int, positions: RelativePositions, blocks: Iterable[T5Block], *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.positions = positions
        self.layers = nn.ModuleList(blocks)
        self.final_norm = RMSNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        hidden: Float[Tensor, "batch tokens d_model"],
        positions: Int[Tensor, "batch tokens"],
        memory: Float[Tensor, "batch source d_model"] | None = None,
        mask: Mask | Bool[Tensor, "..."] | None = None,
        memory_mask: Mask | Bool[Tensor, "..."] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Send the stream through all blocks.

        Args:
            hidden: the embedded tokens.
            positions: where they stand in their rows.
            memory: the encoder's output, for a decoder.
            mask: which tokens may be looked at; in a decoder, in addition to the causal mask.
            memory_mask: which tokens of the memory are real.
            cache: earlier tokens; its `extend` must have been called for these ones.
        """
        mask = mask if self.positions.is_bidirectional else combine_masks(CAUSAL, mask)
        bias = self.positions(positions, positions if cache is None else cache.positions())
        hidden = self.dropout(hidden)
        for layer, layer_cache in zip(self.layers, layer_caches(cache, len(self.layers)), strict=True):
            hidden = layer(hidden, memory, mask, memory_mask, layer_cache, bias=bias)
        return self.dropout(self.final_norm(hidden))
