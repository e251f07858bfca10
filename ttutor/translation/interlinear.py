"""Words under words: columns of text that a terminal can show, however long the sentence."""

import unicodedata
from collections.abc import Iterator, Sequence


def interlinear(columns: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Columns side by side; what does not fit a line is continued below an empty line.

    Args:
        columns: each a text for every row.
        width: how wide a line may be; a column that is wider stands alone.

    >>> print("\\n".join(interlinear([("le", "the"), ("chien", "dog"), ("dort", "sleeps")], width=12)))
    le   chien
    the  dog
    <BLANKLINE>
    dort
    sleeps
    """
    for number, block in enumerate(_blocks(columns, width)):
        if number:
            yield ""
        widths = [max(map(terminal_width, column)) for column in block]
        for row in zip(*block, strict=True):
            yield "  ".join(_padded(cell, wide) for cell, wide in zip(row, widths, strict=True)).rstrip()


def terminal_width(text: str) -> int:
    """How many places of a terminal a text takes: most letters one, Chinese ones two, combining accents none.

    >>> terminal_width("été"), terminal_width("北京")
    (3, 4)
    """
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text
    )


def _blocks(columns: Sequence[Sequence[str]], width: int) -> Iterator[list[Sequence[str]]]:
    """The columns, as many at a time as fit a line."""
    block: list[Sequence[str]] = []
    used = 0
    for column in columns:
        needed = 2 + max(map(terminal_width, column))
        if block and used + needed - 2 > width:
            yield block
            block, used = [], 0
        block.append(column)
        used += needed
    if block:
        yield block


def _padded(text: str, width: int) -> str:
    return text + " " * (width - terminal_width(text))
