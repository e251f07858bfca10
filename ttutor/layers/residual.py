"""The residual connection around each sublayer, with the norm before it, after the sum, or on what is added."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.errors import ShapeError
from ttutor.layers.norms import LayerNorm


class PostNorm(nn.Module):
    r"""Residual connection with the norm after the sum: $\mathrm{LayerNorm}(x + f(x))$.

    Vaswani et al. (2017), section 3.1; dropout on the sublayer's output by section 5.4.

    Args:
        d_model: number of features of a token.
        dropout: probability of dropping a feature of what the sublayer writes, while training.
        make_norm: makes the norm from ``d_model``.
    """

    def __init__(
        self, d_model: int, dropout: float = 0.0, *, make_norm: Callable[[int], nn.Module] = LayerNorm
    ) -> None:
        super().__init__()
        self.norm = make_norm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, hidden: Float[Tensor, "batch tokens d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Add what the sublayer makes of the stream, then normalise the stream."""
        return self.norm(_sum(hidden, self.dropout(sublayer(hidden))))


class PreNorm(nn.Module):
    r"""Residual connection with the norm inside the branch: $x + f(\mathrm{LayerNorm}(x))$.

    Xiong et al. (2020), figure 1 (b). The stream itself is never normalised, so a stack ends with a norm of its own.

    Args:
        d_model: number of features of a token.
        dropout: probability of dropping a feature of what the sublayer writes, while training.
        make_norm: makes the norm from ``d_model``.
    """

    def __init__(
        self, d_model: int, dropout: float = 0.0, *, make_norm: Callable[[int], nn.Module] = LayerNorm
    ) -> None:
        super().__init__()
        self.norm = make_norm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, hidden: Float[Tensor, "batch tokens d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Add what the sublayer makes of the normalised stream."""
        return _sum(hidden, self.dropout(sublayer(self.norm(hidden))))


class OutputNorm(nn.Module):
    r"""Residual connection with the norm on what the branch writes: $x + \mathrm{LayerNorm}(f(x))$.

    The stream is never normalised, and no sublayer can write much at once. The reordered norm of
    Walsh et al. (2024), OLMo 2.

    Args:
        d_model, dropout, make_norm: as for `PreNorm`.
    """

    def __init__(
        self, d_model: int, dropout: float = 0.0, *, make_norm: Callable[[int], nn.Module] = LayerNorm
    ) -> None:
        super().__init__()
        self.output_norm = make_norm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, hidden: Float[Tensor, "batch tokens d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Add what the sublayer makes of the stream, normalised."""
        return _sum(hidden, self.dropout(self.output_norm(sublayer(hidden))))


class SandwichNorm(PreNorm):
    r"""Residual connection with a norm on either side of the branch: $x + \mathrm{Norm}'(f(\mathrm{Norm}(x)))$.

    The report of Gemma 2 (2024), section 2.

    Args:
        d_model, dropout, make_norm: as for `PreNorm`.
    """

    def __init__(
        self, d_model: int, dropout: float = 0.0, *, make_norm: Callable[[int], nn.Module] = LayerNorm
    ) -> None:
        super().__init__(d_model, dropout, make_norm=make_norm)
        self.output_norm = make_norm(d_model)

    def forward(
        self, hidden: Float[Tensor, "batch tokens d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Add what the sublayer makes of the normalised stream, normalised as well."""
        return super().forward(hidden, lambda stream: self.output_norm(sublayer(stream)))


class ScaledPreNorm(PreNorm):
    r"""`PreNorm` with a learned factor for each feature of what is written: $x + \lambda \odot f(\mathrm{Norm}(x))$.

    The factors start small, so that a deep stack starts near the identity. LayerScale: Touvron et al. (2021b), section
    2.

    Args:
        d_model, dropout, make_norm: as for `PreNorm`.
        initial: the value of every factor at the start.
    """

    def __init__(
        self,
        d_model: int,
        dropout: float = 0.0,
        *,
        initial: float,
        make_norm: Callable[[int], nn.Module] = LayerNorm,
    ) -> None:
        super().__init__(d_model, dropout, make_norm=make_norm)
        self.factor = nn.Parameter(torch.full((d_model,), initial))

    def forward(
        self, hidden: Float[Tensor, "batch tokens d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Add what the sublayer makes of the normalised stream, feature by feature as much as is learned."""
        return super().forward(hidden, lambda stream: self.factor * sublayer(stream))


def _sum(hidden: Float[Tensor, "..."], written: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Stream and what a sublayer wrote, which must be of one shape: broadcasting would hide a sublayer's fault."""
    if written.shape != hidden.shape:
        raise ShapeError(f"a sublayer must give what it got, {tuple(hidden.shape)}, but gave {tuple(written.shape)}")
    return hidden + written


def residual_sublayer(
    norm: str, d_model: int, dropout: float = 0.0, *, make_norm: Callable[[int], nn.Module] = LayerNorm
) -> PreNorm | PostNorm:
    """The residual connection by the place of its norm, ``"post"`` (2017) or ``"pre"`` (most models since 2019)."""
    kinds: dict[str, type[PreNorm | PostNorm]] = {"post": PostNorm, "pre": PreNorm}
    if norm not in kinds:
        raise ValueError(f'norm must be "post" or "pre", but is {norm!r}')
    return kinds[norm](d_model, dropout, make_norm=make_norm)
