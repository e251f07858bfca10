"""Small draws from a generator, and the check of what is called a share or a rate."""

import torch
from jaxtyping import Float
from torch import Tensor


def coins(n: int, probability: float, generator: torch.Generator) -> list[bool]:
    """So many draws, each True with this probability."""
    return (torch.rand(n, generator=generator, device=generator.device) < probability).tolist()


def number_below(n: int, generator: torch.Generator) -> int:
    """One of 0 to n - 1, each with the same probability."""
    return int(torch.randint(n, (), generator=generator, device=generator.device))


def uniform_like(tensor: Tensor, generator: torch.Generator) -> Float[Tensor, "..."]:
    """A number between 0 and 1 for every element of a tensor."""
    return torch.rand(tensor.shape, generator=generator, device=tensor.device)


def random_parts(total: int, n_parts: int, generator: torch.Generator) -> list[int]:
    """Cut a length into parts of one or more; every way to do so has the same probability."""
    borders = torch.randperm(total - 1, generator=generator, device=generator.device)[: n_parts - 1] + 1
    ends = [0, *sorted(borders.tolist()), total]
    return [end - start for start, end in zip(ends[:-1], ends[1:], strict=True)]


def check_rate(name: str, rate: float) -> None:
    """Refuse what is no share of a whole."""
    if not 0 <= rate <= 1:
        raise ValueError(f"{name} must be between 0 and 1, but is {rate}")
