"""A process that serves one submission: it gets ready, gives up what it does not need, and answers the judge.

It speaks over its standard input and output, as every system has them. It gets the files of a submission through the
pipe, and nothing else of the class.
"""

from __future__ import annotations

import os
import sys

from .confine import confine
from .serve import Worker, preload


def main(memory: int) -> None:
    """Serve until the judge hangs up."""
    preload()
    reads, writes = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # a student's print goes nowhere
        os.dup2(empty, standard)
    if os.name == "posix":
        os.closerange(max(reads, writes, empty) + 1, 4096)
    os.environ.clear()
    os.environ |= {"HOME": "/", "OMP_NUM_THREADS": "1"}
    confine(memory)
    sys.setrecursionlimit(1000)
    Worker(reads, writes).serve()
    os._exit(0)
