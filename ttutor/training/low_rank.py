r"""LoRA: fine-tune a model by adding a product of two thin matrices to some of its weights, and training nothing else.

$$W' = W + \frac{\alpha}{r}\,B A, \qquad A \in \mathbb{R}^{r \times d_\mathrm{in}},\;
  B \in \mathbb{R}^{d_\mathrm{out} \times r}$$

Hu et al. (2022), section 4.1. $B$ begins at zero, so the model begins as it was. What was learned is small, can be
saved alone and exchanged, and can be merged into the weights, after which the model costs what it cost before.

It attaches to linear maps by their names, whatever the model around them: `torch.nn.utils.parametrize` lets a layer
compute its weight.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

__all__ = ["LowRank", "attach_low_rank", "load_low_rank", "low_rank_tensors", "merge_low_rank"]

QUERIES_AND_VALUES = ("to_query", "to_value")
"""The maps that the paper adapts, section 4.2, by the names that they have in all models of ours."""


class LowRank(nn.Module):
    r"""What is added to one weight: $\frac{\alpha}{r}\,B A$.

    Args:
        weight: the weight, for its sizes, number format and device.
        rank: $r$.
        alpha: $\alpha$.

    Example:
        >>> weight = torch.randn(5, 3)
        >>> torch.equal(LowRank(weight, rank=2, alpha=2.0)(weight), weight)
        True
    """

    def __init__(self, weight: Float[Tensor, "d_out d_in"], rank: int, alpha: float) -> None:
        super().__init__()
        d_out, d_in = weight.shape
        if not 1 <= rank <= min(d_out, d_in):
            raise ValueError(
                f"rank must be from 1 to {min(d_out, d_in)} for a weight of {d_out} x {d_in}, but is {rank}"
            )
        self.factor = alpha / rank
        self.narrow = nn.Parameter(weight.new_empty(rank, d_in))
        self.widen = nn.Parameter(weight.new_zeros(d_out, rank))
        nn.init.kaiming_uniform_(self.narrow, a=math.sqrt(5))  # as the authors' code; the paper says Gaussian

    def forward(self, weight: Float[Tensor, "d_out d_in"]) -> Float[Tensor, "d_out d_in"]:
        """The weight and what was learned."""
        return weight + self.factor * einsum(self.widen, self.narrow, "d_out rank, rank d_in -> d_out d_in")


def attach_low_rank(
    model: nn.Module, *, rank: int, alpha: float | None = None, layers: Iterable[str] = QUERIES_AND_VALUES
) -> list[str]:
    """Add a `LowRank` to the weights of some linear maps, and freeze everything else.

    Args:
        model: any model; it is changed in place and trained as before.
        rank: how thin the two matrices are.
        alpha: how strongly they count, ``rank`` when left out; with a fixed value other ranks need no other learning
            rate.
        layers: the last part of the maps' names; the paper adapts those to queries and values.

    Returns:
        The full names of the maps.

    Example:
        >>> from ttutor.multihead import MultiHeadAttention
        >>> attention = MultiHeadAttention(d_model=8, n_heads=2)
        >>> attach_low_rank(attention, rank=2)
        ['to_query', 'to_value']
        >>> sorted(low_rank_tensors(attention))  # doctest: +NORMALIZE_WHITESPACE
        ['to_query.narrow', 'to_query.widen', 'to_value.narrow', 'to_value.widen']
        >>> merge_low_rank(attention)
    """
    wanted = set(layers)
    chosen = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name.rpartition(".")[2] in wanted
    }
    missing = wanted - {name.rpartition(".")[2] for name in chosen}
    if missing:
        raise ValueError(f"{type(model).__name__} has no linear map called {', '.join(sorted(missing))}")
    users = [id(parameter) for module in model.modules() for parameter in module.parameters(recurse=False)]
    for name, module in chosen.items():
        if parametrize.is_parametrized(module):
            raise ValueError(f"{name} computes its weight already: merge what is attached there first")
        if users.count(id(module.weight)) > 1:
            raise ValueError(f"{name} shares its weight with another layer, which would be changed with it")
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for module in chosen.values():
        adapter = LowRank(module.weight, rank, float(rank) if alpha is None else alpha)
        parametrize.register_parametrization(module, "weight", adapter)
    return list(chosen)


def low_rank_tensors(model: nn.Module) -> dict[str, Tensor]:
    """What was learned, and nothing else: small enough to keep one for each task (`load_low_rank`)."""
    return {
        f"{name}.{part}": tensor.detach().clone()
        for name, adapter in _adapters(model)
        for part, tensor in adapter.named_parameters()
    }


def load_low_rank(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put what was learned elsewhere into a model to which the same maps were attached, of the same rank and alpha."""
    own = {f"{name}.{part}": own for name, adapter in _adapters(model) for part, own in adapter.named_parameters()}
    if set(own) != set(tensors):
        raise ValueError(f"these tensors are of other maps: {', '.join(sorted(set(own) ^ set(tensors)))}")
    for name, parameter in own.items():
        if parameter.shape != tensors[name].shape:
            raise ValueError(f"{name} is {tuple(tensors[name].shape)}, but the model's {tuple(parameter.shape)}")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensors[name])


def merge_low_rank(model: nn.Module) -> None:
    """Write what was learned into the weights: the model has its old parts again, and all of them can be trained."""
    names = [name for name, _ in _adapters(model)]
    if not names:
        raise ValueError(f"nothing of low rank is attached to this {type(model).__name__}")
    for name in names:
        parametrize.remove_parametrizations(model.get_submodule(name), "weight")
    for parameter in model.parameters():
        parameter.requires_grad_(True)


def _adapters(model: nn.Module) -> Iterator[tuple[str, LowRank]]:
    """The name of each map that has one, and what is attached to it."""
    for name, module in model.named_modules():
        if parametrize.is_parametrized(module, "weight"):
            for adapter in module.parametrizations["weight"]:
                if isinstance(adapter, LowRank):
                    yield name, adapter
