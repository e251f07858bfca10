"""The repository's address has one place, and a fork's workflow its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from book._tools import address as module
from book._tools.address import address, pages, revision

HEAD = '[project]\nname = "ttutor"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pyproject.toml of our own, outside any workflow."""
    for name in ("GITHUB_REPOSITORY", "GITHUB_REF_NAME", "GITHUB_REF_TYPE", "GITHUB_BASE_REF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text(HEAD, encoding="utf-8")
    return tmp_path / "pyproject.toml"


def test_without_a_repository_there_is_no_address(project: Path) -> None:
    assert address() is None
    project.write_text(f"{HEAD}[project.urls]\n", encoding="utf-8")
    assert address() is None


def test_the_address_is_the_one_written(project: Path) -> None:
    project.write_text(f'{HEAD}urls = {{ Repository = "https://github.com/someone/course/" }}\n', encoding="utf-8")
    assert address() == "https://github.com/someone/course"


def test_in_a_forks_workflow_the_fork_counts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write_text(f'{HEAD}urls = {{ Repository = "https://github.com/someone/course" }}\n', encoding="utf-8")
    monkeypatch.setenv("GITHUB_REPOSITORY", "another/fork.of-it")
    assert address() == "https://github.com/another/fork.of-it"
    assert pages(address()) == "https://another.github.io/fork.of-it/"


@pytest.mark.parametrize(
    "wrong", ["OWNER/NAME", "https://example.org/a/b", "https://github.com/someone", "https://github.com/OWNER/NAME"]
)
def test_what_is_no_repository_is_refused(project: Path, wrong: str) -> None:
    project.write_text(f'{HEAD}urls = {{ Repository = "{wrong}" }}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="expected an address of the form https://github.com/OWNER/NAME"):
        address()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "v0.1.0"),
        ({"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "main"}, "main"),
        ({"GITHUB_REF_TYPE": "tag", "GITHUB_REF_NAME": "v0.0.9"}, "v0.0.9"),
        ({"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "7/merge", "GITHUB_BASE_REF": "main"}, "v0.1.0"),
    ],
)
def test_links_lead_to_what_was_built(
    project: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(module.ttutor, "__version__", "0.1.0")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert revision() == expected
