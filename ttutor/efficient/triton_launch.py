"""The two operators behind `ttutor.efficient.triton`: how its kernels are sized, launched, differentiated and compiled.

Both are registered with PyTorch as operators of their own, so that `torch.compile` takes the call as one node of its
graph and need not look inside.

The sizes in `PLANS` follow from the memory and registers that the tiles need. No GPU was at hand when they were chosen:
compiled for capability 8.0, 8.6 and 9.0 they fit, but they were never timed.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

SHARED_KIB = {(8, 0): 163, (8, 7): 163, (9, 0): 227, (10, 0): 227, (10, 3): 227}
"""Shared memory of one program, where it is more than 99 KiB (CUDA C++ Programming Guide, compute capabilities)."""


class Plan(NamedTuple):
    """How a kernel cuts up its work: the rows of its tiles, warps (of 32 threads each), and tiles in flight at once."""

    block_queries: int
    block_keys: int
    num_warps: int
    num_stages: int


PLANS = {
    ("output", 2): (Plan(128, 128, 8, 3), Plan(128, 64, 8, 3), Plan(128, 64, 8, 2)),
    ("query_gradient", 2): (Plan(128, 64, 8, 3), Plan(128, 64, 8, 2), Plan(64, 32, 4, 2)),
    ("key_value_gradient", 2): (Plan(32, 128, 8, 3), Plan(32, 64, 8, 3)),
    ("output", 4): (Plan(32, 32, 8, 2),),
    ("query_gradient", 4): (Plan(32, 32, 8, 2),),
    ("key_value_gradient", 4): (Plan(32, 32, 8, 2),),
}
"""By direction and bytes of a number, from large tiles to small; the last fits into 99 KiB with the largest heads.

Large tiles multiply more for every number they read. A gradient of keys and values keeps two sums in registers, so the
tile of queries that passes by is narrow. float32 goes without tensor cores, and its tiles take twice the memory.
"""


def plan(direction: str, d_head: int, d_value: int, n_bytes: int, capability: tuple[int, int], n_queries: int) -> Plan:
    """The sizes with which a kernel is compiled: the first of a short list whose tiles fit into shared memory.

    Args:
        direction: ``"output"``, ``"query_gradient"`` or ``"key_value_gradient"``.
        d_head, d_value, n_queries: sizes of the call.
        n_bytes: of one number.
        capability: of the GPU, which says how much shared memory a program has.
    """
    able = (
        sizes for sizes in PLANS[direction, n_bytes] if fits(sizes, direction, d_head, d_value, n_bytes, capability)
    )
    sizes = next(able)
    if direction == "output" and n_queries <= sizes.block_queries // 2:  # compute few rows that nobody asked for
        return sizes._replace(block_queries=padded(n_queries), num_warps=4)
    return sizes


def fits(sizes: Plan, direction: str, d_head: int, d_value: int, n_bytes: int, capability: tuple[int, int]) -> bool:
    """Whether the tiles fit: one that stays, and as many as are in flight of those that pass by."""
    both = padded(d_head) + padded(d_value)  # a key with its value, or a query with its gradient
    if direction == "key_value_gradient":
        stay, pass_by = sizes.block_keys * both, sizes.block_queries * both
    else:
        alone = padded(d_head) if direction == "output" else both  # forward, a query comes alone
        stay, pass_by = sizes.block_queries * alone, sizes.block_keys * both
    needed = (stay + sizes.num_stages * pass_by) * n_bytes + 1024  # and a little for what passes between warps
    return needed <= SHARED_KIB.get(capability, 99) * 1024


def padded(width: int) -> int:
    """The next power of two: tiles have such sides only, and a tensor core's product needs 16 at least."""
    return max(16, 2 ** math.ceil(math.log2(width)))


@torch.library.custom_op("ttutor::triton_attention", mutates_args=())
def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_lengths: Tensor | None,
    causal: bool,
    window: int | None,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """The output and, for the backward pass, the base-two logarithm of each row's total: ``batch heads queries``."""
    output, log_total = _empty_outputs(query, key, value)
    if output.numel() > 0:
        tensors = (*_with_strides(query, key, value), key_lengths, output, log_total)
        _launch("attend_kernel", "output", query, value, tensors, causal, window, scale)
    return output, log_total


