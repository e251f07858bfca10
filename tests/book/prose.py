"""What a chapter's text says, cell by cell: the numbers in its sentences, and the names of code it mentions.

The tests compare both with what the cells have computed and with what the package holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from nbformat import NotebookNode

NUMBER = re.compile(
    r"(?<![\w.,])(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+)(?!\w)(?:\s?(?P<unit>%|thousand|million|billion))?"
)
CITED, OTHER = "\u2020", "\xa4"  # stand for a citation, and for whatever else is no text
TAG = re.compile(r"<[^>]*>")
STORED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+(?:[eE][+-]?\d+)?")
MATH = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
UNITS = {"%": (1.0, 100.0), "thousand": (1.0, 1e-3), "million": (1.0, 1e-6), "billion": (1.0, 1e-9), "": (1.0,)}
# What these words are followed by is an address, not a measurement.
ADDRESS = re.compile(
    r"(?:sections?|tables?|figures?|equations?|appendix|chapters?|part|version|Llama|GPT|Python|PyTorch|Gemma)\s+"
    r"(?:[\dA-Z.]+,?\s+(?:and\s+|to\s+)?)*$"
)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number as a sentence writes it.

    Attributes:
        value: what it says, in its unit.
        decimals: how many decimals are written: what another number must agree to.
        unit: ``%``, ``thousand``, ``million``, ``billion``, or nothing.
        text: as it is written.
    """

    value: float
    decimals: int
    unit: str
    text: str

    def agrees(self, stored: float) -> bool:
        """Return whether a stored number, rounded as this one is, is this one.

        >>> Number(value=93, decimals=0, unit="%", text="93 %").agrees(0.934)
        True
        """
        half = 0.5000001 * 10**-self.decimals
        candidates = [stored * factor for factor in UNITS[self.unit]]
        if self.unit == "%":
            candidates.append((1 - stored) * 100)
        return any(abs(candidate - self.value) <= half for candidate in candidates)


@cache
def _parser() -> MarkdownIt:
    return create_md_parser(
        MdParserConfig(enable_extensions={"dollarmath", "amsmath", "colon_fence", "deflist"}), RendererHTML
    )


def _inline(tokens: list[Token]) -> Iterator[Token]:
    """Every token that holds a run of text, those inside directives too."""
    for token in tokens:
        if token.type == "inline":
            yield token
        elif token.type in ("fence", "colon_fence") and token.info.strip().startswith("{"):
            yield from _inline(_parser().parse(token.content))


def _word(token: Token) -> str:
    """A piece of a paragraph as plain words; a citation, and all that is no text, becomes a sign."""
    if token.type == "text":
        return token.content
    if token.type in ("softbreak", "hardbreak"):
        return " "
    if token.type == "myst_role" and token.meta["name"].startswith("cite"):
        return CITED
    return "" if token.type.endswith(("_open", "_close")) else OTHER


def paragraphs(source: str) -> Iterator[str]:
    r"""Yield the paragraphs of MyST Markdown as plain words; formulas, code and references become a sign.

    >>> list(paragraphs("Of $x$, **93 %** by `top_p`.\n\n```python\n0.5\n```"))
    ['Of \xa4, 93 % by \xa4.']
    """
    for token in _inline(_parser().parse(source)):
        yield "".join(map(_word, token.children or ()))


def code_names(source: str) -> Iterator[str]:
    """Yield what MyST Markdown sets as code within a line.

    >>> list(code_names("Call `fit`, see {doc}`setup`."))
    ['fit']
    """
    for token in _inline(_parser().parse(source)):
        yield from (child.content for child in token.children or () if child.type == "code_inline")


def measured_numbers(paragraph: str) -> Iterator[Number]:
    """Yield the numbers of a paragraph that look measured: with a decimal point, a thousands comma, or in per cent.

    >>> [number.text for number in measured_numbers("In 3 of 7 runs .93, see section 3.2.1 and table 2.")]
    ['.93']
    """
    for match in NUMBER.finditer(paragraph):
        digits, unit = match["digits"], match["unit"] or ""
        if not ("." in digits or "," in digits or unit == "%"):
            continue
        if ADDRESS.search(paragraph[: match.start()]):
            continue
        decimals = len(digits.partition(".")[2])
        yield Number(value=float(digits.replace(",", "")), decimals=decimals, unit=unit, text=match[0])


def stored_numbers(cell: NotebookNode) -> set[float]:
    """Return every number that a cell holds: code and outputs of a code cell, the formulas of a text."""
    if cell.cell_type == "markdown":
        text = " ".join(MATH.findall(cell.source))
    else:
        data = (
            TAG.sub(" ", part)  # the coordinates of a drawing measure nothing
            for output in cell.outputs
            for name, part in output.get("data", {}).items()
            if "text" in name
        )
        streams = (output.get("text", "") for output in cell.outputs)
        text = " ".join([cell.source, *streams, *data])
    return {float(found.replace(",", "")) for found in STORED.findall(text)}
