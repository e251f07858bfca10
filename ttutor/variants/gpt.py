"""GPT: a decoder alone, that reads a text and predicts at every position which token comes next.

Radford et al. (2018, 2019); Brown et al. (2020). What is left of the Transformer of 2017 when the encoder and the
cross-attention are taken away: embeddings, layers of causal self-attention and feed-forward network, a projection.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache
from ttutor.configs import Config
from ttutor.decoder import Decoder, DecoderLayer
from ttutor.efficient import efficient_attention
from ttutor.embeddings import Embeddings, TokenEmbedding, extend_cache
from ttutor.generation import DecoderOnly
from ttutor.layers import ACTIVATIONS
from ttutor.positions import AlibiPositions, LearnedPositions, NoPositions, RotaryPositions, SinusoidalPositions
from ttutor.shapes import check_shapes
from ttutor.transformer.blueprint import Blueprint, Projection, Stack

__all__ = ["GPT", "GPTConfig"]

POSITIONS = ("alibi", "learned", "none", "rotary", "sinusoidal")


@dataclass(frozen=True, kw_only=True)
class GPTConfig(Config):
    """The sizes and choices of a `GPT`; the defaults are those of the smallest GPT-2.

    Args:
        vocab_size: number of tokens.
        d_model: width of the stream.
        n_heads: attention heads of each layer.
        n_layers: number of layers.
        d_ff: inner width of the feed-forward networks; four times ``d_model`` when left out, as in all published sizes.
        max_len: the longest sequence, in tokens.
        dropout: probability of dropping a feature of the embeddings and of what each sublayer writes, while training.
        activation: of the feed-forward networks, one of `ttutor.layers.ACTIVATIONS`.
        positions: ``"learned"`` (GPT-2), ``"sinusoidal"``, ``"rotary"``, ``"alibi"`` or ``"none"``.
        tie_embeddings: whether the output projection is the embedding table.

    Differs from the paper: GPT-2 drops attention weights as well, while training.
    """

    vocab_size: int = 50_257
    d_model: int = 768
    n_heads: int = 12
    n_layers: int = 12
    d_ff: int = None  # type: ignore[assignment]  # four times d_model; never None in a config that was made
    max_len: int = 1024
    dropout: float = 0.1
    activation: str = "gelu_tanh"
    positions: str = "learned"
    tie_embeddings: bool = True

    def __post_init__(self) -> None:
        self.widen_fourfold()
        super().__post_init__()

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")
        yield from self.require_multiple("d_model", "n_heads")
        yield from self.require_probability("dropout")
        yield from self.require_one_of("activation", ACTIVATIONS)
        yield from self.require_one_of("positions", POSITIONS)
        yield from self.require_bool("tie_embeddings")

    @classmethod
    def gpt2(cls, **changes: Any) -> "GPTConfig":
        """GPT-2 small, 124 M parameters: Radford et al. (2019), table 2, first row (counted there as 117 M)."""
        return cls(**changes)

    @classmethod
    def gpt2_medium(cls, **changes: Any) -> "GPTConfig":
        """GPT-2 medium, 355 M parameters: Radford et al. (2019), table 2, second row (counted there as 345 M)."""
        return cls(**{"d_model": 1024, "n_heads": 16, "n_layers": 24, "d_ff": 4096, **changes})

    @classmethod
    def gpt2_large(cls, **changes: Any) -> "GPTConfig":
        """GPT-2 large, 774 M parameters: Radford et al. (2019), table 2, third row (counted there as 762 M)."""
        return cls(**{"d_model": 1280, "n_heads": 20, "n_layers": 36, "d_ff": 5120, **changes})

    @classmethod
    def gpt2_xl(cls, **changes: Any) -> "GPTConfig":
        """GPT-2 XL, 1,558 M parameters: Radford et al. (2019), table 2, last row (counted there as 1542 M)."""
        return cls(**{"d_model": 1600, "n_heads": 25, "n_layers": 48, "d_ff": 6400, **changes})

    @classmethod
    def gpt3(cls, **changes: Any) -> "GPTConfig":
        """GPT-3, 175 B parameters: Brown et al. (2020), table 2.1, last row.

        Differs from the paper: every second layer there attends to a sparse pattern, which changes no parameter.
        """
        sizes = {"d_model": 12_288, "n_heads": 96, "n_layers": 96, "d_ff": 49_152, "max_len": 2048}
        return cls(**{**sizes, **changes})

    def blueprint(self) -> Blueprint:
        """What the model is made of, for `ttutor.transformer.account`."""
        decoder = Stack.of(
            self,
            "decoder",
            activation=self.activation,
            is_causal=True,
        )
        n_rows = self.vocab_size + (self.max_len if self.positions == "learned" else 0)
        return Blueprint(
            name="GPT",
            n_tokens=self.max_len,
            stacks=(decoder,),
            projections=(Projection.to_logits(self),),
            further={"embeddings": n_rows * self.d_model},
        )


class GPT(DecoderOnly):
    """A causal language model: logits of the next token at every position, and a cache for generation.

    Args:
        config: sizes and choices.
        attend: the attention function of all layers.

    Example:
        >>> model = GPT(GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> model(torch.tensor([[7, 8, 9]])).shape
        torch.Size([1, 3, 50])
    """

    def __init__(self, config: GPTConfig, *, attend: Callable[..., Tensor] = efficient_attention) -> None:
        super().__init__()
        self.config = GPTConfig.checked(config)
        token = TokenEmbedding(config.vocab_size, config.d_model, factor=1.0)
        self.embeddings = Embeddings(token, _added_positions(config), config.dropout)
        self.rotary = RotaryPositions(config.d_model // config.n_heads) if config.positions == "rotary" else None
        self.alibi = AlibiPositions(config.n_heads) if config.positions == "alibi" else None
        self.decoder = Decoder(
            config.d_model,
            config.n_heads,
            config.d_ff,
            config.n_layers,
            cross_attention=False,
            norm="pre",
            make_layer=partial(DecoderLayer, dropout=config.dropout, activation=config.activation, attend=attend),
        )
        self.to_logits = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if config.tie_embeddings:
            self.to_logits.weight = token.table.weight
        self._initialise()

    def _initialise(self) -> None:
        """Weights of standard deviation 0.02; what writes to the stream is smaller the more layers write.

        Radford et al. (2018), section 4.1, and (2019), section 2.3: the latter are scaled by one over the root of the
        number of residual layers, two for each layer of ours.
        """
        for name, parameter in self.named_parameters():
            if name.endswith(("to_output.weight", "narrow.weight")):
                nn.init.normal_(parameter, std=0.02 * (2 * self.config.n_layers) ** -0.5)
            elif parameter.ndim == 2:
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
            cache: earlier tokens; it is extended by the new ones.
        """
        check_shapes(token_ids=(token_ids, "batch tokens"))
        is_real = torch.ones_like(token_ids, dtype=torch.bool) if is_real is None else is_real
        positions, real_keys = extend_cache(cache, is_real, self.config, self.embeddings, token_ids=token_ids)
        key_positions = positions if self.alibi is None or cache is None else cache.positions()
        return self.decoder(
            self.embeddings(token_ids, positions),
            mask=real_keys,
            cache=cache,
            rotation=None if self.rotary is None else self.rotary(positions),
            bias=None if self.alibi is None else self.alibi(positions, key_positions),
        )

    def project(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... vocab_size"]:
        """Logits over the vocabulary for each hidden vector."""
        return self.to_logits(hidden)


def _added_positions(config: GPTConfig) -> nn.Module:
    """The part of the positions that is added to the embeddings, if any."""
    if config.positions == "learned":
        return LearnedPositions(config.d_model, config.max_len)
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.d_model, config.max_len)
    return NoPositions()
