"""The public call: look at the structure, choose a backend, run it."""

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.efficient.choice import BACKENDS, check_backend, choose
from ttutor.efficient.situation import situation_of
from ttutor.masks import Mask, both
from ttutor.shapes import ShapeError, check_shapes

__all__ = ["efficient_attention", "structured"]


def efficient_attention(
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
    backend: str = "auto",
) -> Float[Tensor, "batch heads queries d_value"]:
    r"""The blend of values that each query receives, by whichever backend suits the call.

    The same function as `ttutor.attention.scaled_dot_product_attention`, Vaswani et al. (2017), equation 1.

    Args:
        query, key, value, mask, causal, window, bias, scale, dropout: as there, with all four axes.
        backend: ``"auto"``, or a name of `ttutor.efficient.BACKENDS`.

    Raises:
        ShapeError: the tensors' axes do not fit together, or mask or bias does not broadcast to the weights.
        TypeError: the mask is not bool, or the tensors have different dtypes.
        ValueError: the dropout is no probability below one, or the window is smaller than one.
        BackendError: the named backend does not exist or cannot run this call; the message says why, and what can.

    Example:
        >>> query = torch.zeros(1, 1, 1, 2)  # asks for nothing in particular, so it gets the mean
        >>> key, value = torch.randn(1, 1, 4, 2), torch.arange(4.0).reshape(1, 1, 4, 1)
        >>> efficient_attention(query, key, value)
        tensor([[[[1.5000]]]])
    """
    check_shapes(
        query=(query, "batch heads queries d_head"),
        key=(key, "batch kv_heads keys d_head"),
        value=(value, "batch kv_heads keys d_value"),
    )
    if query.shape[-3] % key.shape[-3]:
        raise ShapeError(f"{query.shape[-3]} query heads cannot share {key.shape[-3]} key/value heads evenly")
    if not query.dtype == key.dtype == value.dtype:
        raise TypeError(
            f"the tensors must have one dtype, but query is {query.dtype}, key {key.dtype}, value {value.dtype}"
        )
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, but is {dropout}")
    structure = structured(both(mask, Mask(causal=causal, window=window)), key)
    if structure.key_lengths is not None:
        check_shapes(query=(query, "batch heads queries d_head"), key_lengths=(structure.key_lengths, "batch"))
    situation = situation_of(query, key, value, structure, bias=bias, dropout=dropout)
    if backend == "auto":
        backend = choose(situation).name
    else:
        check_backend(backend, situation)
    attend = getattr(BACKENDS[backend], f"{backend}_attention")
    return attend(query, key, value, structure, bias=bias, scale=scale, dropout=dropout)


def structured(mask: Mask, key: Float[Tensor, "batch kv_heads keys d_head"]) -> Mask:
    """Find the lengths behind a mask of padding that came as a tensor, where looking costs nothing: on a CPU.

    A mask ``batch 1 1 keys`` that is True up to some length in every row says no more than those lengths, and nothing
    at all if they are all whole.

    Example:
        >>> padding = torch.tensor([[[[True, True, False]]], [[[True, True, True]]]])
        >>> structured(Mask(dense=padding), torch.zeros(2, 1, 3, 4)).key_lengths
        tensor([2, 3])
    """
    dense = mask.dense
    is_padding = dense is not None and dense.shape == (key.shape[0], 1, 1, key.shape[-2])
    if not is_padding or dense.device.type != "cpu" or torch.compiler.is_compiling():
        return mask
    if dense.all():
        return Mask(causal=mask.causal, window=mask.window, key_lengths=mask.key_lengths)
    real = rearrange(dense, "batch 1 1 keys -> batch keys")
    if (real[:, 1:] > real[:, :-1]).any():  # a real key after padding: no length can say that
        return mask
    return both(
        Mask(causal=mask.causal, window=mask.window, key_lengths=mask.key_lengths),
        Mask(key_lengths=real.sum(dim=-1)),
    )
