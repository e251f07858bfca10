"""The grader where there is nothing but what Windows has too: it loads, and marks at the level ``clock``.

This is Linux made poorer, for the judge and for the workers, since there is no Windows here to try it on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

POORER = """
import os, socket, subprocess, sys

for name in ("resource", "fcntl", "pwd", "grp", "termios", "select"):
    sys.modules[name] = None
gone = "fork geteuid getuid getresuid killpg set_blocking setsid setresuid setgroups uname wait4 mkfifo O_CLOEXEC"
for name in gone.split():
    delattr(os, name)
for name in ("send_fds", "recv_fds", "AF_UNIX", "socketpair"):
    delattr(socket, name)
"""
SCRIPT = """
import importlib, json, pkgutil
import ttutor.grading
from ttutor.exercises import find
from ttutor.exercises.source import imports, solution_source
from ttutor.grading import fresh
from ttutor.grading.marks import SourceFile, Submission
from ttutor.grading.siege import TARGET, besieged

names = [one.name for one in pkgutil.walk_packages(ttutor.grading.__path__, "ttutor.grading.")]
for name in names:
    importlib.import_module(name)

def poorer_command(module, settings, folder):
    *command, start, settings = python_command(module, settings, folder)
    finds_packages, loads = start.split("from apart.")
    torch = "import torch" if json.loads(settings)["role"] == "worker" else ""
    return [*command, "\\n".join([finds_packages, torch, POORER, f"from apart.{loads}"]), settings]

python_command, fresh.python_command = fresh.python_command, poorer_command
solved = "\\n".join([*imports(find(TARGET)), solution_source(find(TARGET))])
endless = "def softmax(scores, dim=-1):\\n    while True:\\n        pass\\n"
marks = []
with besieged("clock", n_cases=1) as grader:
    for text in (endless, solved):
        mark = grader.grade(Submission(student="ada", files=(SourceFile("a.py", text.encode()),)))
        marks.append([mark.sandbox, mark.earned, mark.exercises[0].state.value])
    left = grader.strays()
print(json.dumps([names, marks, left]))
"""


def test_every_module_loads_and_two_submissions_are_marked() -> None:
    # PyTorch is loaded first: it sees that this is Linux, and takes what it needs.
    script = "\n".join(["import torch", POORER, f"POORER = {POORER!r}", SCRIPT])
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names, marks, left = json.loads(done.stdout.splitlines()[-1])
    wanted = "channel fresh zygotes side_by_side command apart.alone apart.zygote apart.confine".split()
    assert {f"ttutor.grading.{name}" for name in wanted} <= set(names)
    assert marks == [["clock", 0.0, "timeout"], ["clock", 10.0, "ok"]]
    assert left == []
