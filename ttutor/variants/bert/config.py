"""The sizes of a BERT, and the published ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ttutor.configs import Config
from ttutor.layers import ACTIVATIONS
from ttutor.transformer.blueprint import Blueprint, Projection, Stack


@dataclass(frozen=True, kw_only=True)
class BERTConfig(Config):
    """The sizes of a `BERT`; the defaults are those of BERT-base.

    Args:
        vocab_size: number of tokens; by default that of the English vocabulary without capitals.
        d_model: width of the stream.
        n_heads: attention heads of each layer.
        n_layers: number of layers.
        d_ff: inner width of the feed-forward networks; four times ``d_model`` when left out, as in all published sizes.
        max_len: the longest text, in tokens.
        n_segments: how many segments a text may have: two, the first and the second sentence.
        dropout: probability of dropping a feature of the embeddings and of what each sublayer writes, while training.
        activation: of the feed-forward networks, one of `ttutor.layers.ACTIVATIONS`.

    Differs from the paper: BERT drops attention weights as well, while training.
    """

    vocab_size: int = 30_522
    d_model: int = 768
    n_heads: int = 12
    n_layers: int = 12
    d_ff: int = None  # type: ignore[assignment]  # four times d_model; never None in a config that was made
    max_len: int = 512
    n_segments: int = 2
    dropout: float = 0.1
    activation: str = "gelu"

    def __post_init__(self) -> None:
        self.widen_fourfold()
        super().__post_init__()

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int(
            "vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len", "n_segments"
        )
        yield from self.require_multiple("d_model", "n_heads")
        yield from self.require_probability("dropout")
        yield from self.require_one_of("activation", ACTIVATIONS)

    @classmethod
    def base(cls, **changes: Any) -> "BERTConfig":
        """BERT-base, 110 M parameters: Devlin et al. (2019), section 3."""
        return cls(**changes)

    @classmethod
    def large(cls, **changes: Any) -> "BERTConfig":
        """BERT-large, 340 M parameters: Devlin et al. (2019), section 3."""
        return cls(**{"d_model": 1024, "n_heads": 16, "n_layers": 24, "d_ff": 4096, **changes})

    def blueprint(self) -> Blueprint:
        """What a `BERT` with its pooler is made of, for `ttutor.transformer.account`."""
        stack = Stack.of(
            self,
            "encoder",
            activation=self.activation,
            norm="post",
            final_norm=False,
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