@forward.register_fake
def _empty_outputs(query, key, value, *how):
    output = query.new_empty((*query.shape[:-1], value.shape[-1]))
    return output, query.new_empty(query.shape[:-1], dtype=torch.float32)


@torch.library.custom_op("ttutor::triton_attention_backward", mutates_args=())
def backward(
    grad_output: Tensor, query: Tensor, key: Tensor, value: Tensor, key_lengths: Tensor | None,
    output: Tensor, log_total: Tensor, causal: bool, window: int | None, scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of query, key and value."""
    grad_query, grad_key, grad_value = _empty_gradients(grad_output, query, key, value)
    if output.numel() == 0 or key.numel() == 0:
        return grad_query.zero_(), grad_key.zero_(), grad_value.zero_()
    projection = torch.empty_like(log_total)  # the first kernel makes it, both use it
    inputs, slopes = (*_with_strides(query, key, value), key_lengths), _with_strides(grad_output)
    tensors = (*inputs, output, log_total, *slopes, projection, grad_query)
    _launch("query_gradient_kernel", "query_gradient", query, value, tensors, causal, window, scale)
    tensors = (*inputs, log_total, *slopes, projection, grad_key, grad_value)
    _launch("key_value_gradient_kernel", "key_value_gradient", query, value, tensors, causal, window, scale)
    return grad_query, grad_key, grad_value


@backward.register_fake
def _empty_gradients(grad_output, query, key, value, *how):
    return query.new_empty(query.shape), key.new_empty(key.shape), value.new_empty(value.shape)


def _remember(ctx, inputs, output):
    query, key, value, key_lengths, ctx.causal, ctx.window, ctx.scale = inputs
    ctx.save_for_backward(query, key, value, key_lengths, *output)


def _differentiate(ctx, grad_output, grad_log_total):
    """The gradients of all that `forward` takes. Its totals go nowhere, so nothing comes back through them."""
    gradients = backward(grad_output, *ctx.saved_tensors, ctx.causal, ctx.window, ctx.scale)
    return *gradients, None, None, None, None


forward.register_autograd(_differentiate, setup_context=_remember)


def _launch(
    kernel: str, direction: str, query: Tensor, value: Tensor, tensors: tuple,
    causal: bool, window: int | None, scale: float,
) -> None:  # fmt: skip
    """Start one program for each block of queries of each head, or of keys of each shared head."""
    (batch, n_heads, n_queries, d_head), (_, n_kv_heads, n_keys, d_value) = query.shape, value.shape
    capability = torch.cuda.get_device_capability(query.device) if query.is_cuda else (8, 0)
    sizes = plan(direction, d_head, d_value, query.element_size(), capability, n_queries)
    if direction == "key_value_gradient":
        n_programs = batch * n_kv_heads * math.ceil(n_keys / sizes.block_keys)
    else:
        n_programs = batch * n_heads * math.ceil(n_queries / sizes.block_queries)
    is_exact = torch.get_float32_matmul_precision() == "highest"
    from ttutor.efficient import triton_kernels  # late, since it loads Triton

    with torch.cuda.device_of(query):  # Triton launches on the current GPU
        getattr(triton_kernels, kernel)[(n_programs,)](
            *tensors,
            n_heads,
            n_heads // n_kv_heads,
            n_queries,
            n_keys,
            scale,
            0 if window is None else window,
            CAUSAL=causal,
            WINDOW=window is not None,
            D_HEAD=d_head,
            D_VALUE=d_value,
            PADDED_HEAD=padded(d_head),
            PADDED_VALUE=padded(d_value),
            PRECISION="ieee" if is_exact else "tf32",  # for float32 alone
            BLOCK_QUERIES=sizes.block_queries,
            BLOCK_KEYS=sizes.block_keys,
            num_warps=sizes.num_warps,
            num_stages=sizes.num_stages,
            enable_fp_fusion=True,  # a * b + c may be rounded once
        )


def _with_strides(*tensors: Tensor) -> tuple:
    """Each tensor, then the steps between its batches, heads and tokens; the numbers of a row stand side by side."""
    rows = [tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in tensors]
    return tuple(argument for tensor in rows for argument in (tensor, tensor.stride()[:-1]))
