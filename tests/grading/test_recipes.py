"""The recipes of the instructors' page, run as they stand there, but for where things are installed."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.grading.made import put
from tests.require import missing
from ttutor.exercises import find
from ttutor.exercises.source import imports, solution_source

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
PROGRAMS = Path(sys.executable).parent
HOMEWORK = PAGE.partition("```toml\n")[2].partition("```")[0]
ASKED = [find(name) for name in re.findall(r'^"([\w.]+)" = \d', HOMEWORK, re.M)]
RIGHT = "\n".join([*imports(*ASKED), *map(solution_source, ASKED)])
WRONG = RIGHT + "\n\ndef padding_mask(token_ids, pad_id):\n    return (token_ids == pad_id)[:, None, None]\n"


def block(language: str, *, holds: str) -> str:
    """The page's code block in a language that holds a text."""
    (found,) = (text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.S) if holds in text)
    return found


def bash(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as the recipes do, with this Python's programs at hand."""
    if shutil.which("bash") is None:
        missing("bash", "there is no bash")
    environment = os.environ | {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    return subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)


def test_gradescope(tmp_path) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or not os.stat(os.path.realpath(sys.executable)).st_mode & 1:
        missing("root", "in a container the judge is root")
    if any(not place.stat().st_mode & 1 for place in Path(os.path.realpath(sys.executable)).parents):
        missing("root", "nobody may run this Python, which stands in somebody's home")
    put(tmp_path, {"source/hw1.toml": HOMEWORK, "submission/hw1.py": WRONG, "results/stdout": ""})
    script = block("bash", holds="# run_autograder")
    for there, here in {"/opt/ttutor/bin": PROGRAMS, "/autograder": tmp_path, "/tmp/results": tmp_path / "out"}.items():
        assert there in script
        script = script.replace(there, str(here))
    done = bash(script, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "results" / "results.json").read_text(encoding="utf-8"))
    assert results["score"] == 6.0
    assert [one["status"] for one in results["tests"]] == ["passed", "passed", "failed"]


def test_github_classroom(sandbox, tmp_path) -> None:
    put(tmp_path, {"hw1.toml": HOMEWORK, "hw1.py": WRONG})
    command = re.search(r"run: (ttutor .*)", block("yaml", holds="autograding-grading-reporter"))[1]
    done = bash(f"GITHUB_OUTPUT=output; {command}", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(base64.b64decode((tmp_path / "output").read_text().removeprefix("result=")))
    assert [one["score"] for one in result["tests"]] == [4, 2, 0]
    assert result["max_score"] == 8


def test_the_workflow_reports_the_step_that_grades() -> None:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which the book's tools bring along")
    workflow = yaml.safe_load(block("yaml", holds="autograding-grading-reporter"))
    *_, grades, reports = workflow["jobs"]["run-autograding-tests"]["steps"]
    assert reports["with"]["runners"] == grades["id"]
    assert reports["env"] == {f"{grades['id'].upper()}_RESULTS": f"${{{{steps.{grades['id']}.outputs.result}}}}"}


@pytest.mark.parametrize(
    "script", [block("bash", holds="# setup.sh"), block("bash", holds="# run_autograder")], ids=["setup", "run"]
)
def test_scripts_are_scripts(script, tmp_path) -> None:
    assert script.startswith("#!/usr/bin/env bash\n")
    put(tmp_path, {"script.sh": script})
    assert bash("bash -n script.sh", tmp_path).returncode == 0


def test_what_the_recipes_install_is_what_there_is() -> None:
    extras = set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M))
    named = {name for found in re.findall(r'course\[([\w,]+)\]"', PAGE) for name in found.split(",")}
    assert named
    assert named <= extras
