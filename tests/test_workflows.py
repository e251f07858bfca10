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
def test_a_workflow_says_when_it_runs_what_it_may_and_how_long(path: Path) -> None:
    workflow = read(path)
    assert set(workflow) >= {"name", True, "permissions", "jobs"}
    assert workflow["name"] == path.stem
    assert [name for name, job in workflow["jobs"].items() if "timeout-minutes" not in job] == []
    needed = {job["needs"] for job in workflow["jobs"].values() if "needs" in job}
    assert needed <= set(workflow["jobs"])


@EACH
def test_a_workflow_runs_only_make_targets_that_exist(path: Path) -> None:
    named = {word for line in commands(path) for word in re.findall(r"^make ((?:[\w=]+ ?)+)$", line)}
    assert {word for words in named for word in words.split() if "=" not in word} <= TARGETS


@EACH
def test_a_workflow_runs_only_scripts_that_exist(path: Path) -> None:
    words = {word.replace("\\", "/") for line in commands(path) for word in line.split()}
    scripts = {word for word in words if word.endswith(".py") or word.startswith(".ci/")} - {"stubs.py"}  # made there
    assert {script for script in scripts if not (ROOT / script).is_file()} == set()


@EACH
def test_an_action_is_pinned_to_a_version(path: Path) -> None:
    used = [step["uses"] for step in steps(path) if "uses" in step]
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", action)] == []


def test_every_target_and_script_is_found_where_there_are_some() -> None:
    """The patterns of the tests above find what they look for."""
    release = ROOT / ".github" / "workflows" / "release.yml"
    assert {"make install", "make dist", "make pdf zip"} <= set(commands(release))
    assert any("release.changelog" in line for line in commands(release))


def test_a_release_is_tried_before_it_is_published_and_by_a_tag_alone() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "release.yml")
    jobs = workflow["jobs"]
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "build": None, "try": "build", "publish": "try", "attach": "publish"
    }  # fmt: skip
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "pypi"
    assert workflow["permissions"] == {"contents": "read"}
    checks = [step.get("run", "") for step in jobs["build"]["steps"]]
    tag = next(index for index, line in enumerate(checks) if '--tag "$GITHUB_REF_NAME"' in line)
    assert tag < checks.index("make dist") < checks.index("make pdf zip")
