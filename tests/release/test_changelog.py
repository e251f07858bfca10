"""One version, named alike everywhere: package, changelog, citation, tag."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ttutor
from release import changelog
from release.changelog import RELEASED, disagreements, main, newest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of version 0.3.0, all of whose places agree."""
    text = "# Changelog\n\n## 0.3.0 - 2027-01-31\n\n- New.\n\n## 0.2.0 - 2026-12-24\n\n- Old.\n"
    (tmp_path / "CHANGELOG.md").write_text(text, encoding="utf-8")
    (tmp_path / "CITATION.cff").write_text('version: 0.3.0\ndate-released: "2027-01-31"\n', encoding="utf-8")
    return tmp_path


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_newest_entry_is_the_packages_version() -> None:
    expected = ttutor.__version__ if RELEASED.fullmatch(ttutor.__version__) else "Unreleased"
    assert newest().version == expected


def test_a_version_that_can_be_released_agrees_everywhere() -> None:
    if not RELEASED.fullmatch(ttutor.__version__):
        pytest.skip("a development version is not released as it is")
    assert list(disagreements(ttutor.__version__, f"v{ttutor.__version__}")) == []


def test_a_tag_for_which_everything_agrees_passes(project: Path) -> None:
    assert list(disagreements("0.3.0", "v0.3.0", project)) == []
    assert newest(project).text == "- New."


def test_another_tag_is_refused(project: Path) -> None:
    assert list(disagreements("0.3.0", "v0.3.1", project)) == [
        "the tag is v0.3.1, the package is 0.3.0: tag the commit v0.3.0, or change ttutor/__init__.py"
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("CHANGELOG.md", "## 0.3.0 - 2027-01-31", "## Unreleased", "the newest entry of CHANGELOG.md is Unreleased"),
        ("CHANGELOG.md", "2027-01-31", "2027-02-01", "CHANGELOG.md says 2027-02-01, CITATION.cff 2027-01-31"),
        ("CITATION.cff", "version: 0.3.0", "version: 0.2.0", "CITATION.cff says 0.2.0, the package is 0.3.0"),
    ],
)
def test_a_place_that_was_forgotten_is_named(project: Path, file: str, old: str, new: str, expected: str) -> None:
    replace(project / file, old, new)
    assert next(disagreements("0.3.0", "v0.3.0", project)).startswith(expected)


def test_a_development_version_is_not_released(project: Path) -> None:
    assert next(disagreements("0.4.0.dev0", "v0.4.0.dev0", project)).startswith("0.4.0.dev0 is no version to release")


def test_notebooks_of_another_version_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    path = ROOT / "book" / "02-attention.ipynb"
    monkeypatch.setattr(changelog, "notebooks", lambda: [path])
    assert changelog.stale_notebooks() == []
    shutil.copy(path, tmp_path)
    replace(tmp_path / path.name, ttutor.__version__, "0.0.7")
    monkeypatch.setattr(changelog, "notebooks", lambda: [tmp_path / path.name])
    assert main(["--tag", f"v{ttutor.__version__}"]) == 1
    assert "install another version in Colab: 02-attention.ipynb" in capsys.readouterr().err
