"""Which backend runs a call, and why.

The choice is made for each call from the facts in an `AttentionCall` alone. It is a pure function, so it can be asked
about a machine that is not there. The limits in the rules for CPUs were measured by ``benchmarks/attention.py``. On a
GPU nothing was, and the reason says so: there only PyTorch's own kernels are chosen, by what its documentation says.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient import eager, flex, sdpa, tiled, window
from ttutor.efficient.attention_call import HALF, AttentionCall, prepare
from ttutor.efficient.sdpa import mask_form
from ttutor.errors import SettingError
from ttutor.masks import Mask


class Backend(NamedTuple):
    """One way to compute attention.

    Attributes:
        attend: the function.
        unsupported_reason: says why it cannot run a call, or None if it can; some always can.
    """

    attend: Callable[..., Tensor]
    unsupported_reason: Callable[[AttentionCall], str | None] = lambda call: None


BACKENDS = {
    "reference": Backend(scaled_dot_product_attention),
    "eager": Backend(eager.eager_attention),
    "sdpa": Backend(sdpa.sdpa_attention),
    "tiled": Backend(tiled.tiled_attention, tiled.unsupported_reason),
    "window": Backend(window.window_attention, window.unsupported_reason),
    "flex": Backend(flex.flex_attention, flex.unsupported_reason),
}
"""All backends that compute the same function, by name."""

MOST_SCORES = 2**28  # scores that may be in memory at once: 1 GiB of float32
FEW_SCORES = 2**12  # with fewer, the time goes into starting the kernel, and a fused kernel starts fastest


class Choice(NamedTuple):
    """A backend's name and the reason for taking it."""

    name: str
    reason: str


class Rule(NamedTuple):
    """A backend, the reason for taking it, and the calls that it is for (if it can run them)."""

    name: str
    reason: str
    applies: Callable[[AttentionCall], bool]


def _is_long_for_its_window(call: AttentionCall) -> bool:
    """Whether a band of blocks is so much less than the whole that it pays to compute the band alone."""
    is_half_training = call.device == "cpu" and call.dtype in HALF and call.needs_gradient
    shortest = 1024 if is_half_training else 512  # plain products are fast there
    return call.window is not None and call.n_queries >= 256 and call.n_keys >= max(shortest, 2 * call.window)


def _is_few_at_few(call: AttentionCall) -> bool:
    """Whether a fused kernel, which starts anew for every head of every row, would hardly do more than start."""
    return not call.needs_gradient and 1 < call.n_queries <= 8 and call.n_keys <= 48 and call.n_scores >= FEW_SCORES


def _has_flash_kernel(call: AttentionCall) -> bool:
    """Whether PyTorch's FlashAttention for GPUs computes in this format, and with these widths."""
    return call.dtype in HALF and (call.capability or (0, 0)) >= (8, 0) and call.d_head == call.d_value


