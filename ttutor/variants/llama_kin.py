"""Llama's kin: families that are a Llama but for a part or two.

- Qwen 3: queries and keys pass an RMSNorm in every head. Yang et al. (2025), section 2.
- Mixtral: a mixture of experts where the feed-forward network was. Jiang et al. (2024), section 2.
- Qwen 3's mixtures of experts: both.

Each is `Llama` with another layer; generation, caches and everything that looks inside work on all of them alike.
Published weights load by `ttutor.interop.from_huggingface`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from torch import Tensor

from ttutor.layers import GatedFeedForward, RMSNorm
from ttutor.multihead import MultiHeadAttention
from ttutor.transformer.blueprint import Blueprint
from ttutor.variants.experts import MixtureOfExperts, Router
from ttutor.variants.llama import Llama, LlamaBlock, LlamaConfig

__all__ = ["ExpertsConfig", "Mixtral", "Qwen3", "Qwen3Config", "Qwen3Experts"]


@dataclass(frozen=True, kw_only=True)
class Qwen3Config(LlamaConfig):
    """The sizes of a `Qwen3`: a Llama's.

    Example:
        >>> from ttutor.transformer import account
        >>> account(Qwen3Config.qwen3_8b()).n_parameters
        8190735360
    """

    def blueprint(self) -> Blueprint:
        """What the model is made of: a Llama, and two norms more in each layer."""
        of_llama = super().blueprint()
        norms = 2 * self.n_layers * (self.d_head or self.d_model // self.n_heads)
        return of_llama.replace(name="Qwen 3", further={**of_llama.further, "norms": norms})

    @classmethod
    def qwen3_8b(cls, **changes: Any) -> "Qwen3Config":
        """Qwen3-8B, 8.2 B parameters: layers and heads by Yang et al. (2025), table 1; the rest as released."""
        sizes = {"vocab_size": 151_936, "n_kv_heads": 8, "d_head": 128, "n_layers": 36, "d_ff": 12_288}
        return cls(**{**sizes, "max_len": 40_960, "rotary_base": 1e6, **changes})


@dataclass(frozen=True, kw_only=True)
class ExpertsConfig(LlamaConfig):
    """The sizes of a Llama whose feed-forward networks are mixtures of experts; ``d_ff`` is the width of one expert.

    Args:
        n_experts: how many there are in each layer.
        n_chosen: how many of them a token visits.
        renormalise: whether the shares of a token sum to one, as for `ttutor.variants.experts.Router`.

    Example:
        >>> ExpertsConfig.mixtral_8x7b().n_chosen
        2
    """

    n_experts: int = 8
    n_chosen: int = 2
    renormalise: bool = True

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from super().errors()
        yield from self.require_positive_int("n_experts", "n_chosen")
        yield from self.require_bool("renormalise")
        if type(self.n_chosen) is type(self.n_experts) is int and self.n_chosen > self.n_experts:
            yield f"a token visits at most all experts (n_chosen={self.n_chosen}, n_experts={self.n_experts})"

    def blueprint(self) -> Blueprint:
        """Refused: `ttutor.transformer.account` counts layers of which a token uses everything."""
        raise TypeError(
            "account cannot count mixtures of experts; build the model under torch.device('meta'), and ask "
            "ttutor.variants.experts.n_active_parameters"
        )

    @classmethod
    def mixtral_8x7b(cls, **changes: Any) -> "ExpertsConfig":
        """Mixtral 8x7B, 47 B parameters of which 13 B are active: Jiang et al. (2024), table 1; base as released."""
        sizes = {"n_kv_heads": 8, "d_head": 128, "d_ff": 14_336, "max_len": 32_768, "rotary_base": 1e6}
        return cls(**{**sizes, "norm_eps": 1e-5, **changes})


class Mixtral(Llama):
    """A Llama whose feed-forward networks are mixtures of experts.

    Args:
        config: sizes and choices.
        attend: the attention function of all layers.

    Example:
        >>> import torch
        >>> config = ExpertsConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=8, n_experts=4)
        >>> Mixtral(config)(torch.tensor([[7, 8, 9]])).shape
        torch.Size([1, 3, 50])
    """

    def make_layer(self, config: LlamaConfig, attend: Callable[..., Tensor]) -> LlamaBlock:
        """Llama's layer with experts."""
        return _with_experts(super().make_layer(config, attend), config)


class Qwen3(Llama):
    """A Llama whose queries and keys pass an RMSNorm in every head, so that no score grows with the projections.

    Args:
        config: sizes and choices.
        attend: the attention function of all layers.

    Example:
        >>> import torch
        >>> Qwen3(Qwen3Config(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=32))(torch.tensor([[7, 8]])).shape
        torch.Size([1, 2, 50])
    """

    def make_layer(self, config: LlamaConfig, attend: Callable[..., Tensor]) -> LlamaBlock:
        """Llama's layer with these norms."""
        layer = super().make_layer(config, attend)
        layer.self_attention = MultiHeadAttention(
            config.d_model,
            config.n_heads,
            config.n_kv_heads,
            d_head=config.d_head,
            bias=False,
            make_norm=partial(RMSNorm, eps=config.norm_eps),
            attend=attend,
        )
        return layer


class Qwen3Experts(Qwen3):
    """A `Qwen3` whose feed-forward networks are mixtures of experts.

    Args:
        config: sizes and choices.
        attend: the attention function of all layers.
    """

    def make_layer(self, config: LlamaConfig, attend: Callable[..., Tensor]) -> LlamaBlock:
        """Qwen 3's layer with experts."""
        return _with_experts(super().make_layer(config, attend), config)


def _with_experts(layer: LlamaBlock, config: LlamaConfig) -> LlamaBlock:
    """The layer with a mixture of experts for its feed-forward network."""
    sizes = cast(ExpertsConfig, config)
    router = Router(sizes.d_model, sizes.n_experts, sizes.n_chosen, renormalise=sizes.renormalise)
    layer.feed_forward = MixtureOfExperts(router, partial(GatedFeedForward, sizes.d_model, sizes.d_ff))
    return layer
