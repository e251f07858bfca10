"""The workflows can be read, and name only what is here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
EACH = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def read(path: Path) -> dict:
    """A workflow; its key ``on`` is True, as YAML has it."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(path: Path) -> list[dict]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def commands(path: Path) -> list[str]:
    """The lines of shell of a workflow."""
    return [line for step in steps(path) for line in step.get("run", "").splitlines()]


@EACH
def test_a_workflow_runs_only_make_targets_that_exist(path: Path) -> None:
    named = {word for line in commands(path) for word in re.findall(r"^make ((?:[\w=]+ ?)+)$", line)}
    assert {word for words in named for word in words.split() if "=" not in word} <= TARGETS


@EACH
def test_a_workflow_runs_only_scripts_that_exist(path: Path) -> None:
    words = {word.replace("\\", "/") for line in commands(path) for word in line.split()}
    scripts = {word for word in words if word.endswith(".py") or word.startswith(".ci/")} - {"stubs.py"}  # made there
    assert {script for script in scripts if not (ROOT / script).is_file()} == set()
