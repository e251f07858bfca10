"""Matplotlib's figure as SVG for a page: the page's own typeface, and colours that follow it between light and dark."""

import re
from html import escape
from io import StringIO
from typing import Any

from ttutor.widgets.style import PAGE, PALETTE, scheme_css

_NAME = "ttutor-figure"
_PIXELS_PER_POINT = 1.6
_TAG = re.compile(r"<[^>]+>")
_LONG_NUMBER = re.compile(r"-?\d*\.\d{2,}(?:e-\d+)?")
_HEX = re.compile(r"#[0-9a-f]{6}\b")
_SUPERFLUOUS = re.compile(r' id="[a-zA-Z0-9.]+_\d+"|font-family: [^;"]*(?:; )?| transform="rotate\(-0 [^"]*"')
_VARIABLES = {
    **{colour.lower(): f"var(--{name})" for name, colour in PALETTE.items()},
    **{PAGE[name].lower(): f"var(--{name})" for name in ("page", "text", "muted", "border")},
}
_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def to_svg(figure: Any, description: str) -> str:
    """Write a Matplotlib figure as one ``<svg>`` element for an HTML page.

    Args:
        figure: drawn in colours of ``PALETTE`` and ``PAGE``, which become those of the page's scheme.
        description: what a reader would see who sees it.
    """
    written = StringIO()
    figure.savefig(written, format="svg", transparent=True, metadata=_METADATA)
    body = written.getvalue().partition("<svg")[2].partition(">")[2]
    body = re.sub(r">\s+<", "><", re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL))
    body = _TAG.sub(lambda tag: _for_the_page(tag[0]), body)
    width, height = (72 * inches for inches in figure.get_size_inches())
    return (
        f'<svg class="{_NAME}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'style="width:100%;max-width:{_PIXELS_PER_POINT * width:.0f}px" aria-label="{escape(description)}">'
        f"<style>{scheme_css(f'.{_NAME}')}.{_NAME} text{{font-family:var(--tt-font,sans-serif)}}</style>{body}"
    )


def _for_the_page(tag: str) -> str:
    """One tag: coordinates to a hundredth of a point, colours by their names, no typeface of its own."""
    tag = _HEX.sub(lambda colour: _VARIABLES.get(colour[0], colour[0]), tag)
    tag = _SUPERFLUOUS.sub("", tag)
    tag = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag)
    return tag.replace("\n", " ")
