"""What a choice of backend depends on: the facts of one call, without its tensors.

They can be written by hand, to ask and to test what would be chosen on another machine.
"""

from importlib.util import find_spec
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.errors import ShapeError
from ttutor.masks import Mask, combine_masks
from ttutor.shapes import (
    check_dtypes,
    check_shapes,
    has_free_sizes,
    has_values,
    is_recorded,
    is_transformed,
)

HALF = (torch.bfloat16, torch.float16)
"""The half-precision number formats, in which kernels differ most."""

HAS_TRITON = find_spec("triton") is not None  # looked for, not loaded


class AttentionCall(NamedTuple):
    """The facts of one call of an attention function.

    Attributes:
        n_queries, n_keys: how many there are.
        device: ``"cpu"``, ``"cuda"`` or ``"mps"``.
        capability: of an NVIDIA GPU, such as ``(9, 0)``; None elsewhere.
        dtype: of the queries.
        batch, n_heads, d_head, d_value: further sizes.
        causal: whether keys after the query are hidden.
        window: keys as far away as this are hidden; None where there is no window.
        has_key_lengths: whether the rows have different numbers of real keys, and say so.
        has_dense: whether some further mask comes as a tensor.
        has_bias: whether something is added to the scores.
        dropout: probability of dropping a weight.
        needs_gradient: whether a backward pass may follow.
        is_recorded: whether PyTorch records the call, for other numbers than those at hand (`ttutor.shapes`).
        has_free_sizes: whether the record is for other sizes, too, as in `torch.export` and `torch.jit.trace`.
        is_transformed: whether `torch.func` transforms it, or derivatives are taken forwards.
        has_triton: whether Triton is installed, with which PyTorch compiles kernels for GPUs.
    """

    n_queries: int
    n_keys: int
    device: str = "cpu"
    capability: tuple[int, int] | None = None
    dtype: torch.dtype = torch.float32
    batch: int = 1
    n_heads: int = 1
    d_head: int = 64
    d_value: int = 64
    causal: bool = False
    window: int | None = None
    has_key_lengths: bool = False
    has_dense: bool = False
    has_bias: bool = False
    dropout: float = 0.0
    needs_gradient: bool = False
    is_recorded: bool = False
    has_free_sizes: bool = False
    is_transformed: bool = False
    has_triton: bool = False

    @property
    def area(self) -> int:
        """The number of scores of one head."""
        return self.n_queries * self.n_keys

    @property
    def n_scores(self) -> int:
        """The number of scores of all heads."""
        return self.batch * self.n_heads * self.area


def call_of(
    query: Tensor, key: Tensor, value: Tensor, mask: Mask, *, bias: Tensor | None = None, dropout: float = 0.0
) -> AttentionCall:
    """The facts of a call with these tensors, ``batch heads tokens d_head``."""
    is_cuda = query.is_cuda
    tensors = (query, key, value, bias, mask.key_lengths, mask.dense)
    wants_gradient = query.requires_grad or key.requires_grad or value.requires_grad
    wants_gradient = wants_gradient or (bias is not None and bias.requires_grad)
    return AttentionCall(
        device=query.device.type,
        capability=torch.cuda.get_device_capability(query.device) if is_cuda else None,
        dtype=query.dtype,
        batch=query.shape[0],
        n_heads=query.shape[-3],
        n_queries=query.shape[-2],
        n_keys=key.shape[-2],
        d_head=query.shape[-1],
        d_value=value.shape[-1],
        causal=mask.causal,
        window=mask.window,
        has_key_lengths=mask.key_lengths is not None,
        has_dense=mask.dense is not None,
        has_bias=bias is not None,
        dropout=dropout,
        needs_gradient=torch.is_grad_enabled() and wants_gradient,
        is_recorded=is_recorded(),
        has_free_sizes=has_free_sizes(),
        is_transformed=any(is_transformed(one) for one in tensors if one is not None),
        has_triton=HAS_TRITON,
    )


def check_tensors(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> None:
    """Refuse tensors that do not make up one call, of the axes ``batch heads tokens width`` each."""
    axes = {"query": (query, "batch heads queries d_head")}
    if mask.key_lengths is not None:
        check_shapes(**axes, key_lengths=(mask.key_lengths, "batch"))
    check_shapes(**axes, key=(key, "batch kv_heads keys d_head"), value=(value, "batch kv_heads keys d_value"))
    if query.shape[1] % key.shape[1]:
        raise ShapeError(f"{query.shape[1]} query heads cannot share {key.shape[1]} key/value heads evenly")
    check_dtypes(query=query, key=key, value=value)


def prepare(
    query: Float[Tensor, "batch heads queries d_head"],
    key: Float[Tensor, "batch kv_heads keys d_head"],
    value: Float[Tensor, "batch kv_heads keys d_value"],
    mask: Mask | Bool[Tensor, "..."] | None,
    *,
    causal: bool,
    window: int | None,
    bias: Float[Tensor, "..."] | None,
    dropout: float,
) -> tuple[Mask, AttentionCall]:
    """The one mask that a backend gets, and the facts by which the backend is chosen, of tensors that fit together."""
    structure = combine_masks(mask, Mask(causal=causal, window=window))
    check_tensors(query, key, value, structure)
    structure = infer_key_lengths(structure, key)
    return structure, call_of(query, key, value, structure, bias=bias, dropout=dropout)


def infer_key_lengths(mask: Mask, key: Float[Tensor, "batch kv_heads keys d_head"]) -> Mask:
    """Describe a padding mask that came as a tensor by its lengths, on a CPU, where looking costs next to nothing.

    A mask ``batch 1 1 keys`` that is True up to some length in every row says no more than those lengths, and nothing
    at all if they are all whole.
    """
    dense = mask.dense
    if dense is None or dense.shape != (key.shape[0], 1, 1, key.shape[-2]):
        return mask
    if not has_values(dense):
        return mask
    if dense.all():
        return Mask(causal=mask.causal, window=mask.window, key_lengths=mask.key_lengths)
    real = rearrange(dense, "batch 1 1 keys -> batch keys")
    if (real[:, 1:] > real[:, :-1]).any():  # a real key after padding: no length can say that
        return mask
    return combine_masks(
        Mask(causal=mask.causal, window=mask.window, key_lengths=mask.key_lengths),
        Mask(key_lengths=real.sum(dim=-1)),
    )
