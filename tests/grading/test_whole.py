"""The real grader from beginning to end: the same bytes from any number of processes, and after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.grading.made import all_bytes, put
from ttutor.exercises import find
from ttutor.exercises.source import imports, solution_source

ROOT = Path(__file__).resolve().parents[2]
IDS = ("attention.softmax", "encoder.layer_norm", "training.masked_loss")
HOMEWORK = 'seed = "nobody knows"\n[exercises]\n' + "".join(f'"{one}" = 4\n' for one in IDS)
WRONG = "\ndef my_softmax(scores, dim=-1):\n    return scores.exp() / scores.exp().sum()\n"
RAISES = "\ndef my_softmax(scores, dim=-1):\n    return scores[99]\n"


def grades(folder: Path, out: str, jobs: int) -> subprocess.Popen:
    """A process that grades the class of a folder as an instructor does, in a group of its own."""
    options = ["--assignment", "hw1.toml", "--out", out, "-j", str(jobs)]
    command = [sys.executable, "-m", "ttutor", "grade", "in", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)


@pytest.mark.soak
def test_the_gradebook_hangs_neither_on_processes_nor_on_a_kill(sandbox, tmp_path) -> None:
    exercises = [find(one) for one in IDS]
    answers = [solution_source(one, f"my_{one.name}") for one in exercises]
    right = "\n\n".join(["\n".join(imports(*exercises)), *answers])
    work = {"ada.py": right, "bo.py": right + WRONG, "cy.py": right + RAISES, "di.py": "x = 1\n", "ed.py": "def f(:\n"}
    put(tmp_path, {"hw1.toml": HOMEWORK, **{f"in/{name}": text for name, text in work.items()}})
    assert grades(tmp_path, "one", 1).wait() == 1  # somebody has to look at ed
    assert grades(tmp_path, "two", 2).wait() == 1
    killed = grades(tmp_path, "killed", 2)
    while not list((tmp_path / "killed" / "records").glob("[!.]*.json")):
        assert killed.poll() is None
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed" / "gradebook.csv").exists()
    assert grades(tmp_path, "killed", 2).wait() == 1
    whole = all_bytes(tmp_path / "one")
    assert all_bytes(tmp_path / "two") == whole
    assert all_bytes(tmp_path / "killed") == whole
    totals = [row.split(",")[7] for row in whole["gradebook.csv"].decode().splitlines()[2:]]
    assert totals[0] == "12"
    assert float(totals[1]) < 12
