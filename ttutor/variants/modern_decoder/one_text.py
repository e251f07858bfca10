"""A decoder prepared for writing one text on a CPU: what every token would do again is done once.

To write a token a decoder reads each of its weights once and does two operations with it, far fewer than a processor
could do meanwhile (chapter 11): the time is that of the bytes. And in a small model as much goes into checks, views and
kernels that hardly do more than start. So here queries, keys and values are one product, the gate and what it opens
another, a layer is some twenty calls of PyTorch, and weights may have eight bits.

PyTorch 2.13 has no public function that gains by fewer bits when there is one row. In bfloat16 a product arranges its
weights anew each time, which takes longer than to read them in float32; and what it calls dynamic quantisation rounds
the activations to eight bits as well, after which SmolLM2 agrees with itself on one token in three. So the product is
`torch._weight_int8pack_mm`, a private function, under torchao's quantisation of weights alone; where it is missing,
weights stay as they are.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ttutor.cache import DecoderCache, KeyValueCache
from ttutor.efficient import efficient_attention
from ttutor.layers import GatedFeedForward, PreNorm, RMSNorm
from ttutor.multihead import MultiHeadAttention
from ttutor.variants.modern_decoder.model import DecoderBlock, ModernDecoder
from ttutor.variants.quantised import quantise

__all__ = ["OneText", "can_be_fast", "has_eight_bits", "prepared"]

Product = Callable[[Tensor], Tensor]
_PREPARED: WeakKeyDictionary[nn.Module, dict[bool, "OneText"]] = WeakKeyDictionary()


def has_eight_bits() -> bool:
    """Whether this PyTorch multiplies by weights of eight bits."""
    return hasattr(torch, "_weight_int8pack_mm")


def can_be_fast(model: nn.Module) -> bool:
    """Whether a model is a plain Llama by its parts, in float32 on a CPU, and nobody watches it or has changed it."""
    if not isinstance(model, ModernDecoder):
        return False
    config, parts = model.config, list(model.modules())
    kinds = {ModernDecoder, DecoderBlock, MultiHeadAttention, GatedFeedForward, PreNorm, RMSNorm, nn.Linear}
    layers = [part for layer in model.layers for part in layer.modules()]
    return (
        config.logit_cap is None
        and config.window is None
        and all(type(part) in kinds | {nn.Identity, nn.Dropout} for part in [*layers, model.final_norm])
        and all(type(layer.self_attention.query_norm) is nn.Identity for layer in cast(Any, model.layers))
        and all(part.bias is None for part in parts if isinstance(part, nn.Linear))
        and all(weight.is_cpu and weight.dtype == torch.float32 for weight in model.parameters())
        and all(part.attend is efficient_attention for part in parts if isinstance(part, MultiHeadAttention))
        and not any(part._forward_hooks or part._forward_pre_hooks for part in parts)
    )


def prepared(model: nn.Module, *, eight_bits: bool) -> "OneText | None":
    """A model, prepared once as it is now; None where it `can_be_fast` not.

    What is written into weights through ``.data``, which PyTorch does not count as a change, is not noticed.
    """
    if not can_be_fast(model):
        return None
    known = _PREPARED.setdefault(model, {})
    if eight_bits not in known or known[eight_bits].versions != _versions(model):
        known[eight_bits] = OneText(cast(ModernDecoder, model), eight_bits=eight_bits)
    return known[eight_bits]


def _versions(model: nn.Module) -> list[tuple[int, int]]:
    return [(one.data_ptr(), 0 if one.is_inference() else one._version) for one in model.parameters()]


class OneText:
    """Writes what a `ModernDecoder` would, one text, token by token, into the same cache.

    Args:
        model: one that `can_be_fast`; its weights must not change from now on.
        eight_bits: whether weights are rounded to eight bits, each row with a scale of its own, and what they are
            multiplied with to bfloat16.

    Example:
        >>> from ttutor.variants.llama import Llama, LlamaConfig
        >>> sizes = {"vocab_size": 50, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 32}
        >>> model, cache = Llama(LlamaConfig(**sizes)).eval(), DecoderCache(n_layers=2)
        >>> logits = OneText(model).step(7, cache)
        >>> torch.allclose(logits, model(torch.tensor([[7]]))[:, 0], atol=1e-5), cache.n_tokens
        (True, 1)
    """

    def __init__(self, model: ModernDecoder, *, eight_bits: bool = False) -> None:
        # Its parts, and not the model, which may go when nobody else needs it.
        self.embedding, self.rotary, self.final_norm = model.embedding, model.rotary, model.final_norm
        self.versions = _versions(model)
        make = _eight_bits if eight_bits else _plain
        self.layers = [_Layer(layer, make) for layer in cast(Any, model.layers)]
        self.to_logits = make([model.to_logits])

    @torch.inference_mode()
    def step(self, token_id: int, cache: DecoderCache) -> Float[Tensor, "1 vocab_size"]:
        """Read one token behind those in the cache; give the logits of the next."""
        positions, _ = cache.extend(torch.ones(1, 1, dtype=torch.bool))
        rotation = self.rotary(positions)
        cos, sin = rotation.cos[0].float(), rotation.sin[0].float()
        # The second half of a head stands beside its first, and the other way round.
        turns = torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1)
        hidden = self.embedding(torch.tensor([[token_id]]))[0]
        for layer, own in zip(self.layers, cache.layers, strict=True):
            hidden = layer.step(hidden, own.self_attention, turns)
        return self.to_logits(_normalised(hidden, self.final_norm))


class _Layer:
    """One layer, its weights as the products read them."""

    def __init__(self, layer: Any, make: Callable[[Sequence[nn.Linear]], Product]) -> None:
        attention, network = layer.self_attention, layer.feed_forward
        self.n_heads, self.n_kv_heads, self.scale = attention.n_heads, attention.n_kv_heads, attention.scale
        self.norms = layer.around_self_attention.norm, layer.around_feed_forward.norm
        self.to_heads = make([attention.to_query, attention.to_key, attention.to_value])
        self.to_output, self.narrow = make([attention.to_output]), make([network.narrow])
        self.to_inner, self.activation = make([network.gate, network.widen]), network.activation

    def step(
        self, hidden: Float[Tensor, "1 d_model"], cache: KeyValueCache, turns: tuple[Tensor, Tensor]
    ) -> Float[Tensor, "1 d_model"]:
        """Look back, then transform."""
        cos, sin = turns
        heads = self.to_heads(_normalised(hidden, self.norms[0]))
        heads = rearrange(heads, "1 (heads d_head) -> 1 heads 1 d_head", heads=self.n_heads + 2 * self.n_kv_heads)
        turned, value = heads[:, : -self.n_kv_heads], heads[:, -self.n_kv_heads :]
        turned = turned * cos + turned.roll(turned.shape[-1] // 2, dims=-1) * sin
        keys, values = cache.append(turned[:, self.n_heads :], value)
        # Heads that share keys are queries of one head.
        query = rearrange(turned[:, : self.n_heads], "1 (kv group) 1 d_head -> 1 kv group d_head", kv=self.n_kv_heads)
        context = functional.scaled_dot_product_attention(query, keys, values, scale=self.scale)
        hidden = hidden + self.to_output(rearrange(context, "1 kv group d_head -> 1 (kv group d_head)"))
        gate, wide = self.to_inner(_normalised(hidden, self.norms[1])).chunk(2, dim=-1)
        return hidden + self.narrow(self.activation(gate) * wide)


def _normalised(hidden: Tensor, norm: Any) -> Tensor:
    return functional.rms_norm(hidden, norm.gain.shape, norm.gain, norm.eps)


def _stacked(maps: Sequence[nn.Linear]) -> Tensor:
    """The weights of maps that read the same, one below the other."""
    return maps[0].weight.detach() if len(maps) == 1 else torch.cat([one.weight.detach() for one in maps])


def _plain(maps: Sequence[nn.Linear]) -> Product:
    weight = _stacked(maps)
    return lambda hidden: functional.linear(hidden, weight)


def _eight_bits(maps: Sequence[nn.Linear]) -> Product:
    rounded = quantise(_stacked(maps))
    codes, scales = rounded.codes, rounded.scales.flatten().to(torch.bfloat16)
    multiply = torch._weight_int8pack_mm
    return lambda hidden: multiply(hidden.to(torch.bfloat16), codes, scales).float()
