"""The encoder: embeddings of token, position and segment, layers, and the pooled vector of the first token."""

from collections.abc import Callable
from functools import partial

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.cache import real_positions
from ttutor.efficient import efficient_attention
from ttutor.embeddings import Embeddings, TokenEmbedding, check_ids
from ttutor.encoder import Encoder, EncoderLayer
from ttutor.layers import LayerNorm
from ttutor.names import AnsweringModel
from ttutor.positions import LearnedPositions
from ttutor.shapes import check_shapes
from ttutor.variants.bert.config import BERTConfig
from ttutor.variants.heads import Pooler, first_token, initialise_normal

make_norm = partial(LayerNorm, eps=1e-12)  # the epsilon of the authors' code


class BERT(AnsweringModel, nn.Module):
    """Gives each token of a text a hidden vector that is informed by all the others, before and after it.

    Args:
        config: sizes and choices.
        pooler: whether to have the `Pooler` that next-sentence prediction trains; a model of masked tokens needs none.
        attend: the attention function of all layers.

    Example:
        >>> model = BERT(BERTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> hidden = model(torch.tensor([[2, 7, 3, 8, 9, 3]]), segment_ids=torch.tensor([[0, 0, 0, 1, 1, 1]]))
        >>> hidden.shape, model.pool(hidden).shape
        (torch.Size([1, 6, 12]), torch.Size([1, 12]))
    """

    def __init__(
        self,
        config: BERTConfig,
        *,
        pooler: bool = True,
        attend: Callable[..., Tensor] = efficient_attention,
    ) -> None:
        super().__init__()
        self.config = BERTConfig.checked(config)
        token = TokenEmbedding(config.vocab_size, config.d_model, factor=1.0)
        self.embeddings = Embeddings(token, LearnedPositions(config.d_model, config.max_len))
        self.segments = nn.Embedding(config.n_segments, config.d_model)
        self.norm = make_norm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(
            config.d_model,
            config.n_heads,
            config.d_ff,
            config.n_layers,
            norm="post",
            make_norm=make_norm,
            make_layer=partial(EncoderLayer, dropout=config.dropout, activation=config.activation, attend=attend),
        )
        self.pooler = Pooler(config.d_model) if pooler else nn.Identity()
        initialise_normal(self)

    def forward(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        segment_ids: Int[Tensor, "batch tokens"] | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """The last hidden vectors.

        Positions number the real tokens of each text, wherever its padding stands. Hugging Face numbers all tokens; the
        two are the same where the padding stands on the right, as BERT's does.

        Args:
            token_ids: the texts, each beginning with ``[CLS]``.
            is_real: which tokens are no padding; all of them when left out.
            segment_ids: the segment of each token; all 0 when left out.
        """
        check_shapes(token_ids=(token_ids, "batch tokens"))
        is_real = torch.ones_like(token_ids, dtype=torch.bool) if is_real is None else is_real
        segment_ids = torch.zeros_like(token_ids) if segment_ids is None else segment_ids
        axes = "batch tokens"
        check_shapes(token_ids=(token_ids, axes), is_real=(is_real, axes), segment_ids=(segment_ids, axes))
        self.embeddings.check_length(token_ids.shape[-1])
        check_ids("segment_ids", segment_ids, self.config.n_segments)
        embedded = self.embeddings(token_ids, real_positions(is_real)) + self.segments(segment_ids)
        mask = rearrange(is_real, "batch tokens -> batch 1 1 tokens")
        return self.encoder(self.dropout(self.norm(embedded)), mask)

    def pool(
        self, hidden: Float[Tensor, "batch tokens d_model"], is_real: Bool[Tensor, "batch tokens"] | None = None
    ) -> Float[Tensor, "batch d_model"]:
        """One vector for each text: that of its first token, through the pooler if there is one."""
        return self.pooler(first_token(hidden, is_real))
