"""Our own fused kernel for NVIDIA GPUs: FlashAttention-2 (Dao 2023), forward and backward, in Triton.

This module has the public function and what it refuses, `ttutor.efficient.triton_launch` the operators by which PyTorch
differentiates and compiles the call, `ttutor.efficient.triton_kernels` the kernels. Triton is imported when the first
kernel is launched.
"""

import math
import os

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.efficient.attention_call import AttentionCall, call_of, check_tensors
from ttutor.efficient.triton_launch import forward
from ttutor.errors import SettingError
from ttutor.masks import Mask, both

LARGEST_HEAD = 128
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def why_not(call: AttentionCall) -> str | None:
    """Why this backend cannot run such a call; None if it can."""
    widest = max(call.d_head, call.d_value)
    if call.device != "cuda":
        return f"it compiles for NVIDIA GPUs, and these tensors are on {call.device}"
    if call.capability is None or call.capability < (8, 0):
        return f"it needs compute capability 8.0 or more, and this GPU's is {call.capability}"
    if call.dtype not in DTYPES:
        return f"it computes in float16, bfloat16 and float32, and the queries are {call.dtype}"
    if widest > LARGEST_HEAD:
        return f"its tiles hold heads of up to {LARGEST_HEAD} numbers, and these have {widest}"
    if call.has_dense:
        return "it reads no mask tensor, only causal, window and key lengths"
    if call.has_bias:
        return "it adds no bias to the scores"
    if call.dropout > 0:
        return "it has no dropout"
    if not call.has_triton:
        return "Triton is not installed"
    return None


def triton_attention(
    query: Float[Tensor, "batch heads queries d_head"],
    key: Float[Tensor, "batch kv_heads keys d_head"],
    value: Float[Tensor, "batch kv_heads keys d_value"],
    mask: Mask | Bool[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    bias: Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "batch heads queries d_value"]:
    """Attention by the protocol of `ttutor.attention.scaled_dot_product_attention`, in our own GPU kernel.

    Dao (2023), algorithms 1 and 2. Blocks of keys that the mask hides from a whole block of queries are never touched:
    half of them where it is causal, all but a band where it has a window, and the padding. Memory grows with the
    length, and time with the number of scores that are not hidden.

    Differs from the paper: the backward pass is two kernels, so that its results are the same bits every time.
    """
    structure = both(mask, Mask(causal=causal, window=window))
    check_tensors(query, key, value, structure)
    devices = [tensor.device for tensor in (query, key, value, structure.key_lengths) if tensor is not None]
    if len(set(devices)) > 1:  # the kernels would read beside the tensors
        raise ValueError(f"all tensors must be on one device, but came on {', '.join(map(str, devices))}")
    call = call_of(query, key, value, structure, bias=bias, dropout=dropout)
    reason = _why_not_interpreted(call) if _is_interpreted() else why_not(call)
    if reason is not None:
        raise SettingError(f"the backend 'triton' cannot run this call: {reason}; 'sdpa' and 'tiled' can")
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    output, _ = forward(query, key, value, structure.key_lengths, structure.causal, structure.window, scale)
    return output


def _is_interpreted() -> bool:
    """Whether Triton runs kernels in Python on a CPU, statement by statement: slow, but it needs no GPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def _why_not_interpreted(call: AttentionCall) -> str | None:
    """Why the interpreter cannot run such a call."""
    if call.dtype == torch.bfloat16:
        return "Triton's interpreter multiplies the bit patterns of bfloat16 numbers, not the numbers"
    return why_not(call._replace(device="cuda", capability=(8, 0)))
