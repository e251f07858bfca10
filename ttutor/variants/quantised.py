r"""Eight bits for a number: caches that take a quarter of the memory of float32, half of that of bfloat16.

$$\hat{x} = s \cdot \mathrm{round}(x / s), \qquad s = \max_i |x_i| \,/\, 127$$

with one scale $s$ for each cached vector. No number moves by more than $s / 2$. It is the absmax quantisation of
Dettmers et al. (2022), sections 2.1 and 3.1, by vectors.

Here numbers are turned back before they are multiplied: that saves memory, and on a GPU the time to fetch it, but not
arithmetic.
"""

from typing import NamedTuple

import torch
from einops import reduce
from jaxtyping import Float, Int, Int8, Shaped
from torch import Tensor

from ttutor.cache import KeyValueCache

__all__ = ["Quantised", "QuantisedCache", "quantise"]

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
    return Quantised((vectors / scales).round().to(torch.int8), scales)


class QuantisedCache(KeyValueCache):
    """A `KeyValueCache` that keeps each key and each value in eight bits, with one scale for each.

    For a whole model: ``DecoderCache(n_layers, make_cache=QuantisedCache)``.

    Example:
        >>> cache = QuantisedCache()
        >>> key, value = cache.append(torch.randn(1, 2, 3, 64), torch.randn(1, 2, 3, 64))
        >>> key.shape, cache.n_bytes / (2 * key.numel() * key.itemsize)
        (torch.Size([1, 2, 3, 64]), 0.265625)
    """

    def __init__(self, *, is_fixed: bool = False) -> None:
        super().__init__(is_fixed=is_fixed)
        self._codes, self._scales = KeyValueCache(), KeyValueCache()

    def __len__(self) -> int:
        return len(self._codes)

    def append(
        self, key: Shaped[Tensor, "batch heads tokens d_head"], value: Shaped[Tensor, "batch heads tokens d_value"]
    ) -> tuple[Tensor, Tensor]:
        """Take in keys and values of new tokens; give those of all tokens, the new ones rounded as well."""
        keys, values = quantise(key), quantise(value)
        self._codes.append(keys.codes, values.codes)
        self._scales.append(keys.scales, values.scales)
        return self.read()

    def read(self) -> tuple[Tensor, Tensor]:
        """The keys and values of all tokens so far."""
        pairs = zip(self._codes.read(), self._scales.read(), strict=True)
        key, value = (Quantised(codes, scales).restored() for codes, scales in pairs)
        return key, value

    @property
    def n_bytes(self) -> int:
        """How much memory codes and scales take."""
        return self._codes.n_bytes + self._scales.n_bytes

    def forget(self, n_newest: int) -> None:
        """Drop the newest tokens."""
        self._codes.forget(n_newest)
        self._scales.forget(n_newest)

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Keep these rows of the batch, in this order."""
        self._codes.select(rows)
        self._scales.select(rows)
