"""The real grader from beginning to end: the same bytes from any number of processes, and after a kill."""

from __future__ import annotations

import contextlib
import os
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


def started_by(process: subprocess.Popen) -> set[tuple[int, str]]:
    """All that a process has started and what that has started, each with the moment of its start."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, parent, *rest = path.read_text().rpartition(")")[2].split()
            if state != "Z":
                parents[int(path.parent.name), rest[17]] = int(parent)
    found, ids = set(), {process.pid}
    while more := {one for one, parent in parents.items() if parent in ids} - found:
        found |= more
        ids |= {pid for pid, _ in more}
    return found


def still_there(one: tuple[int, str]) -> bool:
    """Whether a process of that number and start is alive."""
    try:
        state, _, *rest = Path(f"/proc/{one[0]}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return state != "Z" and rest[17] == one[1]


def command_of(one: tuple[int, str]) -> str:
    """The command line of a process, or nothing where it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{one[0]}/cmdline").read_text()
    return ""


def seconds_of(one: tuple[int, str]) -> float:
    """How long a process has been computing."""
    with contextlib.suppress(OSError):
        spent = Path(f"/proc/{one[0]}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def runs_an_answer(family: set[tuple[int, str]]) -> bool:
    """Whether a worker has loaded PyTorch and what it has forked, which runs an answer, has computed for a while."""
    spent = {one[0]: seconds_of(one) for one in family if "worker.serve" in command_of(one)}
    return any(spent[pid] > 0.5 and spent.get(parent_of(pid), 0.0) > 0.5 for pid in spent)


def parent_of(pid: int) -> int:
    """The process that has started another; 0 where that has ended."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def kill(process: subprocess.Popen) -> None:
    """Kill the grader, and it alone; see that all that it has started ends with it."""
    family = started_by(process)
    process.kill()
    process.wait()
    until = time.monotonic() + 20
    while (left := list(filter(still_there, family))) and time.monotonic() < until:
        time.sleep(0.05)
    assert family
    assert left == []


@pytest.mark.soak
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_grader_leaves_no_process_and_can_begin_again(sandbox, tmp_path, jobs) -> None:
    endless = "def my_softmax(scores, dim=-1):\n    while True: pass\n"
    limits = "[limits]\nseconds_per_call = 3.0\n"
    put(tmp_path, {"hw1.toml": HOMEWORK + limits, "in/ada.py": endless, "in/bo.py": endless})
    first = grades(tmp_path, "out", jobs)
    while not runs_an_answer(started_by(first)):
        assert first.poll() is None
        time.sleep(0.1)
    kill(first)
    assert grades(tmp_path, "out", jobs).wait() == 0
    rows = (tmp_path / "out" / "gradebook.csv").read_text().splitlines()[2:]
    assert [row.split(",")[3:8] for row in rows] == [["ok", "0", "0", "0", "0"]] * 2


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
    kill(killed)
    assert not (tmp_path / "killed" / "gradebook.csv").exists()
    assert grades(tmp_path, "killed", 2).wait() == 1
    whole = all_bytes(tmp_path / "one")
    assert all_bytes(tmp_path / "two") == whole
    assert all_bytes(tmp_path / "killed") == whole
    totals = [row.split(",")[7] for row in whole["gradebook.csv"].decode().splitlines()[2:]]
    assert totals[0] == "12"
    assert float(totals[1]) < 12
