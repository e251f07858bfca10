"""The sizes and choices of the encoder-decoder of "Attention Is All You Need"."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ttutor.configs import Config
from ttutor.layers import ACTIVATIONS
from ttutor.transformer.blueprint import Blueprint, Projection, Stack

POSITIONS = ("sinusoidal", "learned")


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(Config):
    """The sizes and choices of a `Transformer`. Source and target share one vocabulary, as in the paper.

    Args:
        vocab_size: number of tokens.
        d_model: width of the stream.
        n_heads: attention heads of each layer.
        n_layers: layers of the encoder, and as many of the decoder.
        d_ff: inner width of the feed-forward networks; four times ``d_model`` when left out.
        dropout: probability of dropping a feature of the embeddings and of what each sublayer writes, while training
            (the paper, section 5.4).
        activation: of the feed-forward networks, one of `ttutor.layers.ACTIVATIONS`.
        norm: where the norm of a residual connection stands, ``"post"`` (the paper) or ``"pre"``.
        positions: ``"sinusoidal"`` or ``"learned"``.
        max_len: the longest sequence, in tokens.
        pad_id: the token id that means "nothing here".
        tie_embeddings: whether the output projection is the embedding table (the paper, section 3.4; Press and Wolf
            2017), which saves ``vocab_size * d_model`` parameters.
        logits_bias: whether the output projection adds a constant for each token, as Marian does.

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
    d_ff: int = None  # type: ignore[assignment]  # four times d_model; never None in a config that was made
    dropout: float = 0.1
    activation: str = "relu"
    norm: str = "post"
    positions: str = "sinusoidal"
    max_len: int = 1024
    pad_id: int = 0
    tie_embeddings: bool = True
    logits_bias: bool = False

    def __post_init__(self) -> None:
        self.widen_fourfold()
        super().__post_init__()

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_bool("tie_embeddings", "logits_bias")
        yield from self.require_positive_int("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")
        yield from self.require_multiple("d_model", "n_heads")
        yield from self.require_probability("dropout")
        yield from self.require_one_of("activation", ACTIVATIONS)
        if self.norm not in ("post", "pre"):
            yield f'norm must be "post" or "pre" (norm={self.norm!r})'
        yield from self.require_one_of("positions", POSITIONS)
        if type(self.pad_id) is not int or (type(self.vocab_size) is int and not 0 <= self.pad_id < self.vocab_size):
            yield f"pad_id must be a token id (pad_id={self.pad_id!r}, vocab_size={self.vocab_size})"

    @classmethod
    def base(cls, vocab_size: int = 37_000, **changes: Any) -> "TransformerConfig":
        """The base model of Vaswani et al. (2017), table 3; 37,000 tokens as in section 5.1."""
        return cls(**{"vocab_size": vocab_size, **changes})

    @classmethod
    def tiny(cls, vocab_size: int = 10_000, **changes: Any) -> "TransformerConfig":
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

    def blueprint(self) -> Blueprint:
        """What the model is made of, for `ttutor.transformer.account`."""
        encoder = Stack.of(
            self,
            "encoder",
            activation=self.activation,
            norm=self.norm,
            final_norm=self.norm == "pre",
        )
        n_tables = 2 if self.positions == "learned" else 0  # the source's and the target's
        return Blueprint(
            name="Transformer",
            n_tokens=self.max_len,
            stacks=(encoder, encoder.replace(name="decoder", is_causal=True, cross_attention=True)),
            projections=(Projection.to_logits(self, bias=self.logits_bias),),
            further={"embeddings": (self.vocab_size + n_tables * self.max_len) * self.d_model},
        )
