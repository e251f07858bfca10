"""The modern decoder: a block of two sublayers, the parts that a config names, and the model that stacks them."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache, LayerCache, layer_caches
from ttutor.efficient import efficient_attention
from ttutor.embeddings import TokenEmbedding, extend_cache
from ttutor.generation import DecoderOnly
from ttutor.layers import ClampedFeedForward, GatedFeedForward, OutputNorm, PreNorm, RMSNorm, SandwichNorm
from ttutor.masks import CAUSAL, Mask, combine_masks
from ttutor.multihead import MultiHeadAttention
from ttutor.positions import RotaryPositions, RotaryScaling, Rotation, rotary_frequencies
from ttutor.positions.scaling import YarnScaling
from ttutor.shapes import check_shapes
from ttutor.transformer.blueprint import Latent
from ttutor.variants.experts import BiasedRouter, MixtureOfExperts, Router
from ttutor.variants.latent import LatentAttention
from ttutor.variants.modern_decoder.config import ExpertsConfig, ModernDecoderConfig
from ttutor.variants.scores import AttentionSinks, SoftCap, soft_cap

AROUND = {"before": PreNorm, "after": OutputNorm, "both": SandwichNorm}


class DecoderBlock(nn.Module):
    r"""Causal self-attention with turned queries and keys, then a feed-forward network, each in a residual connection.

    $$y = x + \mathrm{Attention}(\mathrm{Norm}(x)), \qquad z = y + \mathrm{FFN}(\mathrm{Norm}(y))$$

    Touvron et al. (2023a), section 2.2.

    Args:
        self_attention: the first sublayer, a `MultiHeadAttention` or what stands for it.
        feed_forward: the second, on each token by itself.
        make_around: makes the residual connection of each.

    Example:
        >>> attention = MultiHeadAttention(d_model=12, n_heads=3, bias=False)
        >>> block = DecoderBlock(attention, GatedFeedForward(12, 32), partial(PreNorm, 12, make_norm=RMSNorm))
        >>> block(torch.randn(1, 2, 12), rotation=RotaryPositions(d_head=4)(torch.tensor([[0, 1]]))).shape
        torch.Size([1, 2, 12])
    """

    def __init__(
        self, self_attention: nn.Module, feed_forward: nn.Module, make_around: Callable[[], nn.Module]
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.around_self_attention = make_around()
        self.around_feed_forward = make_around()

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
            hidden,
            lambda stream: self.self_attention(stream, mask=combine_masks(CAUSAL, mask), cache=own, rotation=rotation),
        )
        return self.around_feed_forward(hidden, self.feed_forward)


class NormAcrossHeads(nn.Module):
    """An RMSNorm over the features of all heads together, for queries or keys: OLMo 2's.

    Args:
        n_heads: how many heads there are.
        d_head: width of each.
        eps: as for `RMSNorm`.
    """

    def __init__(self, n_heads: int, d_head: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.norm = RMSNorm(n_heads * d_head, eps=eps)

    def forward(
        self, vectors: Float[Tensor, "batch heads tokens d_head"]
    ) -> Float[Tensor, "batch heads tokens d_head"]:
        """Normalise each token's heads as one vector."""
        together = self.norm(rearrange(vectors, "batch heads tokens d_head -> batch tokens (heads d_head)"))
        return rearrange(together, "batch tokens (heads d_head) -> batch heads tokens d_head", heads=vectors.shape[1])


def make_attention(config: ModernDecoderConfig, attend: Callable[..., Tensor]) -> nn.Module:
    """Self-attention of one layer: grouped or latent, with the caps, sinks and norms that the config names."""
    d_head, yarn = config.d_head or config.d_model // config.n_heads, config.rotary_scaling
    if config.score_cap is not None:
        attend = SoftCap(config.score_cap, attend=attend)
    if config.has_sinks:
        attend = AttentionSinks(config.n_heads, attend=attend)
    if isinstance(config.latent, Latent):
        widths: dict[str, Any] = config.latent.to_dict()
        latent = LatentAttention(config.d_model, config.n_heads, **widths, attend=attend)
        if isinstance(yarn, YarnScaling):
            latent.scale = yarn.scale(config.latent.d_head + config.latent.d_rotary)
        return latent
    d_scale = config.d_scale or d_head
    each_head = partial(RMSNorm, eps=config.norm_eps) if config.qk_norm == "each head" else None
    attention = MultiHeadAttention(
        config.d_model,
        config.n_heads,
        config.n_kv_heads,
        d_head=d_head,
        bias=config.attention_bias,
        scale=yarn.scale(d_scale) if isinstance(yarn, YarnScaling) else 1 / math.sqrt(d_scale),
        make_norm=each_head,
        attend=attend,
    )
    if config.qk_norm == "all heads":
        attention.query_norm = NormAcrossHeads(attention.n_heads, d_head, config.norm_eps)
        attention.key_norm = NormAcrossHeads(attention.n_kv_heads, d_head, config.norm_eps)
    return attention


