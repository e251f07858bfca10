"""T5 itself: two stacks, one table of embeddings, a projection."""

from collections.abc import Callable

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache, real_positions
from ttutor.efficient import efficient_attention
from ttutor.embeddings import TokenEmbedding, extend_cache
from ttutor.generation import EncoderDecoder
from ttutor.masks import Mask
from ttutor.positions import RelativePositions
from ttutor.shapes import check_shapes
from ttutor.variants.t5.blocks import T5Block, T5Stack
from ttutor.variants.t5.config import T5Config


class T5(EncoderDecoder):
    """Reads a text and writes a text; the pieces are public as in `ttutor.transformer.Transformer`.

    Args:
        config: sizes and choices.
        attend: the attention function of all layers.

    Example:
        >>> config = T5Config(vocab_size=50, d_model=12, d_head=5, n_heads=3, n_layers=2, d_ff=32)
        >>> source_ids, target_ids = torch.tensor([[7, 8, 9, 1]]), torch.tensor([[0, 11, 12]])
        >>> T5(config)(source_ids, target_ids).shape
        torch.Size([1, 3, 50])
    """

    def __init__(self, config: T5Config, *, attend: Callable[..., Tensor] = efficient_attention) -> None:
        super().__init__()
        self.config = config
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model, factor=1.0)
        self.encoder = _stack(config, attend, is_decoder=False)
        self.decoder = _stack(config, attend, is_decoder=True)
        self.to_logits = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self._initialise()
        if config.tie_embeddings:
            self.to_logits.weight = self.embedding.table.weight

    def _initialise(self) -> None:
        """Start each map so that it keeps the size of what it reads, and queries smaller, since scores are not scaled.

        In the sublayers as in the authors' code; the paper does not say how weights start.
        """
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
                if name.endswith("to_query"):
                    module.weight.data *= self.config.d_head**-0.5
        nn.init.normal_(self.embedding.table.weight)

    def forward(
        self,
        source_ids: Int[Tensor, "batch source"],
        target_ids: Int[Tensor, "batch target"],
        *,
        source_is_real: Bool[Tensor, "batch source"] | None = None,
        is_real: Bool[Tensor, "batch target"] | None = None,
    ) -> Float[Tensor, "batch target vocab_size"]:
        """Logits of the next token at every position of the target.

        Args:
            source_ids: the text to read.
            target_ids: the text to continue, beginning with ``pad_id``.
            source_is_real: which source tokens count; those that are not ``pad_id`` when left out.
            is_real: which target tokens count; all when left out.
        """
        check_shapes(source_ids=(source_ids, "batch source"), target_ids=(target_ids, "batch target"))
        source_is_real = source_ids != self.config.pad_id if source_is_real is None else source_is_real
        memory = self.encode(source_ids, source_is_real)
        memory_mask = rearrange(source_is_real, "batch source -> batch 1 1 source")
        return self.project(self.decode(target_ids, memory, memory_mask, is_real=is_real))

    def encode(
        self, source_ids: Int[Tensor, "batch source"], is_real: Bool[Tensor, "batch source"] | None = None
    ) -> Float[Tensor, "batch source d_model"]:
        """The memory: one vector for each source token, informed by all the others.

        Args:
            source_ids: the text to read.
            is_real: which of its tokens count; those that are not ``pad_id`` when left out.
        """
        is_real = source_ids != self.config.pad_id if is_real is None else is_real
        check_shapes(source_ids=(source_ids, "batch source"), is_real=(is_real, "batch source"))
        mask = rearrange(is_real, "batch source -> batch 1 1 source")
        return self.encoder(self.embedding(source_ids), real_positions(is_real), mask=mask)

    def decode(
        self,
        target_ids: Int[Tensor, "batch target"],
        memory: Float[Tensor, "batch source d_model"],
        memory_mask: Mask | Bool[Tensor, "..."] | None = None,
        cache: DecoderCache | None = None,
        *,
        is_real: Bool[Tensor, "batch target"] | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """The decoder's last hidden vectors, from which `project` makes logits.

        Args:
            target_ids: the tokens to decode; with a cache, only the new ones.
            memory: what `encode` gave.
            memory_mask: which of its tokens are real, as `ttutor.masks.padding_mask` says.
            cache: earlier tokens; it is extended by the new ones.
            is_real: which of the tokens count; all when left out, since ``pad_id`` starts a target.
        """
        check_shapes(target_ids=(target_ids, "batch tokens"))
        is_real = torch.ones_like(target_ids, dtype=torch.bool) if is_real is None else is_real
        check_shapes(target_ids=(target_ids, "batch target"), memory=(memory, "batch source d_model"))
        positions, real_keys = extend_cache(cache, is_real, self.config, target_ids=target_ids)
        return self.decoder(self.embedding(target_ids), positions, memory, real_keys, memory_mask, cache)

    def project(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... vocab_size"]:
        """Logits over the vocabulary for each hidden vector."""
        return self.to_logits(hidden * self.config.d_model**-0.5 if self.config.tie_embeddings else hidden)


def _stack(config: T5Config, attend: Callable[..., Tensor], *, is_decoder: bool) -> T5Stack:
    positions = RelativePositions(
        config.n_heads,
        n_buckets=config.n_buckets,
        max_distance=config.max_distance,
        is_bidirectional=not is_decoder,
    )
    blocks = [
        T5Block(
            config.d_model,
            config.n_heads,
            config.d_ff,
            d_head=config.d_head,
            feed_forward=config.feed_forward,
            cross_attention=is_decoder,
            dropout=config.dropout,
            attend=attend,
        )
        for _ in range(config.n_layers)
    ]
    return T5Stack(config.d_model, positions, blocks, dropout=config.dropout)
