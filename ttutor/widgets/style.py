"""One visual language for Matplotlib figures, explorers and diagrams.

A colour has one meaning throughout the course, see ``MEANINGS``. The hues are those of Okabe and Ito (2008), which
readers with the common colour-vision deficiencies tell apart. Colours fill shapes; text stays in the foreground colour;
nothing is told by colour alone.
"""

from importlib.resources import files
from pathlib import Path

PALETTE: dict[str, str] = {
    "query": "#0072B2",
    "key": "#E69F00",
    "value": "#009E73",
    "weights": "#CC79A7",
    "memory": "#56B4E9",
    "decoder": "#7A3E1D",
    "loss": "#D55E00",
    "masked": "#C9CCD1",
}
"""Name of a part to its fill colour on a light page; explorers have it as ``--tt-<name>``, drawings as ``--<name>``."""

MEANINGS: dict[str, str] = {
    "query": "blue: what a word asks, and the word or place that asks",
    "key": "orange: what a word is found by, and the place that another is compared with",
    "value": "green: what a word hands over, and what a head writes of it",
    "weights": "purple: attention, the shares in which a word looks at others",
    "memory": "light blue: the vector that a word has become, such as the encoder's notes",
    "decoder": "brown: the decoder, what it reads and writes, and how probable that is",
    "loss": "vermilion: a loss, its gradient, what is wrong, and what has changed",
    "masked": "grey: what may not be seen, or does not count",
}
"""The one meaning of each colour in explorers and drawings. What the reader picks, what is right and what belongs to no
part of a model has the colour of the text. Plots give what has none of these meanings a colour by its place."""

PALETTE_DARK: dict[str, str] = {**PALETTE, "weights": "#A34E7C", "decoder": "#C08A68", "masked": "#3A4048"}
"""The same names on a dark page. Purple is deeper there, so that light text on it keeps a contrast of 4.5:1."""

OUTLINES: dict[str, str] = {**PALETTE, "key": "#8A6100", "memory": "#22739F", "masked": "#767676"}
"""Outlines that keep a 3:1 contrast with a light page, for fills that are lighter than that."""

OUTLINES_DARK: dict[str, str] = {**PALETTE_DARK, "weights": PALETTE["weights"], "masked": "#8A8F98"}
"""Outlines that keep a 3:1 contrast with a dark page."""

PAGE: dict[str, str] = {
    "page": "#FFFFFF",
    "text": "#1F2328",
    "muted": "#57606A",
    "surface": "#F5F6F8",
    "border": "#D0D4DA",
    "link": "#00629B",
}
"""What is no part of a model: the book's page, its text and lines, its links. Text on page or surface: 4.5:1."""

PAGE_DARK: dict[str, str] = {
    "page": "#14181E",
    "text": "#E6EDF3",
    "muted": "#A3ADB8",
    "surface": "#1D232B",
    "border": "#39424D",
    "link": "#6FC1F0",
}
"""The same on a dark page."""

STYLE_FILE = Path(str(files("ttutor.widgets") / "ttutor.mplstyle"))


def scheme_css(selector: str) -> str:
    """The palette as CSS variables of an element: of a light page, and of a dark one where the page, Jupyter or the
    system says so.

    >>> "--query:#0072B2" in scheme_css(".picture")
    True
    """
    light, dark = _variables(PALETTE, OUTLINES, PAGE), _variables(PALETTE_DARK, OUTLINES_DARK, PAGE_DARK)
    return (
        f"{selector}{{{light}}}"
        f"@media(prefers-color-scheme:dark){{html:not([data-theme=light]) "
        f"body:not([data-jp-theme-light=true]) {selector}{{{dark}}}}}"
        f"html[data-theme=dark] {selector},body[data-jp-theme-light=false] {selector}{{{dark}}}"
    )


def _variables(fills: dict[str, str], lines: dict[str, str], page: dict[str, str]) -> str:
    parts = "".join(f"--{name}:{fills[name]};--{name}-line:{lines[name]};" for name in fills)
    return parts + "".join(f"--{name}:{page[name]};" for name in ("text", "muted", "border", "page"))
