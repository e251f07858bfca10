"""Jupyter Book's own command line, on all processors.

Its options offer neither more than one process nor a memory for what the bibliography asks of the installed packages
thousands of times. And Sphinx hands out ten pages at a time: of a book with fewer than twenty long ones, one process
would get most. The check of the notebooks' form loads a grammar of addresses, which none of them needs, for more than a
second; and the search for memory to free goes through all pages, which stay to the end, again and again.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from functools import cache, partial

MOST = 8
"""Processes beyond which a book of this size gains nothing."""

AT_A_TIME = 2
"""Pages that a process is handed."""

LONGEST = "book/api"
"""The page that takes as long as ten others, and is handed out first."""


def faster() -> None:
    """Change all that for this process."""
    sys.modules["rfc3987_syntax"] = None  # jsonschema does without
    gc.set_threshold(200_000, 20, 50)
    import jupyter_book.sphinx
    import pybtex.plugin
    import sphinx.builders

    make_chunks = sphinx.builders.make_chunks

    def handed_out(pages: Sequence[str], n_processes: int) -> list[Sequence[str]]:
        return make_chunks(sorted(pages, key=lambda page: page != LONGEST), n_processes, AT_A_TIME)

    sphinx.builders.make_chunks = handed_out
    pybtex.plugin.entry_points = cache(pybtex.plugin.entry_points)
    jobs = min(MOST, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    jupyter_book.sphinx.build_sphinx = partial(jupyter_book.sphinx.build_sphinx, jobs=jobs)


if __name__ == "__main__":
    faster()
    from jupyter_book.cli.main import main

    main()
