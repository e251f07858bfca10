"""Build the package to publish, ``dist/ttutor-VERSION-py3-none-any.whl`` and ``.tar.gz``: ``python release/dist.py``.

It is built from a copy of what belongs in it, so that nothing that an earlier build or an editor left in the checkout
gets in. The wheel is made from the source distribution, and has to hold the package as it stands here, file by file.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BESIDE = (
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "LICENSE-book",
    "MANIFEST.in",
    "README.md",
    "constraints.txt",
    "pyproject.toml",
)
NOT_SOURCE = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", "*~")


def stage(folder: Path) -> None:
    """Copy the package and the files beside it into a folder."""
    shutil.copytree(ROOT / "ttutor", folder / "ttutor", ignore=NOT_SOURCE)
    for name in BESIDE:
        shutil.copy2(ROOT / name, folder / name)


def package_files(folder: Path) -> set[str]:
    """The names of a package's files as they are in a wheel."""
    files = (path for path in (folder / "ttutor").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in files}


def wheel_files(wheel: Path) -> set[str]:
    """The names of a wheel's files, less its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def build(folder: Path, target: Path) -> list[Path]:
    """Build both distributions of the project in a folder; return them, the source distribution first.

    Raises:
        subprocess.CalledProcessError: the build failed; what it said is on standard error.
        RuntimeError: the wheel is not the package.
    """
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (sdist,), (wheel,) = target.glob("ttutor-*.tar.gz"), target.glob("ttutor-*.whl")
    if differing := wheel_files(wheel) ^ package_files(folder):
        raise RuntimeError(
            f"wheel and package differ in {', '.join(sorted(differing))}: mend package-data in pyproject.toml"
        )
    return [sdist, wheel]


def main(arguments: list[str] | None = None) -> int:
    """Build into ``dist``, in place of what was there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="where they go (default dist)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        stage(Path(scratch) / "source")
        built = build(Path(scratch) / "source", Path(scratch) / "dist")
        options.to.mkdir(parents=True, exist_ok=True)
        for old in options.to.glob("ttutor-*"):
            old.unlink()
        for path in built:
            shutil.copyfile(path, options.to / path.name)
            print(f"{options.to / path.name}: {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