def make_feed_forward(config: ModernDecoderConfig, layer: int) -> nn.Module:
    """The second sublayer of this layer: a gated network, or a mixture of them."""
    make_network = partial(GatedFeedForward, config.d_model, activation=config.activation)
    experts = cast(ExpertsConfig | None, config.experts)
    if experts is None or layer < experts.n_dense_layers:
        return make_network(config.d_ff)
    sizes = (config.d_model, experts.n_experts, experts.n_chosen)
    if experts.is_balanced:
        groups = {"n_groups": experts.n_groups, "n_groups_chosen": experts.n_groups_chosen}
        router: Router = BiasedRouter(*sizes, factor=experts.factor, **groups)
    else:
        router = Router(*sizes, renormalise=experts.renormalise, bias=experts.bias)
    make_expert = partial(ClampedFeedForward, config.d_model) if experts.bias else make_network
    return MixtureOfExperts(
        router,
        partial(make_expert, experts.d_ff),
        shared=make_network(experts.n_shared * experts.d_ff) if experts.n_shared else None,
    )


def make_rotary(config: ModernDecoderConfig, *, is_local: bool) -> RotaryPositions:
    """The turning of queries and keys in layers with a window, or in those without."""
    has_own = is_local and config.local_rotary_base is not None
    frequencies = rotary_frequencies(
        config.d_rotary, cast(float, config.local_rotary_base) if has_own else config.rotary_base
    )
    if isinstance(config.rotary_scaling, RotaryScaling | YarnScaling) and not has_own:
        frequencies = config.rotary_scaling(frequencies)
    layout = "half" if config.latent is None else "interleaved"
    return RotaryPositions(config.d_rotary, frequencies=frequencies, layout=layout)


class ModernDecoder(DecoderOnly):
    """A causal language model: logits of the next token at every position, and a cache for generation.

    Args:
        config: sizes and parts.
        attend: the attention function of all layers.

    Example:
        >>> model = ModernDecoder(ModernDecoderConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=32))
        >>> model(torch.tensor([[7, 8, 9]])).shape
        torch.Size([1, 3, 50])
    """

    def __init__(self, config: ModernDecoderConfig, *, attend: Callable[..., Tensor] = efficient_attention) -> None:
        super().__init__()
        self.config = config
        make_norm = partial(RMSNorm, eps=config.norm_eps)
        make_around = partial(AROUND[config.norm_place], config.d_model, make_norm=make_norm)
        factor = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model, factor=factor)
        self.rotary, self.local_rotary = (make_rotary(config, is_local=is_local) for is_local in (False, True))
        self.layers = nn.ModuleList(
            DecoderBlock(make_attention(config, attend), make_feed_forward(config, layer), make_around)
            for layer in range(config.n_layers)
        )
        self.final_norm = make_norm(config.d_model)
        self.to_logits = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if config.tie_embeddings:
            self.to_logits.weight = self.embedding.table.weight
        for parameter in self.parameters():
            if parameter.ndim == 2:  # the papers do not say how weights start; so do GPT-2's
                nn.init.normal_(parameter, std=0.02)

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
            cache: earlier tokens; it is extended by the new ones. If it was made with ``windows=config.windows``, it
                keeps no more than these reach; they count real tokens, so padding must then stand on the left.
        """
        check_shapes(token_ids=(token_ids, "batch tokens"))
        is_real = torch.ones_like(token_ids, dtype=torch.bool) if is_real is None else is_real
        positions, mask = extend_cache(cache, is_real, self.config, token_ids=token_ids)
        seen: dict[int | None, tuple[Tensor, Rotation]] = {
            None: (mask, self.rotary(positions))
        }  # mask and turns of layers without a window, and with it
        if self.config.window is not None:
            near = _within(self.config.window, positions, positions if cache is None else cache.positions())
            seen[self.config.window] = (mask & near, self.local_rotary(positions))
        hidden, n_new = self.embedding(token_ids), token_ids.shape[-1]
        caches = layer_caches(cache, len(self.layers))
        for layer, window, layer_cache in zip(self.layers, self.config.windows, caches, strict=True):
            mask, rotation = seen[window]
            if layer_cache is not None:  # with a window it has dropped the first keys
                mask = mask[..., -len(layer_cache.self_attention) - n_new :]
            hidden = layer(hidden, mask, layer_cache, rotation=rotation)
        return self.final_norm(hidden)

    def project(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... vocab_size"]:
        """Logits over the vocabulary for each hidden vector."""
        logits = self.to_logits(hidden)
        return logits if self.config.logit_cap is None else soft_cap(logits, self.config.logit_cap)


def _within(
    window: int, query_positions: Int[Tensor, "batch queries"], key_positions: Int[Tensor, "batch keys"]
) -> Bool[Tensor, "batch 1 queries keys"]:
    """Which keys stand fewer than ``window`` places back, counted in real tokens, so that padding takes no room."""
    distance = rearrange(query_positions, "batch queries -> batch 1 queries 1") - rearrange(
        key_positions, "batch keys -> batch 1 1 keys"
    )
    return distance < window
