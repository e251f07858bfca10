"""The guarded line by which a chapter installs its package in Colab, and nowhere else.

Colab opens a notebook on a machine that has PyTorch and not this course. The first code cell of each notebook therefore
begins with an ``if`` that holds there only, and installs the version of ``ttutor`` that the notebook belongs to: from
the repository's tag where an address is written in ``pyproject.toml``, else by that version's number from the package
index. ``python -m book._tools.colab`` writes it into every notebook without executing any; so does ``make notebooks``.
"""

from __future__ import annotations

import copy
import re
import sys

from book._tools.address import tag, written_address
from book._tools.notebook_io import code_cells, notebooks, read, to_text
from nbformat import NotebookNode

import ttutor

GUARD = """\
# Colab comes without the package of this course; anywhere else, this does nothing.
if "google.colab" in str(get_ipython()):
"""
WRITTEN = re.compile(rf"^{re.escape(GUARD)}    .*?\n\n", re.DOTALL)
WIDTH = 88  # of a cell's line, as ruff formats it


def guarded_line(version: str, repository: str | None) -> str:
    """The source that a first cell begins with, formatted, and an empty line after it.

    >>> print(guarded_line("0.1.0", None), end="")
    # Colab comes without the package of this course; anywhere else, this does nothing.
    if "google.colab" in str(get_ipython()):
        get_ipython().system("pip install -q 'ttutor[chapters]==0.1.0'")
    <BLANKLINE>
    """
    where = f"=={version}" if repository is None else f" @ git+{repository}@{tag(version)}"
    command = f"\"pip install -q 'ttutor[chapters]{where}'\""
    line = f"    get_ipython().system({command})\n"
    if len(line) > WIDTH + 1:
        line = f"    get_ipython().system(\n        {command}\n    )\n"
    return f"{GUARD}{line}\n"


def with_guarded_line(notebook: NotebookNode) -> NotebookNode:
    """Return a copy whose first code cell begins with the line that its version and address ask for."""
    made = copy.deepcopy(notebook)
    first = next(code_cells(made))
    first.source = guarded_line(ttutor.__version__, written_address()) + WRITTEN.sub("", first.source)
    return made


def main() -> int:
    """Write the line into every notebook of the book, and say which files changed."""
    for path in notebooks():
        before = path.read_text(encoding="utf-8")
        after = to_text(with_guarded_line(read(before)))
        if after != before:
            path.write_text(after, encoding="utf-8", newline="\n")
            print(f"{path.name}: changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
