"""A dependency map as a picture: which output moves when which input is changed."""

from __future__ import annotations

from torch import Tensor

from ttutor.exercises.exercise import Finding

CELL = 14
CAPTION = "row: output, column: input that was changed; filled: the output moves"


def as_text(finding: Finding) -> list[str]:
    """Return a finding's map as lines of a terminal, yours beside the expected one.

    >>> import torch
    >>> for line in as_text(Finding("", depends=torch.eye(2).bool(), expected=torch.ones(2, 2).tril().bool())):
    ...     print(line)
    yours   right
    █·      █·
    ·█      ██
    (row: output, column: input that was changed; filled: the output moves)
    """
    maps = _maps(finding)
    width = max(8, maps[0][1].shape[1] + 3)
    rows = ["".join(title.ljust(width) for title, _ in maps).rstrip()]
    for index in range(max(len(cells) for _, cells in maps)):
        drawn = ["".join("█" if on else "·" for on in cells[index]) for _, cells in maps if index < len(cells)]
        rows.append("".join(row.ljust(width) for row in drawn).rstrip())
    return [*rows, f"({CAPTION})"]


def as_svg(finding: Finding) -> str:
    """Return a finding's map as an inline drawing with a description for those who do not see it."""
    return (
        "".join(
            f'<figure style="display: inline-block; margin: 0.3em 1.2em 0.3em 0">{_svg(title, cells)}'
            f'<figcaption style="font-size: 0.85em">{title}</figcaption></figure>'
            for title, cells in _maps(finding)
        )
        + f'<p style="font-size: 0.85em; margin: 0">{CAPTION[0].upper()}{CAPTION[1:]}.</p>'
    )


def _maps(finding: Finding) -> list[tuple[str, Tensor]]:
    both = (("yours", finding.depends), ("right", finding.expected))
    return [(title, cells) for title, cells in both if cells is not None]


def _svg(title: str, cells: Tensor) -> str:
    rows, columns = cells.shape
    said = "; ".join(
        f"output {row} moves with {', '.join(map(str, moved.nonzero().flatten().tolist())) or 'none'}"
        for row, moved in enumerate(cells)
    )
    squares = "".join(
        f'<rect x="{column * CELL + 1}" y="{row * CELL + 1}" width="{CELL - 2}" height="{CELL - 2}" '
        f'fill="currentColor" fill-opacity="{0.85 if cells[row, column] else 0.1}"/>'
        for row in range(rows)
        for column in range(columns)
    )
    size = f'width="{columns * CELL}" height="{rows * CELL}"'
    return f'<svg role="img" aria-label="{title}: {said}" {size} xmlns="http://www.w3.org/2000/svg">{squares}</svg>'
