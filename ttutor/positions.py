"""Positions: attention sees a set of tokens, so their order must be told.

Two ways of telling it by adding a vector to each token's embedding: waves of many lengths (`sinusoidal_encoding`), and
a table that is learned (`LearnedPositions`).
"""

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

__all__ = ["LearnedPositions", "SinusoidalPositions", "sinusoidal_encoding"]


def sinusoidal_encoding(
    max_len: int, d_model: int, *, device: torch.device | str | None = None
) -> Float[Tensor, "max_len d_model"]:
    r"""One vector for each position, made of waves whose lengths grow geometrically.

    $$PE_{p,2i} = \sin\!\left(p / 10000^{2i/d_\mathrm{model}}\right), \qquad
      PE_{p,2i+1} = \cos\!\left(p / 10000^{2i/d_\mathrm{model}}\right)$$

    Vaswani et al. (2017), section 3.5. With an odd ``d_model`` the last wave has its sine only. The angles are computed
    in float64 and the result is float32, so that far positions are exact too.

    Args:
        max_len: number of positions, counted from 0.
        d_model: width of each vector.

    Raises:
        ValueError: ``max_len`` is negative or ``d_model`` is not positive.

    Example:
        >>> sinusoidal_encoding(3, 4)
        tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
                [ 0.8415,  0.5403,  0.0100,  0.9999],
                [ 0.9093, -0.4161,  0.0200,  0.9998]])
    """
    if max_len < 0 or d_model < 1:
        raise ValueError(f"max_len must be at least 0 and d_model at least 1, but max_len={max_len}, d_model={d_model}")
    position = torch.arange(max_len, dtype=torch.float64, device=device)
    even_feature = torch.arange(0, d_model, 2, dtype=torch.float64, device=device)  # the 2i of the formula
    frequency = 10000.0 ** (-even_feature / d_model)
    angle = rearrange(position, "positions -> positions 1") * frequency
    waves = rearrange([angle.sin(), angle.cos()], "sin_cos positions pairs -> positions (pairs sin_cos)")
    return waves[:, :d_model].float()


class SinusoidalPositions(nn.Module):
    """`sinusoidal_encoding` as a module without parameters: give it positions, get their vectors.

    Args:
        d_model: width of each vector.
        max_len: number of positions that it can encode.

    Example:
        >>> SinusoidalPositions(d_model=8, max_len=16)(torch.tensor([[0, 1, 2]])).shape
        torch.Size([1, 3, 8])
    """

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model), persistent=False)

    def forward(self, positions: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens d_model"]:
        """The vectors of these positions.

        Raises:
            ValueError: a position is negative or not below ``max_len``.
        """
        _check_range(positions, self.max_len)
        return self.encoding[positions]


class LearnedPositions(nn.Module):
    """A table with one learned vector for each position, as in BERT and GPT-2; it knows nothing beyond its last row.

    Gehring et al. (2017); Vaswani et al. (2017), table 3, row E, found it as good as the waves within its length.

    Args:
        d_model: width of each vector.
        max_len: number of rows of the table.
    """

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.table = nn.Embedding(max_len, d_model)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, positions: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens d_model"]:
        """The vectors of these positions.

        Raises:
            ValueError: a position is negative or not below ``max_len``.
        """
        _check_range(positions, self.max_len)
        return self.table(positions)


def _check_range(positions: Int[Tensor, "batch tokens"], max_len: int) -> None:
    """Refuse positions outside the table; only on a CPU, since a GPU would have to be waited for."""
    if torch.compiler.is_compiling() or positions.device.type != "cpu" or positions.numel() == 0:
        return
    low, high = (int(bound) for bound in positions.aminmax())
    if low < 0 or high >= max_len:
        raise ValueError(f"positions run from {low} to {high}, but this module knows 0 to {max_len - 1}")
