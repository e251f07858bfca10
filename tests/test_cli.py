"""The ``ttutor`` command, with the translation extra and with the core alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ttutor

# A Python in which everything but the core is missing.
BARE = """
import sys
for name in ("typer", "click", "rich", "tokenizers", "safetensors", "sacrebleu", "pooch", "tqdm",
             "matplotlib", "ipywidgets", "anywidget"):
    sys.modules[name] = None
from ttutor.cli import main
sys.exit(main(sys.argv[1:]))
"""


def run(*arguments: str, bare: bool) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", BARE] if bare else [sys.executable, "-m", "ttutor.cli"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("bare", [False, True], ids=["whole", "core alone"])
def test_version(bare: bool) -> None:
    done = run("--version", bare=bare)
    assert (done.returncode, done.stdout) == (0, f"ttutor {ttutor.__version__}\n")


@pytest.mark.parametrize("bare", [False, True], ids=["whole", "core alone"])
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_doctor(bare: bool, flags: list[str]) -> None:
    done = run("doctor", *flags, bare=bare)
    assert done.returncode == 0, done.stderr
    assert ttutor.__version__ in done.stdout


# Prints the help, then which of the packages that take long to load have been loaded.
HELP = """
import sys
from ttutor.cli import main
main(["--help"])
print("loaded:", [name for name in ("torch", "numpy", "matplotlib", "rich", "einops") if name in sys.modules])
"""


def test_help_lists_every_command_and_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    commands = ("train", "translate", "evaluate", "doctor", "exercises", "check", "grade", "homework")
    assert [name for name in commands if f"\n  {name} " not in done.stdout] == []
    assert done.stdout.endswith("loaded: []\n")


@pytest.mark.parametrize("arguments", [["train"], ["translate", "the cat sleeps"], ["nonsense"]])
def test_with_the_core_alone_a_command_says_what_to_install(arguments: list[str]) -> None:
    done = run(*arguments, bare=True)
    assert done.returncode == 2
    assert 'pip install ".[translation]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_with_the_core_alone_help_says_what_there_is() -> None:
    done = run(bare=True)
    assert done.returncode == 0
    assert "ttutor doctor" in done.stdout


def test_an_unknown_command_is_refused_without_a_traceback() -> None:
    done = run("nonsense", bare=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
