"""What ``CHANGELOG.md`` says of the newest version, and whether all places name the same version.

``python -m release.changelog`` prints the newest entry, which is the text of the release. ``--tag v0.1.0`` checks
first that the tag, the package, the changelog, ``CITATION.cff`` and the notebooks all mean this version.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

import ttutor
from book._tools.colab import with_guarded_line
from book._tools.notebook_io import notebooks, read

ROOT = Path(__file__).resolve().parents[1]

HEADING = re.compile(r"^## \[?(?P<version>[^\]\s]+)\]?(?: - (?P<date>\d{4}-\d\d-\d\d))?$", re.MULTILINE)
RELEASED = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True)
class Entry:
    """One version of the changelog: its number or ``Unreleased``, its date (empty for the latter), its text."""

    version: str
    date: str
    text: str


def entries(changelog: str) -> list[Entry]:
    r"""The entries of a changelog, the newest first.

    >>> entries("# Changelog\n\n## Unreleased\n\nNew.\n\n## 0.1.0 - 2026-11-21\n\nAll.\n")[1]
    Entry(version='0.1.0', date='2026-11-21', text='All.')
    """
    found = list(HEADING.finditer(changelog))
    ends = [match.start() for match in found][1:] + [len(changelog)] * bool(found)
    return [
        Entry(match["version"], match["date"] or "", changelog[match.end() : end].strip())
        for match, end in zip(found, ends, strict=True)
    ]


def newest(root: Path = ROOT) -> Entry:
    """The newest entry of a project's changelog."""
    if found := entries((root / "CHANGELOG.md").read_text(encoding="utf-8")):
        return found[0]
    raise ValueError("CHANGELOG.md has no entry: expected a heading such as '## 0.1.0 - 2026-11-21' or '## Unreleased'")


def disagreements(version: str, tag: str, root: Path = ROOT) -> Iterator[str]:
    """Yield what keeps a version from being released under a tag, and what to do about it."""
    entry, citation = newest(root), yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    if not RELEASED.fullmatch(version):
        yield f"{version} is no version to release: expected three numbers, as 0.1.0, in ttutor/__init__.py"
    if tag != f"v{version}":
        yield f"the tag is {tag}, the package is {version}: tag the commit v{version}, or change ttutor/__init__.py"
    if entry.version != version:
        yield f"the newest entry of CHANGELOG.md is {entry.version}, the package is {version}: add or rename an entry"
    if not entry.date or str(citation["date-released"]) != entry.date:
        yield f"CHANGELOG.md says {entry.date or 'no date'}, CITATION.cff {citation['date-released']}: write one date"
    if citation["version"] != version:
        yield f"CITATION.cff says {citation['version']}, the package is {version}: write one version"


def stale_notebooks() -> list[str]:
    """The notebooks whose line for Colab installs another version than this one, or from another address."""
    stored = {path.name: read(path.read_text(encoding="utf-8")) for path in notebooks()}
    return [name for name, notebook in stored.items() if with_guarded_line(notebook) != notebook]


def main(arguments: list[str] | None = None) -> int:
    """Print the newest entry; with a tag, only if everything agrees with it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tag", help="check that everything names this version, as v0.1.0")
    options = parser.parse_args(arguments)
    found = list(disagreements(ttutor.__version__, options.tag)) if options.tag else []
    if options.tag and (stale := stale_notebooks()):
        found.append(f"install another version in Colab: {', '.join(stale)}; run python -m book._tools.colab")
    print("\n".join(found) or newest().text, file=sys.stderr if found else sys.stdout)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
