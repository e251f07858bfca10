"""Counting what a computation does: multiply-adds, exponentials, the largest tensor, what the backward pass needs.

Nothing here is a formula for an algorithm. The function is run, and every operation that PyTorch carries out is looked
at. Tensors on the ``meta`` device have a shape and no numbers; with them a count at length 100 000 is nearly as cheap
as at 10. What happens inside a fused kernel cannot be seen from outside: there the kernel's definition is counted, with
all scores, hidden ones too.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ttutor.efficient.eager import eager_attention

EXPONENTIALS = frozenset(
    "exp exp2 expm1 _softmax _log_softmax _safe_softmax logsumexp sigmoid tanh silu softplus elu "
    "silu_backward softplus_backward elu_backward".split()
)
POINTWISE = frozenset(
    "add sub rsub mul div neg square pow addcmul addcdiv sum mean cumsum _softmax_backward_data".split()
)
FUSED = {  # matrix products, how many of them by values, where the queries stand (keys and values follow)
    "_scaled_dot_product_flash_attention_for_cpu": (2, 1, 0),
    "_scaled_dot_product_flash_attention": (2, 1, 0),
    "_scaled_dot_product_efficient_attention": (2, 1, 0),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (5, 2, 1),
    "_scaled_dot_product_flash_attention_backward": (5, 2, 1),
    "_scaled_dot_product_efficient_attention_backward": (5, 2, 1),
}


@dataclass
class Operations:
    """What was counted.

    Attributes:
        matrix_products: how many, a batch of them as one.
        multiply_adds: of all matrix products and convolutions: pairs of factors.
        exponentials: numbers that went through an exponential, or a function made of one such as the softmax.
        pointwise: numbers that were added or multiplied one by one, outside of matrix products.
        largest: numbers in the largest tensor that was made; inputs and views of them do not count.
        kept: numbers kept for the backward pass, inputs included; views of one tensor count once.
        by_name: how often each of PyTorch's operations ran.
    """

    matrix_products: int = 0
    multiply_adds: int = 0
    exponentials: int = 0
    pointwise: int = 0
    largest: int = 0
    kept: int = 0
    by_name: Counter[str] = field(default_factory=Counter, repr=False)


def count_operations(function: Callable[..., Any], *args: Any, backward: bool = False, **kwargs: Any) -> Operations:
    """Run a function and count what it does.

    Args:
        function: what to run; parameters of a module count as inputs.
        *args: its arguments.
        **kwargs: its keyword arguments.
        backward: also run the backward pass, to all inputs that require a gradient, and count both together.

    Example:
        >>> count_operations(torch.matmul, torch.zeros(2, 3), torch.zeros(3, 5))
        Operations(matrix_products=1, multiply_adds=30, exponentials=0, pointwise=0, largest=10, kept=0)
    """
    inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    inputs += list(function.parameters()) if isinstance(function, nn.Module) else []
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    if backward and not wanted:
        raise ValueError("a backward pass was asked for, but no input requires a gradient")
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[_storage(tensor)] = tensor.detach()
        return tensor

    mode = _Counting(inputs)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), mode:
        out = function(*args, **kwargs)
    mode.counted.kept = sum(map(_numbers, kept.values()))
    if backward:
        ends = [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor) and leaf.requires_grad]
        directions = [torch.ones_like(end) for end in ends]
        with mode:
            torch.autograd.grad(ends, wanted, directions, allow_unused=True)
    return mode.counted


def attention_operations(
    attend: Callable[..., Tensor],
    n_queries: int,
    n_keys: int | None = None,
    *,
    n_heads: int = 1,
    d_head: int = 64,
    backward: bool = False,
    device: str = "meta",
    **options: Any,
) -> Operations:
    """What an attention function does on tensors of these sizes, a batch of one.

    Args:
        attend: by the protocol of `ttutor.attention.scaled_dot_product_attention`.
        n_queries, n_keys, n_heads, d_head: sizes; as many keys as queries when left out.
        backward: also count the gradients of query, key and value.
        device: ``"meta"`` runs no arithmetic. To have the kernel chosen as in real use: ``"cpu"``.
        **options: handed to the attention function.

    Example:
        >>> attention_operations(eager_attention, 1000, d_head=64).exponentials
        1000000
    """
    n_keys = n_queries if n_keys is None else n_keys
    query, key, value = (
        torch.zeros(1, n_heads, n_tokens, d_head, device=device, requires_grad=backward)
        for n_tokens in (n_queries, n_keys, n_keys)
    )
    return count_operations(attend, query, key, value, backward=backward, **options)


def decoding_cost(n_tokens: int, *, with_cache: bool) -> Operations:
    r"""What one head of 64 numbers does while ``n_tokens`` are written one after the other.

    With a cache, step $t$ asks with one query and finds $t$ keys: $\sum t$ scores in all, about $n^2/2$. Without, it
    asks again for all $t$ tokens: $\sum t^2$ scores, about $n^3/3$. Here they are not summed but run.

    Args:
        n_tokens: how many steps.
        with_cache: whether keys and values of earlier tokens are kept.

    Example:
        >>> decoding_cost(10, with_cache=True).exponentials, decoding_cost(10, with_cache=False).exponentials
        (55, 385)
    """

    def decode(tokens: Tensor) -> None:
        """Write the tokens one by one."""
        for t in range(1, n_tokens + 1):
            known = tokens[:, :, :t]
            eager_attention(known[:, :, -1:] if with_cache else known, known, known, causal=True)

    return count_operations(decode, torch.zeros(1, 1, n_tokens, 64, device="meta"))


@cache
def _flop_formulas() -> dict[Any, Callable[..., int]]:
    """PyTorch's formulas for the operations of matrix products, fetched late: their module loads Triton."""
    from torch.utils.flop_counter import flop_registry

    return flop_registry


