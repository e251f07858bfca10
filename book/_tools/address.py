"""Where the course is published: asked here by everything that names its repository, and written in one place.

That place is ``[project.urls]`` in ``pyproject.toml``, under ``Repository``. In a workflow on GitHub the repository in
which it runs counts instead, so that a fork's book leads to the fork. Where neither names one, there is no address: the
book then shows no link and no button that would need it.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import ttutor

ROOT = Path(__file__).resolve().parents[2]
GITHUB = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?")


def plain(written: str) -> str:
    """An address without what may follow it.

    >>> plain("https://github.com/someone/course.git")
    'https://github.com/someone/course'
    """
    found = GITHUB.fullmatch(written)
    if found is None or found.groups() == ("OWNER", "NAME"):  # the placeholder, uncommented as it stood
        raise ValueError(
            f"expected an address of the form https://github.com/OWNER/NAME, found {written!r}: mend Repository under "
            "[project.urls] in pyproject.toml, or the variable GITHUB_REPOSITORY (OWNER/NAME)"
        )
    return f"https://github.com/{found[1]}/{found[2]}"


def written_address() -> str | None:
    """The repository that ``pyproject.toml`` names; None if it names none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    written = project.get("urls", {}).get("Repository")
    return written and plain(written)


def address() -> str | None:
    """The repository of this build: GITHUB_REPOSITORY (``OWNER/NAME``) where it is set, else the one written."""
    running = os.environ.get("GITHUB_REPOSITORY")
    return plain(f"https://github.com/{running}") if running else written_address()


def revision() -> str:
    """The branch or tag that links into the repository name: the one a workflow builds, else the version's own.

    A released version is a tag, ``v0.1.0``; a development version (``0.2.0.dev0``) is on its way, on ``main``.
    """
    if os.environ.get("GITHUB_REF_TYPE") and not os.environ.get("GITHUB_BASE_REF"):  # a pull request's has no branch
        return os.environ["GITHUB_REF_NAME"]
    return tag(ttutor.__version__)


def tag(version: str) -> str:
    """Where a version lies in the repository.

    >>> tag("0.1.0"), tag("0.2.0.dev0")
    ('v0.1.0', 'main')
    """
    return "main" if "dev" in version else f"v{version}"


def pages(repository: str) -> str:
    """Where GitHub publishes the book of a repository.

    >>> pages("https://github.com/Someone/course"), pages("https://github.com/someone/someone.github.io")
    ('https://someone.github.io/course/', 'https://someone.github.io/')
    """
    owner, name = plain(repository).split("/")[-2:]
    site = f"{owner.lower()}.github.io"
    return f"https://{site}/" if name.lower() == site else f"https://{site}/{name}/"
