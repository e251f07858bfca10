"""The sizes and choices of a Llama, and those of the published ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ttutor.configs import Config
from ttutor.positions import RotaryScaling
from ttutor.transformer.blueprint import Blueprint, Projection, Stack


@dataclass(frozen=True, kw_only=True)
class LlamaConfig(Config):
    """The sizes and choices of a `Llama`; the defaults are those of LLaMA-7B.

    Args:
        vocab_size: number of tokens.
        d_model: width of the stream.
        n_heads: query heads of each layer.
        n_kv_heads: key/value heads, a divisor of ``n_heads``; as many as those when left out.
        d_head: width of a head; ``d_model / n_heads`` when left out.
        n_layers: number of layers.
        d_ff: inner width of the feed-forward networks; 8/3 of ``d_model``, rounded up, in LLaMA.
        max_len: the longest text in training, in tokens; rotary positions go on beyond it, untrained.
        norm_eps: added to the mean square in the norms.
        rotary_base: the larger, the slower the slow pairs of features turn.
        rotary_scaling: how the turning is slowed for longer texts, a `RotaryScaling` or its values; not at all when
            left out.
        window: how many tokens back a query sees, itself included (Mistral); all when left out.
        tie_embeddings: whether the output projection is the embedding table.

    Example:
        >>> LlamaConfig.llama2_70b().n_kv_heads
        8
    """

    vocab_size: int = 32_000
    d_model: int = 4096
    n_heads: int = 32
    n_kv_heads: int | None = None
    d_head: int | None = None
    n_layers: int = 32
    d_ff: int = 11_008
    max_len: int = 2048
    norm_eps: float = 1e-6
    rotary_base: float = 10_000.0
    rotary_scaling: RotaryScaling | Mapping[str, Any] | None = None
    window: int | None = None
    tie_embeddings: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.rotary_scaling, Mapping):  # as `to_dict` gave it
            object.__setattr__(self, "rotary_scaling", RotaryScaling(**self.rotary_scaling))
        super().__post_init__()

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")
        yield from self.require_positive_int(
            *(name for name in ("n_kv_heads", "d_head", "window") if getattr(self, name) is not None)
        )
        if self.n_kv_heads is not None:
            yield from self.require_multiple("n_heads", "n_kv_heads")
        if self.d_head is None:
            yield from self.require_multiple("d_model", "n_heads")
        yield from self.require_positive_number("norm_eps", "rotary_base")
        yield from self.require_bool("tie_embeddings")

    def to_dict(self) -> dict[str, object]:
        """The config as plain values, for a checkpoint's JSON."""
        scaling = self.rotary_scaling.to_dict() if isinstance(self.rotary_scaling, RotaryScaling) else None
        return {**super().to_dict(), "rotary_scaling": scaling}

    @classmethod
    def llama_7b(cls, **changes: Any) -> "LlamaConfig":
        """LLaMA-7B, 6.7 B parameters: Touvron et al. (2023a), table 2, first row; ``d_ff`` by section 2.2."""
        return cls(**changes)

    @classmethod
    def llama2_70b(cls, **changes: Any) -> "LlamaConfig":
        """Llama 2 70B, 69 B parameters: context and GQA by Touvron et al. (2023b), table 1; sizes as released."""
        sizes = {"d_model": 8192, "n_heads": 64, "n_kv_heads": 8, "n_layers": 80, "d_ff": 28_672}
        return cls(**{**sizes, "max_len": 4096, "norm_eps": 1e-5, **changes})

    @classmethod
    def llama3_8b(cls, **changes: Any) -> "LlamaConfig":
        """Llama 3 8B, 8.0 B parameters: Grattafiori et al. (2024), table 3; vocabulary and context as first released.

        Differs from the paper: its table rounds the vocabulary to 128,000.
        """
        sizes = {"vocab_size": 128_256, "n_kv_heads": 8, "d_ff": 14_336, "max_len": 8192}
        return cls(**{**sizes, "norm_eps": 1e-5, "rotary_base": 500_000.0, **changes})

    @classmethod
    def mistral_7b(cls, **changes: Any) -> "LlamaConfig":
        """Mistral 7B, 7.2 B parameters, which is a Llama with a sliding window: Jiang et al. (2023), table 1."""
        sizes = {"n_kv_heads": 8, "d_head": 128, "d_ff": 14_336, "max_len": 8192, "window": 4096}
        return cls(**{**sizes, "norm_eps": 1e-5, **changes})

    def blueprint(self) -> Blueprint:
        """What the model is made of, for `ttutor.transformer.account`."""
        decoder = Stack.of(
            self,
            "decoder",
            gated=True,
            activation="silu",
            attention_bias=False,
            feed_forward_bias=False,
            rms=True,
            is_causal=True,
        )
        return Blueprint(
            name="Llama",
            n_tokens=self.max_len,
            stacks=(decoder,),
            projections=(Projection.to_logits(self),),
            further={"embeddings": self.vocab_size * self.d_model},
        )
