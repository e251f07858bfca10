"""BERT: an encoder alone, that reads a whole text at once and is trained to fill in what was masked.

Devlin et al. (2019). What is left of the Transformer of 2017 when the decoder is taken away. Against its encoder:
learned positions for the waves, an embedding of the segment, a norm on the sum of the embeddings, GELU for ReLU. `BERT`
gives hidden vectors; what is made of them stands on top: here the two tasks of pre-training, in `ttutor.variants.heads`
the classifiers of texts and of tokens.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.cache import real_positions
from ttutor.configs import Config
from ttutor.efficient import efficient_attention
from ttutor.embeddings import Embeddings, TokenEmbedding, check_ids
from ttutor.encoder import Encoder
from ttutor.layers import ACTIVATIONS, LayerNorm
from ttutor.positions import LearnedPositions
from ttutor.shapes import check_shapes
from ttutor.transformer.blueprint import Blueprint, Projection, Stack
from ttutor.variants.heads import MaskedTokenHead, Pooler, first_token, initialise_normal

__all__ = ["BERT", "BERTConfig", "BERTForMaskedLM", "BERTForPreTraining", "PreTrainingLogits"]

make_norm = partial(LayerNorm, eps=1e-12)  # the epsilon of the authors' code


@dataclass(frozen=True, kw_only=True)
class BERTConfig(Config):
    """The sizes of a `BERT`; the defaults are those of BERT-base.

    Args:
        vocab_size: number of tokens; by default that of the English vocabulary without capitals.
        d_model: width of the stream.
        n_heads: attention heads of each layer.
        n_layers: number of layers.
        d_ff: inner width of the feed-forward networks; four times ``d_model`` in all published sizes.
        max_len: the longest text, in tokens.
        n_segments: how many segments a text may have: two, the first and the second sentence.
        dropout: probability of dropping a feature of the embeddings and of what each sublayer writes, while training.
        activation: of the feed-forward networks, one of `ttutor.layers.ACTIVATIONS`.

    Differs from the paper: BERT drops attention weights as well, while training.

    Raises:
        ValueError: a value is out of range; the message names each.

    Example:
        >>> BERTConfig.large().n_layers
        24
    """

    vocab_size: int = 30_522
    d_model: int = 768
    n_heads: int = 12
    n_layers: int = 12
    d_ff: int = 3072
    max_len: int = 512
    n_segments: int = 2
    dropout: float = 0.1
    activation: str = "gelu"

    def faults(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.not_positive("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len", "n_segments")
        yield from self.not_multiple("d_model", "n_heads")
        yield from self.not_probability("dropout")
        yield from self.not_among("activation", ACTIVATIONS)

    @classmethod
    def base(cls, **changes: object) -> "BERTConfig":
        """BERT-base, 110 M parameters: Devlin et al. (2019), section 3."""
        return cls(**changes)

    @classmethod
    def large(cls, **changes: object) -> "BERTConfig":
        """BERT-large, 340 M parameters: Devlin et al. (2019), section 3."""
        return cls(**{"d_model": 1024, "n_heads": 16, "n_layers": 24, "d_ff": 4096, **changes})

    def blueprint(self) -> Blueprint:
        """What a `BERT` with its pooler is made of, for `ttutor.transformer.account`."""
        stack = Stack(
            name="encoder",
            n_layers=self.n_layers,
            d_model=self.d_model,
            n_heads=self.n_heads,
            n_kv_heads=self.n_heads,
            d_head=self.d_model // self.n_heads,
            d_ff=self.d_ff,
            activation=self.activation,
            norm="post",
            final_norm=False,
            dropout=self.dropout,
        )
        return Blueprint(
            name="BERT",
            n_tokens=self.max_len,
            stacks=(stack,),
            projections=(Projection(part="other", d_in=self.d_model, d_out=self.d_model, acts_on="first token"),),
            further={
                "embeddings": (self.vocab_size + self.max_len + self.n_segments) * self.d_model,
                "norms": 2 * self.d_model,  # the one between the embeddings and the first layer
            },
        )


class BERT(nn.Module):
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
        self.config = config
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
            dropout=config.dropout,
            norm="post",
            activation=config.activation,
            make_norm=make_norm,
            attend=attend,
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

        Raises:
            ShapeError: the three do not have the two axes batch and tokens alike.
            ValueError: there are more tokens than ``max_len``.
        """
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


class BERTForMaskedLM(nn.Module):
    """Fills in masked tokens: a `BERT` and a `MaskedTokenHead`.

    A trainer that needs the logits of the masked tokens only calls ``model.bert`` and gives ``model.head`` those rows.
    Devlin et al. (2019), section 3.1, task 1.

    Args:
        bert: the encoder; it is taken as it is, not copied.
    """

    def __init__(self, bert: BERT) -> None:
        super().__init__()
        self.bert = bert
        self.head = MaskedTokenHead(bert.embeddings.token.table, bert.config.activation)

    def forward(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        segment_ids: Int[Tensor, "batch tokens"] | None = None,
    ) -> Float[Tensor, "batch tokens vocab_size"]:
        """Logits of what stands at each token; arguments as for `BERT.forward`."""
        return self.head(self.bert(token_ids, is_real, segment_ids))


class PreTrainingLogits(NamedTuple):
    """What the two tasks of pre-training answer."""

    tokens: Float[Tensor, "batch tokens vocab_size"]
    next_sentence: Float[Tensor, "batch 2"]


class BERTForPreTraining(nn.Module):
    """Both tasks of pre-training at once: masked tokens, and whether the second sentence follows the first.

    Devlin et al. (2019), section 3.1. Class 0 of the second task means that it follows, as in the authors' code.

    Args:
        bert: the encoder, with its pooler; it is taken as it is, not copied.

    Example:
        >>> bert = BERT(BERTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> tokens, next_sentence = BERTForPreTraining(bert)(torch.tensor([[2, 7, 4, 3]]))
        >>> tokens.shape, next_sentence.shape
        (torch.Size([1, 4, 50]), torch.Size([1, 2]))
    """

    def __init__(self, bert: BERT) -> None:
        super().__init__()
        self.bert = bert
        self.head = MaskedTokenHead(bert.embeddings.token.table, bert.config.activation)
        self.next_sentence = initialise_normal(nn.Linear(bert.config.d_model, 2))

    def forward(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        segment_ids: Int[Tensor, "batch tokens"] | None = None,
    ) -> PreTrainingLogits:
        """Logits of both tasks; arguments as for `BERT.forward`."""
        hidden = self.bert(token_ids, is_real, segment_ids)
        return PreTrainingLogits(self.head(hidden), self.next_sentence(self.bert.pool(hidden, is_real)))
