"""Which names a cell's code binds and which it reads: whether a notebook runs can then be seen without running it."""

from __future__ import annotations

import builtins
import symtable
from collections.abc import Iterator

from book._tools.notebook_io import code_cells
from nbformat import NotebookNode

GIVEN = frozenset({*dir(builtins), "__file__", "__name__", "display", "get_ipython"})
"""Names that a notebook has before its first cell."""


def names(source: str) -> tuple[set[str], set[str]]:
    """Return the global names that a cell's code binds, and those that it reads and does not bind.

    >>> bound, needed = names("def area(r):\\n    return pi * r**2")
    >>> sorted(bound), sorted(needed)
    (['area'], ['pi'])
    """
    bound, needed = set(), set()
    tables = [symtable.symtable(source, "cell", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table.get_type() == "module" and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
            elif table.get_type() == "module" or symbol.is_global():
                needed.add(symbol.get_name())
    return bound, needed - bound


def undefined(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Yield each cell's id with a name that it reads and that no cell before it, nor itself, binds."""
    known = set(GIVEN)
    for cell in code_cells(notebook):
        bound, needed = names(cell.source)
        known |= bound
        yield from ((cell.id, name) for name in sorted(needed - known))
