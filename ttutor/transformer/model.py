"""The model: embeddings, encoder, decoder and output projection, put together."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache, real_positions
from ttutor.decoder import Decoder, DecoderLayer
from ttutor.efficient import efficient_attention
from ttutor.embeddings import Embeddings, TokenEmbedding, extend_cache
from ttutor.encoder import Encoder, EncoderLayer
from ttutor.generation import EncoderDecoder
from ttutor.layers.unfilled import Unfilled
from ttutor.masks import Mask, padding_mask
from ttutor.positions import LearnedPositions, SinusoidalPositions
from ttutor.shapes import check_shapes
from ttutor.transformer.config import TransformerConfig

POSITIONS: dict[str, type[nn.Module]] = {"sinusoidal": SinusoidalPositions, "learned": LearnedPositions}


class Transformer(EncoderDecoder):
    """Reads a source sequence and predicts, for every position of a target sequence, the token that comes next.

    Vaswani et al. (2017), figure 1. The pieces are public, so that a decoder can run the encoder once and a trainer can
    project only the positions that count: `encode`, `decode`, `project`.

    Args:
        config: sizes and choices.
        attend: the attention function of all layers.

    Example:
        >>> import torch
        >>> model = Transformer(TransformerConfig.tiny(vocab_size=50))
        >>> source_ids, target_ids = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])
        >>> model(source_ids, target_ids).shape
        torch.Size([1, 3, 50])
    """

    def __init__(self, config: TransformerConfig, *, attend: Callable[..., Tensor] = efficient_attention) -> None:
        super().__init__()
        self.config = TransformerConfig.checked(config)
        sizes = (config.d_model, config.n_heads, config.d_ff, config.n_layers)
        layer: dict[str, Any] = {"dropout": config.dropout, "activation": config.activation, "attend": attend}
        token = TokenEmbedding(config.vocab_size, config.d_model)
        position = POSITIONS[config.positions]
        self.source_embeddings = Embeddings(token, position(config.d_model, config.max_len), config.dropout)
        # One table, but in a module of its own: functional_call leaves a shared one changed.
        with torch.device("meta"), Unfilled():
            target_token = TokenEmbedding(config.vocab_size, config.d_model)
        target_token.table.weight = token.table.weight
        self.target_embeddings = Embeddings(target_token, position(config.d_model, config.max_len), config.dropout)
        self.encoder = Encoder(*sizes, norm=config.norm, make_layer=partial(EncoderLayer, **layer))
        self.decoder = Decoder(*sizes, norm=config.norm, make_layer=partial(DecoderLayer, **layer))
        self.to_logits = nn.Linear(config.d_model, config.vocab_size, bias=config.logits_bias)
        if config.logits_bias:
            nn.init.zeros_(self.to_logits.bias)
        if config.tie_embeddings:
            self.to_logits.weight = token.table.weight
        else:
            nn.init.xavier_uniform_(self.to_logits.weight)

    def forward(
        self,
        source_ids: Int[Tensor, "batch source"],
        target_ids: Int[Tensor, "batch target"],
        *,
        is_real: Bool[Tensor, "batch target"] | None = None,
    ) -> Float[Tensor, "batch target vocab_size"]:
        """Logits of the next token at every position of the target; tokens equal to ``pad_id`` count as nothing.

        Args:
            source_ids: the sentence to read, padded with ``pad_id`` anywhere.
            target_ids: the sentence to continue, beginning with the start token.
            is_real: which target tokens count, as for `decode`.
        """
        check_shapes(source_ids=(source_ids, "batch source"), target_ids=(target_ids, "batch target"))
        memory = self.encode(source_ids)
        memory_mask = padding_mask(source_ids, self.config.pad_id)
        return self.project(self.decode(target_ids, memory, memory_mask, is_real=is_real))

    def encode(self, source_ids: Int[Tensor, "batch source"]) -> Float[Tensor, "batch source d_model"]:
        """The memory: one vector for each source token, informed by all the others."""
        check_shapes(source_ids=(source_ids, "batch source"))
        is_real = source_ids != self.config.pad_id
        self.source_embeddings.check_length(source_ids.shape[-1])
        hidden = self.source_embeddings(source_ids, real_positions(is_real))
        return self.encoder(hidden, padding_mask(source_ids, self.config.pad_id))

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
            is_real: which of the tokens count; those that are not ``pad_id`` when left out. Models that start a target
                with the padding token, as Marian's do, need it said.
        """
        check_shapes(target_ids=(target_ids, "batch target"), memory=(memory, "batch source d_model"))
        is_real = target_ids != self.config.pad_id if is_real is None else is_real
        positions, real_keys = extend_cache(cache, is_real, self.config, self.target_embeddings, target_ids=target_ids)
        hidden = self.target_embeddings(target_ids, positions)
        return self.decoder(hidden, memory, real_keys, memory_mask, cache)

    def project(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... vocab_size"]:
        """Logits over the vocabulary for each hidden vector."""
        return self.to_logits(hidden)

    def n_parameters(self) -> int:
        """How many numbers are learned; a shared table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())
