r"""Eight bits for a number: a quarter of the memory of float32, half of that of bfloat16.

$$\hat{x} = s \cdot \mathrm{round}(x / s), \qquad s = \max_i |x_i| \,/\, 127$$

with one scale $s$ for each vector: a row of a matrix, a cached key. No number moves by more than $s / 2$. It is the
absmax quantisation of Dettmers et al. (2022), sections 2.1 and 3.1, by vectors.

Here numbers are turned back before they are multiplied: that saves memory, and on a GPU the time to fetch it, but not
arithmetic.
"""

from typing import NamedTuple

import torch
from einops import reduce
from jaxtyping import Float, Int8
from torch import Tensor

__all__ = ["Quantised", "quantise"]

LARGEST = 127


class Quantised(NamedTuple):
    """Numbers in eight bits, with the scale of each vector.

    Attributes:
        codes: whole numbers from -127 to 127.
        scales: what each vector's codes are multiplied by.
    """

    codes: Int8[Tensor, "... features"]
    scales: Float[Tensor, "... 1"]

    def restored(self) -> Float[Tensor, "... features"]:
        """The numbers, as far as they were kept."""
        return self.codes.to(self.scales.dtype) * self.scales


def quantise(vectors: Float[Tensor, "... features"]) -> Quantised:
    """Round each vector to 255 steps between its largest number and minus that.

    Example:
        >>> quantise(torch.tensor([[1.27, -0.5, 0.004], [0.0, 0.0, 0.0]])).codes
        tensor([[127, -50,   0],
                [  0,   0,   0]], dtype=torch.int8)
    """
    largest = reduce(vectors.abs(), "... features -> ... 1", "max")
    scales = largest.masked_fill(largest == 0, 1.0) / LARGEST
    # In half precision a scale that was rounded down makes 128 of the largest number, which int8 would wrap to -128.
    return Quantised((vectors / scales).round().clamp(-LARGEST, LARGEST).to(torch.int8), scales)
