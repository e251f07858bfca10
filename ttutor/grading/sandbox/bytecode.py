"""Bytecode for workers: they may write none, and where none stands beside PyTorch each start would compile it anew."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from ttutor.grading.sandbox.choose import environment, python, worker_folder

IMPORTS = "from worker.serve import preload; preload()"


@contextmanager
def bytecode() -> Iterator[Path | None]:
    """Yield a folder with the bytecode of all that a worker imports, None where it stands beside the packages."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    if Path(spec.origin).with_name("__pycache__").joinpath(f"__init__.{sys.implementation.cache_tag}.pyc").exists():
        yield None
        return
    with TemporaryDirectory(prefix="ttutor-bytecode-") as folder:
        place = Path(folder)
        place.chmod(0o755)  # a worker in a container is somebody else
        # Where this fails, a worker does not start either, and its own message says so.
        subprocess.run(python(worker_folder().parent, IMPORTS), env=environment(place), cwd=place, check=False)
        yield place
