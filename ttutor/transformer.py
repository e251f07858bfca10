"""The Transformer of "Attention Is All You Need": encoder, decoder, embeddings and output projection, put together."""

from collections.abc import Callable
from dataclasses import dataclass, fields

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import DecoderCache, real_positions
from ttutor.decoder import Decoder
from ttutor.embeddings import Embeddings, TokenEmbedding
from ttutor.encoder import Encoder
from ttutor.masks import padding_mask
from ttutor.positions import LearnedPositions, SinusoidalPositions
from ttutor.shapes import check_shapes

__all__ = ["Transformer", "TransformerConfig"]

POSITIONS: dict[str, type[nn.Module]] = {"sinusoidal": SinusoidalPositions, "learned": LearnedPositions}


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The sizes and choices of a `Transformer`. Source and target share one vocabulary, as in the paper.

    Args:
        vocab_size: number of tokens.
        d_model: width of the stream.
        n_heads: attention heads of each layer.
        n_layers: layers of the encoder, and as many of the decoder.
        d_ff: inner width of the feed-forward networks.
        dropout: probability of dropping a feature of the embeddings and of what each sublayer writes, while training
            (the paper, section 5.4).
        norm: where the norm of a residual connection stands, ``"post"`` (the paper) or ``"pre"``.
        positions: ``"sinusoidal"`` or ``"learned"``.
        max_len: the longest sequence, in tokens.
        pad_id: the token id that means "nothing here".
        tie_embeddings: whether the output projection is the embedding table (the paper, section 3.4; Press and Wolf
            2017), which saves ``vocab_size * d_model`` parameters.

    Raises:
        ValueError: a value is out of range; the message names each.

    Example:
        >>> TransformerConfig.base().d_model
        512
        >>> TransformerConfig(vocab_size=10, d_model=30, n_heads=4)
        Traceback (most recent call last):
        ...
        ValueError: TransformerConfig: d_model must be a multiple of n_heads (d_model=30, n_heads=4)
    """

    vocab_size: int
    d_model: int = 512
    n_heads: int = 8
    n_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    norm: str = "post"
    positions: str = "sinusoidal"
    max_len: int = 1024
    pad_id: int = 0
    tie_embeddings: bool = True

    def __post_init__(self) -> None:
        faults = [
            f"{name} must be a positive integer ({name}={getattr(self, name)!r})"
            for name in ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")
            if type(getattr(self, name)) is not int or getattr(self, name) < 1
        ]
        if not faults and self.d_model % self.n_heads:
            faults.append(f"d_model must be a multiple of n_heads (d_model={self.d_model}, n_heads={self.n_heads})")
        if not isinstance(self.dropout, int | float) or not 0 <= self.dropout < 1:
            faults.append(f"dropout must be at least 0 and below 1 (dropout={self.dropout!r})")
        if self.norm not in ("post", "pre"):
            faults.append(f'norm must be "post" or "pre" (norm={self.norm!r})')
        if self.positions not in POSITIONS:
            faults.append(f"positions must be one of {sorted(POSITIONS)} (positions={self.positions!r})")
        if not faults and not (type(self.pad_id) is int and 0 <= self.pad_id < self.vocab_size):
            faults.append(f"pad_id must be a token id (pad_id={self.pad_id!r}, vocab_size={self.vocab_size})")
        if faults:
            raise ValueError(f"{type(self).__name__}: " + "; ".join(faults))

    @classmethod
    def base(cls, vocab_size: int = 37_000, **changes: object) -> "TransformerConfig":
        """The base model of Vaswani et al. (2017), table 3; 37,000 tokens as in section 5.1."""
        return cls(**{"vocab_size": vocab_size, **changes})

    @classmethod
    def tiny(cls, vocab_size: int = 10_000, **changes: object) -> "TransformerConfig":
        """The Transformer-Tiny that Wu et al. (2021) train on Multi30k: 4+4 layers, about 2.6 million parameters.

        Differs from the paper: the norm stands before each sublayer and dropout is 0.2, as in our trainer's recipe.
        """
        sizes = {
            "d_model": 128,
            "n_heads": 4,
            "n_layers": 4,
            "d_ff": 256,
            "dropout": 0.2,
            "norm": "pre",
            "max_len": 256,
        }
        return cls(**{"vocab_size": vocab_size, **sizes, **changes})

    def to_dict(self) -> dict[str, object]:
        """The config as plain values, for a checkpoint's JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Transformer(nn.Module):
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

    def __init__(
        self, config: TransformerConfig, *, attend: Callable[..., Tensor] = scaled_dot_product_attention
    ) -> None:
        super().__init__()
        self.config = config
        stack = {
            "d_model": config.d_model,
            "n_heads": config.n_heads,
            "d_ff": config.d_ff,
            "n_layers": config.n_layers,
            "dropout": config.dropout,
            "norm": config.norm,
            "attend": attend,
        }
        token = TokenEmbedding(config.vocab_size, config.d_model)
        position = POSITIONS[config.positions]
        self.source_embeddings = Embeddings(token, position(config.d_model, config.max_len), config.dropout)
        self.target_embeddings = Embeddings(token, position(config.d_model, config.max_len), config.dropout)
        self.encoder = Encoder(**stack)
        self.decoder = Decoder(**stack)
        self.to_logits = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if config.tie_embeddings:
            self.to_logits.weight = token.table.weight
        else:
            nn.init.xavier_uniform_(self.to_logits.weight)

    def forward(
        self, source_ids: Int[Tensor, "batch source"], target_ids: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocab_size"]:
        """Logits of the next token at every position of the target; tokens equal to ``pad_id`` count as nothing.

        Args:
            source_ids: the sentence to read, padded with ``pad_id`` anywhere.
            target_ids: the sentence to continue, beginning with the start token.

        Raises:
            ShapeError: the two differ in batch size.
            ValueError: a sequence is longer than ``max_len``.
        """
        check_shapes(source_ids=(source_ids, "batch source"), target_ids=(target_ids, "batch target"))
        memory = self.encode(source_ids)
        memory_mask = padding_mask(source_ids, self.config.pad_id)
        return self.project(self.decode(target_ids, memory, memory_mask))

    def encode(self, source_ids: Int[Tensor, "batch source"]) -> Float[Tensor, "batch source d_model"]:
        """The memory: one vector for each source token, informed by all the others.

        Raises:
            ShapeError: the ids do not have the two axes batch and source.
            ValueError: there are more tokens than ``max_len``.
        """
        check_shapes(source_ids=(source_ids, "batch source"))
        is_real = source_ids != self.config.pad_id
        self.source_embeddings.check_length(source_ids.shape[-1])
        hidden = self.source_embeddings(source_ids, real_positions(is_real))
        return self.encoder(hidden, padding_mask(source_ids, self.config.pad_id))

    def decode(
        self,
        target_ids: Int[Tensor, "batch target"],
        memory: Float[Tensor, "batch source d_model"],
        memory_mask: Bool[Tensor, "..."] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """The decoder's last hidden vectors, from which `project` makes logits.

        Args:
            target_ids: the tokens to decode; with a cache, only the new ones.
            memory: what `encode` gave.
            memory_mask: which of its tokens are real, as `ttutor.masks.padding_mask` says.
            cache: earlier tokens; it is extended by the new ones.

        Raises:
            ShapeError: ids and memory differ in batch size, or do not have their two and three axes.
            ValueError: there are more tokens than ``max_len``.
        """
        check_shapes(target_ids=(target_ids, "batch target"), memory=(memory, "batch source d_model"))
        n_earlier = 0 if cache is None else cache.n_tokens
        self.target_embeddings.check_length(n_earlier + target_ids.shape[-1])
        is_real = target_ids != self.config.pad_id
        if cache is None:
            positions, real_keys = real_positions(is_real), padding_mask(target_ids, self.config.pad_id)
        else:
            positions, real_keys = cache.extend(is_real)
        hidden = self.target_embeddings(target_ids, positions)
        return self.decoder(hidden, memory, real_keys, memory_mask, cache)

    def project(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... vocab_size"]:
        """Logits over the vocabulary for each hidden vector."""
        return self.to_logits(hidden)

    def n_parameters(self) -> int:
        """How many numbers are learned; a shared table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())
