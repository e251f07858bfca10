"""The public call: prepare the mask, choose a backend, run it."""

from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.efficient.attention_call import prepare
from ttutor.efficient.choice import BACKENDS, check_backend, choose
from ttutor.masks import Mask


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
    r"""Attention by whichever backend suits the call.

    The same function as `ttutor.attention.scaled_dot_product_attention`, Vaswani et al. (2017), equation 1.

    Args:
        query, key, value, mask, causal, window, bias, scale, dropout: as there, with all four axes.
        backend: ``"auto"``, or a name of `ttutor.efficient.BACKENDS`.

    Raises:
        SettingError: the named backend does not exist or cannot run this call; the message says why, and what can.

    Example:
        >>> import torch
        >>> query = torch.zeros(1, 1, 1, 2)  # asks for nothing in particular, so it gets the mean
        >>> key, value = torch.randn(1, 1, 4, 2), torch.arange(4.0).reshape(1, 1, 4, 1)
        >>> efficient_attention(query, key, value)
        tensor([[[[1.5000]]]])
    """
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, but is {dropout}")
    structure, call = prepare(query, key, value, mask, causal=causal, window=window, bias=bias, dropout=dropout)
    if backend == "auto":
        backend = choose(call).name
    else:
        check_backend(backend, call)
    return BACKENDS[backend].attend(query, key, value, structure, bias=bias, scale=scale, dropout=dropout)
