"""The sizes and choices of a T5, and those of the published ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ttutor.configs import Config
from ttutor.transformer.blueprint import Blueprint, Projection, Stack

FEED_FORWARDS = {"relu": (False, "relu"), "geglu": (True, "gelu_tanh"), "swiglu": (True, "silu")}
"""The kinds of feed-forward network: whether it is gated, and its activation."""

TRAINED_LEN = 512  # Raffel et al. (2020), section 3.1.2; distances have no last one, so it is no limit


@dataclass(frozen=True, kw_only=True)
class T5Config(Config):
    """The sizes and choices of a `T5`; the defaults are those of T5-Small.

    Args:
        vocab_size: number of tokens; 32,000 and room for sentinels, rounded up to 32,128 in the released models.
        d_model: width of the stream.
        d_head: width of a head, which need not be ``d_model / n_heads``.
        n_heads: attention heads of each layer.
        n_layers: layers of the encoder, and as many of the decoder.
        d_ff: inner width of the feed-forward networks.
        n_buckets: into how many buckets distances are sorted (`ttutor.positions.relative_bucket`).
        max_distance: the distance from which all share a bucket.
        dropout: probability, while training, of dropping a feature of what enters and leaves a stack, of what each
            sublayer writes, of the feed-forward networks' inner features, or an attention weight (section 2.1).
        feed_forward: ``"relu"`` (the paper), ``"geglu"`` (T5 1.1) or ``"swiglu"``.
        tie_embeddings: whether the output projection is the embedding table (the paper), the hidden vectors then being
            divided by the root of ``d_model``; in T5 1.1 it is a matrix of its own.
        pad_id: the token id that means "nothing here" in a source, and starts every target.
    """

    vocab_size: int = 32_128
    d_model: int = 512
    d_head: int = 64
    n_heads: int = 8
    n_layers: int = 6
    d_ff: int = 2048
    n_buckets: int = 32
    max_distance: int = 128
    dropout: float = 0.1
    feed_forward: str = "relu"
    tie_embeddings: bool = True
    pad_id: int = 0

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("vocab_size", "d_model", "d_head", "n_heads", "n_layers", "d_ff")
        yield from self.require_positive_int("n_buckets", "max_distance")
        yield from self.require_probability("dropout")
        yield from self.require_one_of("feed_forward", FEED_FORWARDS)
        yield from self.require_bool("tie_embeddings")
        if type(self.pad_id) is not int or (type(self.vocab_size) is int and not 0 <= self.pad_id < self.vocab_size):
            yield f"pad_id must be a token id (pad_id={self.pad_id!r}, vocab_size={self.vocab_size})"

    @classmethod
    def small(cls, **changes: Any) -> "T5Config":
        """T5-Small, 60 M parameters: Raffel et al. (2020), section 3.7, "model size"."""
        return cls(**changes)

    @classmethod
    def base(cls, **changes: Any) -> "T5Config":
        """T5-Base, 220 M parameters: Raffel et al. (2020), section 3.7; sizes by section 3.1.1."""
        return cls(**{"d_model": 768, "n_heads": 12, "n_layers": 12, "d_ff": 3072, **changes})

    @classmethod
    def large(cls, **changes: Any) -> "T5Config":
        """T5-Large, 770 M parameters: Raffel et al. (2020), section 3.7, "model size"."""
        return cls(**{"d_model": 1024, "n_heads": 16, "n_layers": 24, "d_ff": 4096, **changes})

    @classmethod
    def v1_1_small(cls, **changes: Any) -> "T5Config":
        """T5 1.1 Small, 77 M parameters: sizes as released (2020); GeGLU by Shazeer (2020)."""
        sizes = {"n_heads": 6, "n_layers": 8, "d_ff": 1024, "feed_forward": "geglu", "tie_embeddings": False}
        return cls(**{**sizes, **changes})

    @classmethod
    def v1_1_base(cls, **changes: Any) -> "T5Config":
        """T5 1.1 Base, 248 M parameters: sizes as released (2020)."""
        return cls.v1_1_small(**{"d_model": 768, "n_heads": 12, "n_layers": 12, "d_ff": 2048, **changes})

    @classmethod
    def v1_1_large(cls, **changes: Any) -> "T5Config":
        """T5 1.1 Large, 783 M parameters: sizes as released (2020)."""
        return cls.v1_1_small(**{"d_model": 1024, "n_heads": 16, "n_layers": 24, "d_ff": 2816, **changes})

    def blueprint(self) -> Blueprint:
        """What the model is made of, for `ttutor.transformer.account`."""
        gated, activation = FEED_FORWARDS[self.feed_forward]
        encoder = Stack.of(
            self,
            "encoder",
            gated=gated,
            activation=activation,
            attention_bias=False,
            feed_forward_bias=False,
            rms=True,
            drops_inside=True,
        )
        return Blueprint(
            name="T5",
            n_tokens=TRAINED_LEN,
            stacks=(encoder, encoder.replace(name="decoder", is_causal=True, cross_attention=True)),
            projections=(Projection.to_logits(self),),
            further={"embeddings": self.vocab_size * self.d_model, "attention": 2 * self.n_buckets * self.n_heads},
        )
