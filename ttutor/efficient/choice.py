"""Which backend runs a call, and why.

The choice is made anew for each call, from the facts in a `Situation` alone: device, number format, sizes and the
structure of the mask. It is a pure function, so that it can be asked about a machine that is not there. What it knows
of speeds was measured by ``benchmarks/attention.py``; where nothing was measured, the reason says so.
"""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.efficient import explicit, flex, reference, sdpa, tiled, triton, window
from ttutor.efficient.errors import BackendError
from ttutor.efficient.situation import HALF, Situation, situation_of
from ttutor.masks import Mask, both

__all__ = ["BACKENDS", "Choice", "check_backend", "choose", "choose_backend", "why_not"]

BACKENDS = {
    "reference": reference,
    "explicit": explicit,
    "sdpa": sdpa,
    "tiled": tiled,
    "window": window,
    "flex": flex,
    "triton": triton,
}
"""All backends that compute the same function, by name. Each says by ``why_not`` what it cannot run."""

MOST_SCORES = 2**28  # scores that may stand in memory at once: 1 GiB of float32
FEW_QUERIES = 8  # as in decoding: the mask is so small a table that reading it costs next to nothing
FEW_SCORES = 2**12  # below this a call costs what starting it costs, and a fused kernel starts fastest


class Choice(NamedTuple):
    """A backend's name and the reason for taking it."""

    name: str
    reason: str


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
    """What `ttutor.efficient.efficient_attention` would run for these tensors, and why.

    Example:
        >>> import torch
        >>> tensor = torch.zeros(1, 8, 4096, 64)
        >>> choose_backend(tensor, tensor, tensor, causal=True, window=256).name
        'window'
    """
    structure = both(mask, Mask(causal=causal, window=window))
    return choose(situation_of(query, key, value, structure, bias=bias, dropout=dropout))


def choose(situation: Situation) -> Choice:
    """The choice for a call of these facts.

    Example:
        >>> choose(Situation(n_queries=512, n_keys=512, causal=True))
        Choice(name='sdpa', reason='a fused kernel that knows this structure')
    """
    if situation.device == "cpu":
        return _on_a_cpu(situation)
    if situation.device == "cuda":
        return _on_a_gpu(situation)
    return Choice("sdpa", f"PyTorch's kernels for {situation.device}; nothing was measured there")


def _on_a_cpu(call: Situation) -> Choice:
    n_scores = call.batch * call.n_heads * call.n_queries * call.n_keys
    fits = n_scores <= MOST_SCORES
    if call.window is not None and _is_long_for_its_window(call) and window.why_not(call) is None:
        return Choice("window", "the keys are many windows long, and blocks outside the band are never computed")
    if call.dropout > 0:
        return Choice("explicit", "with dropout PyTorch's CPU kernels write the weights down in full as well")
    if call.has_bias and call.needs_gradient:
        return Choice("explicit", "PyTorch's fused CPU kernel has no gradient for a bias")
    if not fits and call.has_bias:
        return Choice("tiled", "the table of scores would not fit, and the tiles take a bias as it is")
    if call.dtype in HALF and n_scores >= FEW_SCORES and fits and _is_short_in_half(call):
        return Choice("explicit", "in half precision, plain products beat PyTorch's fused CPU kernel at these lengths")
    if call.needs_gradient and not call.has_dense and 24**2 <= call.n_queries * call.n_keys <= 48**2:
        return Choice("explicit", "at these lengths the way back through plain products is a little faster")
    if call.has_key_lengths and n_scores >= FEW_SCORES and call.n_queries > FEW_QUERIES:
        short = "rows of different lengths, too short to be worth a kernel call each"
        if call.needs_gradient and call.n_queries * call.n_keys <= 32**2:
            return Choice("explicit", short)
        if call.n_queries * call.n_keys <= 20**2 and tiled.why_not(call) is None:
            return Choice("tiled", short)
    if call.has_key_lengths or call.causal or not call.has_dense:
        return Choice("sdpa", "a fused kernel that knows this structure")
    return Choice("sdpa", "a fused kernel, which reads the mask as a table")


def _is_long_for_its_window(call: Situation) -> bool:
    """Whether a band of blocks is so much less than the whole that it pays to compute the band alone."""
    is_half_training = call.device == "cpu" and call.dtype in HALF and call.needs_gradient
    shortest = 1024 if is_half_training else 512  # plain products are fast there
    return call.n_queries >= 256 and call.n_keys >= max(shortest, 2 * call.window)


def _is_short_in_half(call: Situation) -> bool:
    """Whether lengths are below those at which the fused kernel's saving of memory outweighs its slow products."""
    if call.n_queries == 1:
        return True
    if call.needs_gradient:
        longest = 512 if call.causal or call.has_key_lengths else 1024
    else:
        longest = 256 if call.has_key_lengths else 512
    return call.n_queries * call.n_keys <= longest**2


def _on_a_gpu(call: Situation) -> Choice:
    is_plain = call.window is None and not call.has_key_lengths and not call.has_dense and not call.has_bias
    is_aligned = not call.causal or call.n_queries == call.n_keys or call.n_queries == 1
    if is_plain and is_aligned:
        return Choice("sdpa", "PyTorch's flash kernel knows this structure")
    if triton.why_not(call) is None:
        return Choice("triton", "our kernel skips what the mask's structure hides; not yet measured on a GPU")
    if call.window is not None and _is_long_for_its_window(call) and window.why_not(call) is None:
        return Choice("window", "blocks outside the band are never computed; not yet measured on a GPU")
    return Choice("sdpa", "PyTorch's memory-efficient kernel reads the mask as a table")


def why_not(name: str, situation: Situation) -> str | None:
    """Why a backend cannot run such a call; None if it can.

    Raises:
        BackendError: there is no backend of this name.
    """
    if name not in BACKENDS:
        raise BackendError(f'backend must be "auto" or one of {list(BACKENDS)}, but is {name!r}')
    return BACKENDS[name].why_not(situation)


def check_backend(name: str, situation: Situation) -> None:
    """Refuse a backend that cannot run such a call.

    Raises:
        BackendError: it cannot, or there is none of this name; the message names those that can.
    """
    reason = why_not(name, situation)
    if reason is not None:
        able = [other for other in BACKENDS if why_not(other, situation) is None]
        raise BackendError(f"backend {name!r} cannot run this call: {reason}; {', '.join(able)} can")