RULES = {
    "cpu": (
        Rule(
            "eager",
            "what torch.func or a derivative taken forwards makes of a call, plain products alone can do",
            lambda call: call.is_transformed,
        ),
        Rule(
            "eager",
            "what is exported has to hold for every size, and with dropout or the gradient of a bias",
            lambda call: call.has_free_sizes and (call.dropout > 0 or (call.has_bias and call.needs_gradient)),
        ),
        Rule("sdpa", "what is exported has to hold for every size", lambda call: call.has_free_sizes),
        Rule(
            "window",
            "the keys are many windows long, and blocks outside the band are never computed",
            _is_long_for_its_window,
        ),
        Rule(
            "eager",
            "with dropout PyTorch's CPU kernels write the weights down in full as well",
            lambda call: call.dropout > 0,
        ),
        Rule(
            "eager",
            "PyTorch's fused CPU kernel has no gradient for a bias",
            lambda call: call.has_bias and call.needs_gradient,
        ),
        Rule(
            "tiled",
            "the table of scores would not fit, and the tiles write none",
            lambda call: call.n_scores > MOST_SCORES and (call.has_bias or call.d_head != call.d_value),
        ),
        Rule(
            "eager",
            "in half precision, plain products beat PyTorch's fused CPU kernel at these lengths",
            lambda call: call.dtype in HALF and FEW_SCORES <= call.n_scores <= MOST_SCORES and call.area <= 512**2,
        ),
        Rule(
            "eager",
            "at these lengths the backward pass through plain products is a little faster",
            lambda call: call.needs_gradient and not call.has_dense and 24**2 <= call.area <= 48**2,
        ),
        Rule(
            "eager",
            "rows of different lengths, too short to be worth a kernel call each",
            lambda call: (
                call.needs_gradient and call.has_key_lengths and call.n_scores >= FEW_SCORES and call.area <= 24**2
            ),
        ),
        Rule(
            "eager",
            "a few queries look at a few keys, as in beam search: all heads and rows are one product",
            _is_few_at_few,
        ),
        Rule(
            "sdpa",
            "PyTorch's plain products: its fused CPU kernel needs values as wide as keys",
            lambda call: call.d_head != call.d_value,
        ),
        Rule("sdpa", "a fused kernel that reads the mask as a table", lambda call: mask_form(call) == "table"),
        Rule("sdpa", "a fused kernel that knows this structure", lambda call: True),
    ),
    "cuda": (
        Rule(
            "eager",
            "what torch.func or a derivative taken forwards makes of a call, plain products alone can do",
            lambda call: call.is_transformed,
        ),
        Rule(
            "sdpa",
            "PyTorch's flash kernel knows this structure",
            lambda call: mask_form(call) != "table" and _has_flash_kernel(call),
        ),
        Rule(
            "sdpa",
            "PyTorch's memory-efficient kernel knows this structure",
            lambda call: mask_form(call) != "table" and call.dtype != torch.float64,
        ),
        Rule(
            "flex",
            "PyTorch compiles a kernel for this window, which skips the blocks outside it",
            lambda call: _is_long_for_its_window(call) and call.dtype != torch.float64,
        ),
        Rule(
            "sdpa",
            "PyTorch's plain products: no fused kernel for GPUs computes in float64",
            lambda call: call.dtype == torch.float64,
        ),
        Rule("sdpa", "PyTorch's memory-efficient kernel reads the mask as a table", lambda call: True),
    ),
}
"""For each kind of device the rules in order; the first that applies, and whose backend can run the call, decides."""


def choose(call: AttentionCall) -> Choice:
    """The choice for a call of these facts.

    Example:
        >>> choose(AttentionCall(n_queries=512, n_keys=512, causal=True))
        Choice(name='sdpa', reason='a fused kernel that knows this structure')
    """
    unmeasured = "" if call.device == "cpu" else "; not measured here"
    for rule in RULES.get(call.device, ()):
        if rule.applies(call) and unsupported_reason(rule.name, call) is None:
            return Choice(rule.name, rule.reason + unmeasured)
    handed = ", handed the mask as a table" if mask_form(call) == "table" else ""
    return Choice("sdpa", f"PyTorch's kernels for {call.device}{handed}{unmeasured}")


def choose_backend(
    query: Float[Tensor, "batch heads queries d_head"],
    key: Float[Tensor, "batch kv_heads keys d_head"],
    value: Float[Tensor, "batch kv_heads keys d_value"],
    mask: Mask | Bool[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: Float[Tensor, "..."] | None = None,
    dropout: float = 0.0,
) -> Choice:
    """What `ttutor.efficient.efficient_attention` runs for these tensors, and why.

    Example:
        >>> tensor = torch.zeros(1, 8, 4096, 64)
        >>> choose_backend(tensor, tensor, tensor, causal=True, window=256).name
        'window'
    """
    _, call = prepare(query, key, value, mask, causal=causal, window=window, bias=bias, dropout=dropout)
    return choose(call)


def unsupported_reason(name: str, call: AttentionCall) -> str | None:
    """Why a backend cannot run such a call; None if it can."""
    if name not in BACKENDS:
        raise SettingError(f'backend must be "auto" or one of {list(BACKENDS)}, but is {name!r}')
    return BACKENDS[name].unsupported_reason(call)


def check_backend(name: str, call: AttentionCall) -> None:
    """Refuse a backend that cannot run such a call, or does not exist; the message names those that can."""
    reason = unsupported_reason(name, call)
    if reason is not None:
        able = [other for other in BACKENDS if unsupported_reason(other, call) is None]
        raise SettingError(f"backend {name!r} cannot run this call: {reason}; {', '.join(able)} can")