class _Counting(TorchDispatchMode):
    """Looks at every operation below autograd, so that the backward pass is counted too."""

    def __init__(self, inputs: list[Tensor]) -> None:
        super().__init__()
        self.counted = Operations()
        self.given = {_storage(tensor) for tensor in inputs}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self._count(func.overloadpacket, args, kwargs, out)
        return out

    def _count(self, operation: Any, args: tuple, kwargs: dict[str, Any], out: Any) -> None:
        counted, name = self.counted, operation.__name__
        counted.by_name[name] += 1
        made = [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
        counted.largest = max([counted.largest, *(_numbers(x) for x in made if _storage(x) not in self.given)])
        in_place_or_not = name.removesuffix("_")
        if name in FUSED:
            n_products, n_by_value, place = FUSED[name]
            query, key, value = args[place : place + 3]
            n_scores = query.shape[:-1].numel() * key.shape[-2]
            counted.matrix_products += n_products
            counted.multiply_adds += n_scores * (n_products - n_by_value) * query.shape[-1]
            counted.multiply_adds += n_scores * n_by_value * value.shape[-1]
            counted.exponentials += n_scores
        elif operation in _flop_formulas():
            counted.matrix_products += 1
            counted.multiply_adds += _flop_formulas()[operation](*args, **kwargs, out_val=out) // 2
        elif in_place_or_not in EXPONENTIALS:
            counted.exponentials += made[0].numel()
        elif in_place_or_not in POINTWISE:
            read = (leaf.numel() for leaf in tree_leaves(args) if isinstance(leaf, Tensor))
            counted.pointwise += max([made[0].numel(), *read])  # a sum reads more than it gives


def _storage(tensor: Tensor) -> int:
    """What tells the memory of one tensor from that of another; a view shares it."""
    return tensor.untyped_storage()._cdata


def _numbers(tensor: Tensor) -> int:
    """How many numbers the memory behind a tensor holds; an expanded view makes none."""
    return tensor.untyped_storage().nbytes() // tensor.element_size()
