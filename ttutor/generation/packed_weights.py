"""Weights in the order in which the processor reads them: for a search, which multiplies by the same ones many times.

oneDNN, which PyTorch brings along, lays a matrix out anew for its fastest product. That costs as much as a few products
and pays when many rows are multiplied again and again.
"""

import copy

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

FEW = 2**19
"""Products with fewer multiplications are faster as they are."""


class PackedLinear(nn.Module):
    """A linear map on a CPU in float32, its weight packed when the first product comes that is worth it.

    Args:
        weight: the map's; it must not change from now on.
        bias: what is added, if anything is.
    """

    def __init__(self, weight: Float[Tensor, "d_out d_in"], bias: Float[Tensor, " d_out"] | None = None) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias
        self.out_features, self.in_features = weight.shape
        self._packed: Tensor | None = None

    def forward(self, hidden: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        """The same map."""
        if hidden.numel() * self.out_features < FEW:
            return functional.linear(hidden, self.weight, self.bias)
        if self._packed is None:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach())
        return torch.ops.mkldnn._linear_pointwise(hidden, self._packed, self.bias, "none", [], "")


def packed(linear: nn.Linear) -> PackedLinear:
    """The same map, packed."""
    return PackedLinear(linear.weight, linear.bias)


def can_be_packed(linear: nn.Linear) -> bool:
    """Whether a linear map is on a CPU in float32, and nobody watches it."""
    return linear.weight.is_cpu and linear.weight.dtype == torch.float32 and not linear._forward_hooks


def with_packed_weights(model: nn.Module) -> nn.Module:
    """The same model, for inference in float32 on a CPU with oneDNN; elsewhere the model itself.

    It is a copy of the containers alone, and of the weights as they are packed; the given model stays as it is.
    """
    if not torch.backends.mkldnn.is_available():
        return model
    if type(model) is nn.Linear:
        return packed(model) if can_be_packed(model) else model
    changed = copy.copy(model)
    changed._modules = {name: part and with_packed_weights(part) for name, part in model._modules.items()}
    return changed
