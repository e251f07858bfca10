"""The promise of the README, kept by the command itself: no option, about a minute, unseen combinations right."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.trainer
ROOT = Path(__file__).resolve().parents[2]


def ttutor(folder: Path, *arguments: str, given: str | None = None) -> str:
    """Run the command in a process of its own, as a user does; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "ttutor.cli", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        input=given,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def percentage_right(printed: str) -> float:
    """The share of what stands in no training sentence and is translated right, as the command says at its end."""
    return float(re.search(r"combinations never seen: [\d,]+ of 2,000 \(([\d.]+) %\)", printed)[1])


def test_in_little_more_than_half_of_its_steps_it_translates_what_it_never_saw(tmp_path):
    assert percentage_right(ttutor(tmp_path, "train", "--steps", "140")) >= 95.0  # 99.8 where this was written


@pytest.mark.soak
def test_it_learns_the_embedded_grammar_and_translates_what_it_never_saw(tmp_path):
    assert percentage_right(ttutor(tmp_path, "train")) >= 95.0
    sentences = "the red cars do not sleep\nThe red cars do not sleep.\n\nmy horse loves an apple\nI do not listen\n"
    assert ttutor(tmp_path, "translate", given=sentences) == (
        "les voitures rouges ne dorment pas\nLes voitures rouges ne dorment pas.\n\nmon cheval aime une pomme\n"
        "je n'écoute pas\n"
    )
