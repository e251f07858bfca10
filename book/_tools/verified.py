"""Run notebooks as the tests do, and record in ``book/verified.json`` which passed: when, with what, how long it took.

``python -m book._tools.verified`` runs every notebook of the book (or those named) through nbval, strictly and on one
thread. Only what passes is recorded. The record holds a mark of the cells as they were, so that the built page can say
whether they have been changed since. This is the one command that writes a date.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from book._tools.notebook_io import code_cells, notebooks, output_is_ignored, read, tags
from experiments._record import processor
from nbformat import NotebookNode

import ttutor

ROOT = Path(__file__).resolve().parents[2]

RECORD = ROOT / "book" / "verified.json"
NBVAL = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", "--nbval-cell-timeout=300")
PACKAGES = ("torch", "numpy", "jupyter-book")


def mark(notebook: NotebookNode) -> str:
    """Return a mark of what a run shows to be right: the code cells in order, with the outputs that are compared."""
    shown = [
        [cell.source, sorted(tags(cell)), [] if output_is_ignored(cell) else cell.outputs]
        for cell in code_cells(notebook)
    ]
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode("utf-8")).hexdigest()[:16]


def mark_of(path: Path) -> str:
    """Return the mark of a notebook file."""
    return mark(read(path.read_text(encoding="utf-8")))


def recorded(record: Path = RECORD) -> dict[str, dict[str, Any]]:
    """Return what is recorded of each notebook, by its stem; nothing where no notebook was ever verified."""
    return json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}


def environment() -> dict[str, Any]:
    """Return what a run depends on: versions, and the machine by its processor."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "machine": {"processor": processor(), "cores": os.cpu_count(), "system": platform.system()},
        "versions": packages | {"python": platform.python_version(), "ttutor": ttutor.__version__},
    }


def run(path: Path) -> tuple[bool, float]:
    """Compare a notebook with a fresh run, on one thread.

    Returns:
        Whether every output was the stored one, and the seconds of processor time that took, start of Python included:
        a busy machine lengthens them much less than the time on the clock, though not by nothing.
    """
    before = os.times()
    done = subprocess.run((*NBVAL, str(path)), cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return done.returncode == 0, spent


def verify(path: Path, record: Path = RECORD) -> bool:
    """Run one notebook and, if it passes, record that; return whether it passed."""
    passed, seconds = run(path)
    if passed:
        entry = {"cells": mark_of(path), "date": f"{datetime.now(UTC):%Y-%m-%d}", "processor_seconds": round(seconds)}
        known = recorded(record) | {path.stem: entry | environment()}
        record.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="\n")
    return passed


def main(arguments: list[str] | None = None) -> int:
    """Verify, or check the record; return 0 only if all is well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of the book's when left out")
    options = parser.parse_args(arguments)
    paths = [path.resolve() for path in options.notebooks] or notebooks()
    failed = [path.name for path in paths if not verify(path)]
    print(f"{len(paths) - len(failed)} of {len(paths)} notebooks are verified." + f" Failed: {failed}" * bool(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
