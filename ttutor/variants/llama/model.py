"""Llama itself: a block of two sublayers, and the model that stacks it."""

from collections.abc import Callable
from functools import partial

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import DecoderCache, LayerCache, layer_caches
from ttutor.efficient import efficient_attention
from ttutor.embeddings import TokenEmbedding, place_tokens
from ttutor.layers import GatedFeedForward, PreNorm, RMSNorm
from ttutor.masks import CAUSAL, Mask, both
from ttutor.multihead import MultiHeadAttention
from ttutor.positions import RotaryPositions, RotaryScaling, Rotation, rotary_frequencies
from ttutor.shapes import check_shapes
from ttutor.variants.llama.config import LlamaConfig


class LlamaBlock(nn.Module):
    r"""Causal self-attention with turned queries and keys, then SwiGLU, each in a residual connection.

    $$y = x + \mathrm{MultiHead}(\mathrm{RMSNorm}(x)), \qquad z = y + \mathrm{SwiGLU}(\mathrm{RMSNorm}(y))$$

    Touvron et al. (2023a), section 2.2; fewer key/value heads than query heads: Touvron et al. (2023b), section 2.2.

    Args:
        d_model: width of the stream.
        n_heads: query heads.
        d_ff: inner width of the feed-forward network.
        n_kv_heads: key/value heads; as many as query heads when left out.
        d_head: width of a head; ``d_model / n_heads`` when left out.
        make_norm: makes a norm from ``d_model``.
        attend: the attention function.

    Example:
        >>> rotation = RotaryPositions(d_head=4)(torch.tensor([[0, 1]]))
        >>> LlamaBlock(d_model=12, n_heads=3, d_ff=32)(torch.randn(1, 2, 12), rotation=rotation).shape
        torch.Size([1, 2, 12])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        make_norm: Callable[[int], nn.Module] = RMSNorm,
        attend: Callable[..., Tensor] = scaled_dot_product_attention,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads, n_kv_heads, d_head=d_head, bias=False, attend=attend)
        self.feed_forward: nn.Module = GatedFeedForward(d_model, d_ff, activation="silu")
        self.around_self_attention = PreNorm(d_model, make_norm=make_norm)
        self.around_feed_forward = PreNorm(d_model, make_norm=make_norm)

    def forward(
        self,
        hidden: Float[Tensor, "batch tokens d_model"],
        mask: Mask | Bool[Tensor, "..."] | None = None,
        cache: LayerCache | None = None,
        *,
        rotation: Rotation,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Look back, then transform each token.

        Args:
            hidden: the stream.
            mask: what may be looked at, in addition to the causal mask.
            cache: earlier tokens of this layer; it is extended by the new ones.
            rotation: the turns of these tokens, from `ttutor.positions.RotaryPositions`.
        """
        own = None if cache is None else cache.self_attention
        hidden = self.around_self_attention(
            hidden, lambda stream: self.self_attention(stream, mask=both(CAUSAL, mask), cache=own, rotation=rotation)
        )
        return self.around_feed_forward(hidden, self.feed_forward)


class Llama(nn.Module):
    """A causal language model: logits of the next token at every position, and a cache for generation.

    Args:
        config: sizes and choices.
        attend: the attention function of all layers.

    Example:
        >>> model = Llama(LlamaConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=32))
        >>> model(torch.tensor([[7, 8, 9]])).shape
        torch.Size([1, 3, 50])
    """

    def __init__(self, config: LlamaConfig, *, attend: Callable[..., Tensor] = efficient_attention) -> None:
        super().__init__()
        self.config = config
        frequencies = rotary_frequencies(config.d_head or config.d_model // config.n_heads, config.rotary_base)
        if isinstance(config.rotary_scaling, RotaryScaling):
            frequencies = config.rotary_scaling(frequencies)
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model, factor=1.0)
        self.rotary = RotaryPositions(2 * len(frequencies), frequencies=frequencies)
        self.layers = nn.ModuleList(self.make_layer(config, attend) for _ in range(config.n_layers))
        self.final_norm = RMSNorm(config.d_model, eps=config.norm_eps)
        self.to_logits = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if config.tie_embeddings:
            self.to_logits.weight = self.embedding.table.weight
        for parameter in self.parameters():
            if parameter.ndim == 2:  # the papers do not say how weights start; so do GPT-2's
                nn.init.normal_(parameter, std=0.02)

    def make_layer(self, config: LlamaConfig, attend: Callable[..., Tensor]) -> LlamaBlock:
        """One layer; a family that is a Llama but for some part puts its own in here (`ttutor.variants.llama_kin`)."""
        return LlamaBlock(
            config.d_model,
            config.n_heads,
            config.d_ff,
            n_kv_heads=config.n_kv_heads,
            d_head=config.d_head,
            make_norm=partial(RMSNorm, eps=config.norm_eps),
            attend=attend,
        )

    def forward(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "batch tokens vocab_size"]:
        """Logits of the token after each token; arguments as for `decode`."""
        return self.project(self.decode(token_ids, is_real, cache))

    def decode(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """The last hidden vectors, from which `project` makes logits.

        Args:
            token_ids: the text; with a cache, only its new tokens.
            is_real: which of these tokens are no padding, wherever it stands; all of them when left out.
            cache: earlier tokens; it is extended by the new ones.
        """
        check_shapes(token_ids=(token_ids, "batch tokens"))
        is_real = torch.ones_like(token_ids, dtype=torch.bool) if is_real is None else is_real
        positions, mask = place_tokens(cache, is_real, self.config, token_ids=token_ids)
        if self.config.window is not None:
            mask = mask & _within(self.config.window, positions, positions if cache is None else cache.positions())
        rotation = self.rotary(positions)  # one for all layers
        hidden = self.embedding(token_ids)
        for layer, layer_cache in zip(self.layers, layer_caches(cache, len(self.layers)), strict=True):
            hidden = layer(hidden, mask, layer_cache, rotation=rotation)
        return self.final_norm(hidden)

    def project(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... vocab_size"]:
        """Logits over the vocabulary for each hidden vector."""
        return self.to_logits(hidden)


def _within(
    window: int, query_positions: Int[Tensor, "batch queries"], key_positions: Int[Tensor, "batch keys"]
) -> Bool[Tensor, "batch 1 queries keys"]:
    """Which keys stand fewer than ``window`` places back, counted in real tokens, so that padding takes no room."""
    distance = rearrange(query_positions, "batch queries -> batch 1 queries 1") - rearrange(
        key_positions, "batch keys -> batch 1 1 keys"
    )
    return distance < window
