"""Waves: a fixed vector for each position, made of sines and cosines whose lengths grow geometrically."""

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.names import Answering
from ttutor.positions.learned import check_range


def sinusoidal_encoding(max_len: int, d_model: int) -> Float[Tensor, "max_len d_model"]:
    r"""One vector for each position, made of waves whose lengths grow geometrically.

    $$PE_{p,2i} = \sin\!\left(p / 10000^{2i/d_\mathrm{model}}\right), \qquad
      PE_{p,2i+1} = \cos\!\left(p / 10000^{2i/d_\mathrm{model}}\right)$$

    Vaswani et al. (2017), section 3.5. With an odd ``d_model`` the last wave has its sine only. The angles are computed
    in float64 and the result is float32, so that far positions are exact too.

    Args:
        max_len: number of positions, counted from 0.
        d_model: width of each vector.

    Example:
        >>> sinusoidal_encoding(3, 4)
        tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
                [ 0.8415,  0.5403,  0.0100,  0.9999],
                [ 0.9093, -0.4161,  0.0200,  0.9998]])
    """
    if max_len < 0 or d_model < 1:
        raise ValueError(f"max_len must be at least 0 and d_model at least 1, but max_len={max_len}, d_model={d_model}")
    position = torch.arange(max_len, dtype=torch.float64)
    even_feature = torch.arange(0, d_model, 2, dtype=torch.float64)  # the 2i of the formula
    frequency = 10000.0 ** (-even_feature / d_model)
    angle = rearrange(position, "positions -> positions 1") * frequency
    waves = rearrange([angle.sin(), angle.cos()], "sin_cos positions pairs -> positions (pairs sin_cos)")
    return waves[:, :d_model].float()


def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    r"""The linear map that moves every sinusoidal position by the same offset: $M_k\,PE_p = PE_{p+k}$ for all $p$.

    One rotation for each pair of features, by the angle addition formulas. Vaswani et al. (2017), section 3.5, give its
    existence as the reason for choosing waves.

    Args:
        offset: how far to move, forwards or backwards.
        d_model: width of the encoding, even: a sine without its cosine cannot be moved.

    Example:
        >>> moved = shift_matrix(2, 4) @ sinusoidal_encoding(4, 4)[1].double()
        >>> torch.allclose(moved.float(), sinusoidal_encoding(4, 4)[3])
        True
    """
    if d_model < 2 or d_model % 2:
        raise ValueError(f"a shift needs whole pairs of sine and cosine, an even d_model, but d_model={d_model}")
    even_feature = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = offset * 10000.0 ** (-even_feature / d_model)
    turn = rearrange(
        [angle.cos(), angle.sin(), -angle.sin(), angle.cos()], "(row column) pairs -> pairs row column", row=2
    )
    n_pairs = d_model // 2
    blocks = torch.zeros(n_pairs, n_pairs, 2, 2, dtype=torch.float64)
    blocks[range(n_pairs), range(n_pairs)] = turn
    return rearrange(blocks, "pairs other_pairs row column -> (pairs row) (other_pairs column)")


class SinusoidalPositions(Answering, nn.Module):
    """`sinusoidal_encoding` as a module without parameters: give it positions, get their vectors, in float32.

    Args:
        d_model: width of each vector.
        max_len: number of positions that it can encode.
    """

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        # No buffer: no checkpoint holds it, so a model built on `meta` would never get its numbers.
        with torch.device("cpu"):
            self.encoding = sinusoidal_encoding(max_len, d_model)

    def forward(self, positions: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens d_model"]:
        """The vectors of these positions."""
        check_range(positions, self.max_len)
        return self.encoding.to(positions.device)[positions]
