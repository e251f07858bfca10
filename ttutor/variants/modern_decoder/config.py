"""Which parts a modern decoder has, and those of the published ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ttutor.configs import Config
from ttutor.layers import ACTIVATIONS
from ttutor.positions import RotaryScaling
from ttutor.positions.scaling import YarnScaling
from ttutor.transformer.blueprint import Blueprint, Experts, Latent, Projection, Stack

NORM_PLACES = ("before", "after", "both")
QK_NORMS = ("each head", "all heads")


@dataclass(frozen=True, kw_only=True)
class ExpertsConfig(Experts):
    """The mixtures of a `ModernDecoder`: their sizes, and how tokens choose.

    Args:
        n_experts, n_chosen, d_ff, n_shared, n_dense_layers: as for `ttutor.transformer.Experts`.
        bias: experts are `ttutor.layers.ClampedFeedForward`, and the router adds a constant (gpt-oss).
        renormalise: whether the shares of a token sum to one, as for `ttutor.variants.experts.Router`.
        is_balanced: whether a `ttutor.variants.experts.BiasedRouter` chooses (DeepSeek-V3).
        factor, n_groups, n_groups_chosen: its choices.

    Example:
        >>> ExpertsConfig(n_experts=4, n_chosen=5, d_ff=8)
        Traceback (most recent call last):
        ...
        ValueError: ExpertsConfig: a token visits at most all experts (n_chosen=5, n_experts=4)
    """

    renormalise: bool = True
    is_balanced: bool = False
    factor: float = 1.0
    n_groups: int = 1
    n_groups_chosen: int = 1

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from super().errors()
        yield from self.require_bool("renormalise", "is_balanced")
        yield from self.require_positive_number("factor")
        yield from self.require_positive_int("n_groups", "n_groups_chosen")


@dataclass(frozen=True, kw_only=True)
class ModernDecoderConfig(Config):
    """The sizes and parts of a `ModernDecoder`; the defaults are those of LLaMA-7B.

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
        norm_place: where a branch has its norm: ``"before"`` the sublayer, ``"after"`` it, or ``"both"``.
        qk_norm: whether queries and keys pass an RMSNorm: in ``"each head"``, over ``"all heads"`` at once, or not at
            all when left out.
        d_scale: scores are divided by the root of it; the width of a head when left out.
        score_cap, logit_cap: the soft caps of attention scores and of logits (`ttutor.variants.scores.soft_cap`).
        has_sinks: whether a head may look at nothing (`ttutor.variants.scores.AttentionSinks`).
        attention_bias: whether the maps of attention add a constant.
        rotary_base: the larger, the slower the slow pairs of features turn.
        rotary_scaling: how the turning is slowed for longer texts, a `RotaryScaling`, a `YarnScaling` or its values;
            not at all when left out.
        window: how many tokens back a query sees, itself included; all when left out.
        global_every: every n-th layer has no window; none of them when left out.
        local_rotary_base: the base in layers with a window, which are not scaled then; as elsewhere when left out.
        activation: of the feed-forward networks' gates, one of `ttutor.layers.ACTIVATIONS`.
        experts: mixtures in the place of feed-forward networks; none when left out.
        latent: the widths of latent attention, which then stands in the place of grouped queries; none when left out.
        scale_embeddings: whether rows of the embedding are multiplied by the root of ``d_model``.
        tie_embeddings: whether the output projection is the embedding table.

    Example:
        >>> ModernDecoderConfig.llama2_70b().n_kv_heads
        8
        >>> [ModernDecoderConfig.gemma3_1b().window_of(layer) for layer in range(6)]
        [512, 512, 512, 512, 512, None]
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
    norm_place: str = "before"
    qk_norm: str | None = None
    d_scale: int | None = None
    score_cap: float | None = None
    logit_cap: float | None = None
    has_sinks: bool = False
    attention_bias: bool = False
    rotary_base: float = 10_000.0
    rotary_scaling: RotaryScaling | YarnScaling | Mapping[str, Any] | None = None
    window: int | None = None
    global_every: int | None = None
    local_rotary_base: float | None = None
    activation: str = "silu"
    experts: ExpertsConfig | Mapping[str, Any] | None = None
    latent: Latent | Mapping[str, Any] | None = None
    scale_embeddings: bool = False
    tie_embeddings: bool = False

    def __post_init__(self) -> None:
        for name, kind in {"rotary_scaling": RotaryScaling, "experts": ExpertsConfig, "latent": Latent}.items():
            values = getattr(self, name)
            if isinstance(values, Mapping):  # as `to_dict` gave it
                kind = YarnScaling if name == "rotary_scaling" and "base" in values else kind
                object.__setattr__(self, name, kind(**values))
        super().__post_init__()

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")
        whole = ("n_kv_heads", "d_head", "d_scale", "window", "global_every")
        yield from self.require_positive_int(*(name for name in whole if getattr(self, name) is not None))
        numbers = ("score_cap", "logit_cap", "local_rotary_base")
        yield from self.require_positive_number(*(name for name in numbers if getattr(self, name) is not None))
        yield from self.require_positive_number("norm_eps", "rotary_base")
        yield from self.require_bool("has_sinks", "attention_bias", "scale_embeddings", "tie_embeddings")
        yield from self.require_one_of("norm_place", NORM_PLACES)
        yield from self.require_one_of("activation", ACTIVATIONS)
        if self.qk_norm is not None:
            yield from self.require_one_of("qk_norm", QK_NORMS)
        if self.n_kv_heads is not None:
            yield from self.require_multiple("n_heads", "n_kv_heads")
        if self.d_head is None and self.latent is None:
            yield from self.require_multiple("d_model", "n_heads")
        if self.window is None and (self.global_every, self.local_rotary_base) != (None, None):
            yield "only a model with a window has local layers (give window)"
        if isinstance(self.rotary_scaling, YarnScaling) and self.rotary_scaling.base != self.rotary_base:
            yield f"YaRN must know the base of the frequencies ({self.rotary_scaling.base}, {self.rotary_base})"
        if self.latent is not None and (self.qk_norm, self.n_kv_heads, self.d_head) != (None, None, None):
            yield "latent attention has widths and norms of its own (leave out qk_norm, n_kv_heads and d_head)"

    def to_dict(self) -> dict[str, object]:
        """The config as plain values, for a checkpoint's JSON."""
        plain = super().to_dict()
        return {name: value.to_dict() if isinstance(value, Config) else value for name, value in plain.items()}

    @property
    def d_rotary(self) -> int:
        """How many features of a head are turned."""
        return self.latent.d_rotary if isinstance(self.latent, Latent) else self.d_head or self.d_model // self.n_heads

    def window_of(self, layer: int) -> int | None:
        """How many tokens back a query of this layer sees; None where it sees all."""
        is_global = self.global_every is not None and (layer + 1) % self.global_every == 0
        return None if is_global else self.window

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The window of each layer, for `ttutor.cache.DecoderCache`."""
        return tuple(map(self.window_of, range(self.n_layers)))

    def blueprint(self) -> Blueprint:
        """What the model is made of, for `ttutor.transformer.account`."""
        d_head = self.d_head or self.d_model // self.n_heads
        n_norms = {"each head": 2 * d_head, "all heads": (self.n_heads + (self.n_kv_heads or self.n_heads)) * d_head}
        norms = n_norms.get(self.qk_norm or "", 0) + 2 * self.d_model * (self.norm_place == "both")
        decoder = Stack.of(
            self,
            "decoder",
            gated=True,
            activation=self.activation,
            attention_bias=self.attention_bias,
            feed_forward_bias=False,
            rms=True,
            is_causal=True,
            windows=self.windows,
            experts=self.experts,
            latent=self.latent,
        )
        further = {"embeddings": self.vocab_size * self.d_model, "norms": self.n_layers * norms}
        if self.has_sinks:
            further["attention"] = self.n_layers * self.n_heads
        others = (self.norm_place != "before", self.qk_norm, self.score_cap, self.has_sinks, self.experts, self.latent)
        return Blueprint(
            name="modern decoder" if any(others) else "Llama",
            n_tokens=self.max_len,
            stacks=(decoder,),
            projections=(Projection.to_logits(self),),
            further=further,
        )

    @classmethod
    def llama_7b(cls, **changes: Any) -> "ModernDecoderConfig":
        """LLaMA-7B, 6.7 B parameters: Touvron et al. (2023a), table 2, first row; ``d_ff`` by section 2.2."""
        return cls(**changes)

    @classmethod
    def llama2_70b(cls, **changes: Any) -> "ModernDecoderConfig":
        """Llama 2 70B, 69 B parameters: context and GQA by Touvron et al. (2023b), table 1; sizes as released."""
        sizes = {"d_model": 8192, "n_heads": 64, "n_kv_heads": 8, "n_layers": 80, "d_ff": 28_672}
        return cls(**{**sizes, "max_len": 4096, "norm_eps": 1e-5, **changes})

    @classmethod
    def llama3_8b(cls, **changes: Any) -> "ModernDecoderConfig":
        """Llama 3 8B, 8.0 B parameters: Grattafiori et al. (2024), table 3; vocabulary and context as first released.

        Differs from the paper: its table rounds the vocabulary to 128,000.
        """
        sizes = {"vocab_size": 128_256, "n_kv_heads": 8, "d_ff": 14_336, "max_len": 8192}
        return cls(**{**sizes, "norm_eps": 1e-5, "rotary_base": 500_000.0, **changes})

    @classmethod
    def mistral_7b(cls, **changes: Any) -> "ModernDecoderConfig":
        """Mistral 7B, 7.2 B parameters, which is a Llama with a sliding window: Jiang et al. (2023), table 1."""
        sizes = {"n_kv_heads": 8, "d_head": 128, "d_ff": 14_336, "max_len": 8192, "window": 4096}
        return cls(**{**sizes, "norm_eps": 1e-5, **changes})

    @classmethod
    def mixtral_8x7b(cls, **changes: Any) -> "ModernDecoderConfig":
        """Mixtral 8x7B, 47 B parameters of which 13 B are active: Jiang et al. (2024), table 1; base as released."""
        sizes = {"n_kv_heads": 8, "d_head": 128, "d_ff": 14_336, "max_len": 32_768, "rotary_base": 1e6}
        experts = ExpertsConfig(n_experts=8, n_chosen=2, d_ff=14_336)
        return cls(**{**sizes, "norm_eps": 1e-5, "experts": experts, **changes})

    @classmethod
    def qwen3_8b(cls, **changes: Any) -> "ModernDecoderConfig":
        """Qwen3-8B, 8.2 B parameters: layers and heads by Yang et al. (2025), table 1; the rest as released."""
        sizes = {"vocab_size": 151_936, "n_kv_heads": 8, "d_head": 128, "n_layers": 36, "d_ff": 12_288}
        return cls(**{**sizes, "max_len": 40_960, "rotary_base": 1e6, "qk_norm": "each head", **changes})

    @classmethod
    def qwen3_30b_a3b(cls, **changes: Any) -> "ModernDecoderConfig":
        """Qwen3-30B-A3B, 31 B parameters, 3.3 B of them active: Yang et al. (2025), table 2; the rest as released."""
        sizes = {"d_model": 2048, "n_kv_heads": 4, "n_layers": 48, "d_ff": 6144}
        experts = ExpertsConfig(n_experts=128, n_chosen=8, d_ff=768)
        return cls.qwen3_8b(**{**sizes, "experts": experts, **changes})

    @classmethod
    def olmo2_7b(cls, **changes: Any) -> "ModernDecoderConfig":
        """OLMo 2 7B, 7.3 B parameters: Walsh et al. (2024); vocabulary as released."""
        sizes = {"vocab_size": 100_352, "max_len": 4096, "rotary_base": 500_000.0}
        return cls(**{**sizes, "norm_place": "after", "qk_norm": "all heads", **changes})

    @classmethod
    def gemma2_2b(cls, **changes: Any) -> "ModernDecoderConfig":
        """Gemma 2 2B, 2.6 B parameters: the report of Gemma 2 (2024), section 2 and table 1."""
        sizes = {"vocab_size": 256_000, "d_model": 2304, "n_heads": 8, "n_kv_heads": 4, "d_head": 256}
        sizes |= {"n_layers": 26, "d_ff": 9216, "max_len": 8192, "window": 4096, "global_every": 2}
        parts = {"norm_place": "both", "score_cap": 50.0, "logit_cap": 30.0, "activation": "gelu_tanh"}
        ends = {"scale_embeddings": True, "tie_embeddings": True}
        return cls(**{**sizes, **parts, **ends, **changes})

    @classmethod
    def gemma3_1b(cls, **changes: Any) -> "ModernDecoderConfig":
        """Gemma 3 1B, 1.0 B parameters: the report of Gemma 3 (2025), section 2 and table 1; the rest as released."""
        sizes = {"vocab_size": 262_144, "d_model": 1152, "n_heads": 4, "n_kv_heads": 1, "d_head": 256}
        sizes |= {"n_layers": 26, "d_ff": 6912, "max_len": 32_768, "window": 512, "global_every": 6}
        bases = {"rotary_base": 1e6, "local_rotary_base": 10_000.0}
        parts = {"norm_place": "both", "qk_norm": "each head", "activation": "gelu_tanh"}
        ends = {"scale_embeddings": True, "tie_embeddings": True}
        return cls(**{**sizes, **bases, **parts, **ends, **changes})

    @classmethod
    def deepseek_v3(cls, **changes: Any) -> "ModernDecoderConfig":
        """DeepSeek-V3, 671 B parameters of which 37 B are active: DeepSeek-AI et al. (2024b), section 4.2.

        The base and the length of training before its extension; without the module that predicts two tokens ahead.
        """
        sizes = {"vocab_size": 129_280, "d_model": 7168, "n_heads": 128, "n_layers": 61, "d_ff": 18_432}
        experts = ExpertsConfig(
            n_experts=256,
            n_chosen=8,
            d_ff=2048,
            n_shared=1,
            n_dense_layers=3,
            is_balanced=True,
            factor=2.5,
            n_groups=8,
            n_groups_chosen=4,
        )
        latent = Latent(d_head=128, d_rotary=64, d_value=128, d_latent=512, d_query_latent=1536)
        return cls(**{**sizes, "max_len": 4096, "experts": experts, "latent": latent, **changes})

    @classmethod
    def gpt_oss_20b(cls, **changes: Any) -> "ModernDecoderConfig":
        """gpt-oss-20b, 21 B parameters: OpenAI et al. (2025), section 2; active are 3.6 B and the embeddings."""
        sizes: dict[str, Any] = {"vocab_size": 201_088, "d_model": 2880, "n_heads": 64, "n_kv_heads": 8, "d_head": 64}
        sizes |= {"n_layers": 24, "d_ff": 2880, "max_len": 131_072, "norm_eps": 1e-5}
        yarn = YarnScaling(factor=32.0, trained_len=4096, base=150_000.0, in_whole_pairs=False)
        reach = {"window": 128, "global_every": 2, "rotary_base": 150_000.0, "rotary_scaling": yarn}
        experts = ExpertsConfig(n_experts=32, n_chosen=4, d_ff=2880, bias=True)
        parts = {"has_sinks": True, "attention_bias": True, "experts": experts}
        return cls(**{**sizes, **reach, **parts, **changes})
