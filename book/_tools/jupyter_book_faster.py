"""Jupyter Book's own command line, on all processors.

Its options offer neither more than one process nor a memory for what the bibliography asks of the installed packages
thousands of times.
"""

from __future__ import annotations

import os
from functools import cache, partial

MOST = 8
"""Processes beyond which a book of this size gains nothing."""


def faster() -> None:
    """Change both for this process."""
    import jupyter_book.sphinx
    import pybtex.plugin

    pybtex.plugin.entry_points = cache(pybtex.plugin.entry_points)
    jobs = min(MOST, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    jupyter_book.sphinx.build_sphinx = partial(jupyter_book.sphinx.build_sphinx, jobs=jobs)


if __name__ == "__main__":
    faster()
    from jupyter_book.cli.main import main

    main()
