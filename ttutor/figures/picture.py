"""Images as they are: a photograph, a drawing, a row of digits."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ttutor.figures.plot import Plot, array

_LEVELS = 23  # of each channel, above 0: fewer keep a page small


@dataclass(repr=False, eq=False)
class Picture(Plot):
    """An image, without axes.

    Args:
        pixels: ``height width`` for grey, or ``rgb height width``; from 0 (black) to 1.
        seen: what a reader would see who sees it.
        cuts: rows and columns before which a thin white line is drawn, as where an image is cut.

    Raises:
        ValueError: the pixels have another shape.

    >>> Picture([[0.0, 1.0], [1.0, 0.0]], "A chessboard of two by two", title="Grey").describe()
    'Grey. A chessboard of two by two.'
    """

    pixels: Any
    seen: str
    cuts: Iterable[int] = ()

    def image(self) -> np.ndarray:
        """The pixels as `height width rgb`."""
        pixels = array(self.pixels)
        if pixels.ndim == 2:
            pixels = np.stack([pixels] * 3)
        if pixels.ndim != 3 or len(pixels) != 3:
            raise ValueError(f"pixels must be (height, width) or (3, height, width), but have shape {pixels.shape}")
        return np.round(_LEVELS * np.moveaxis(pixels, 0, -1).clip(0, 1)) / _LEVELS

    def draw(self, ax: Any) -> None:
        ax.imshow(self.image(), interpolation="none")
        for cut in self.cuts:
            ax.axhline(cut - 0.5, color="white", linewidth=0.4)
            ax.axvline(cut - 0.5, color="white", linewidth=0.4)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.grid(visible=False)

    def kind(self) -> str:
        return "Picture"

    def names(self) -> list[str]:
        return [self.seen]

    def data(self) -> str:
        return self.seen

    def describe(self) -> str:
        return super().describe().replace(f"{self.kind()}: ", "", 1)
