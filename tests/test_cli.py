"""The ``ttutor`` command, with the translation extra and with the core alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

import ttutor
from ttutor.cli import build_app, main
from ttutor.other_names import COMMANDS, OPTIONS

# Runs several commands in a Python in which everything but the core is missing, and prints what came of each.
BARE = """
import contextlib, io, json, sys
for name in ("typer", "click", "rich", "tokenizers", "safetensors", "sacrebleu", "pooch",
             "matplotlib", "ipywidgets", "anywidget"):
    sys.modules[name] = None
from ttutor.cli import main
results = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
        status = main(arguments)
    results.append((status, out.getvalue(), errors.getvalue()))
print(json.dumps(results))
"""
SHOWN = [["--version"], ["doctor"], ["doctor", "--json"]]
TOO_MUCH = [["train"], ["translate", "the cat sleeps"], ["nonsense"]]


@pytest.fixture(scope="module")
def bare() -> dict[str, tuple[int, str, str]]:
    """Status, output and errors of each command with the core alone."""
    commands = [*SHOWN, *TOO_MUCH, []]
    call = [sys.executable, "-c", BARE, json.dumps(commands)]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    return dict(zip(map(str, commands), json.loads(done.stdout), strict=True))


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("arguments", SHOWN, ids=" ".join)
def test_version_and_doctor_need_the_core_alone(
    arguments: list[str], bare: dict[str, tuple[int, str, str]], capsys: pytest.CaptureFixture
) -> None:
    assert main(arguments) == 0
    whole = capsys.readouterr().out
    status, output, _ = bare[str(arguments)]
    assert status == 0
    assert ttutor.__version__ in output
    assert ttutor.__version__ in whole


@pytest.mark.parametrize("arguments", TOO_MUCH, ids=" ".join)
def test_with_the_core_alone_a_command_says_what_to_install(
    arguments: list[str], bare: dict[str, tuple[int, str, str]]
) -> None:
    status, _, errors = bare[str(arguments)]
    assert status == 2
    assert 'pip install ".[translation]"' in errors
    assert "Traceback" not in errors


def test_with_the_core_alone_help_says_what_there_is(bare: dict[str, tuple[int, str, str]]) -> None:
    status, output, _ = bare["[]"]
    assert status == 0
    assert "ttutor doctor" in output


def test_help_lists_every_command(capsys: pytest.CaptureFixture) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in ("train", "translate", "evaluate", "doctor") if name not in shown] == []
    assert "..." not in shown.partition("Commands:")[2]  # no line is cut, on 80 columns either


def test_an_unknown_command_is_refused_without_a_traceback() -> None:
    """As a process of its own, so that all that a user sees is looked at."""
    done = subprocess.run([sys.executable, "-m", "ttutor", "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a pipe without a reader is another error")
def test_a_reader_who_has_left_is_no_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """As in ``ttutor ... | true``: what is printed last stands in the buffer until the command flushes it."""
    end_of_reader, end_of_writer = os.pipe()
    os.close(end_of_reader)
    with os.fdopen(end_of_writer, "w", encoding="utf-8") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        assert main(["--version"]) == 0
        assert main(["doctor"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["hint", "attention.softmax"],
            "no such command 'hint': here it is `ttutor exercises attention.softmax --hint",
        ),
        (["check", "--chapter", "2"], "no such option --chapter: here it is no option: `attention` by itself"),
        (["gpt", "my.txt", "--force"], "no such option --force: here it is `--overwrite`"),
        (["doctor", "--force"], "No such option: --force"),  # it has no --overwrite either
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_a_command_or_option_of_others_is_answered_with_ours(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture
) -> None:
    assert main(arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "pairs.txt"], "expected options, but came pairs.txt: a text is given by --source pairs.txt"),
        (["train", "a.en", "b c.fr"], "a text is given by --source a.en --target 'b c.fr'"),
        (["train", "--preset", "multi30k"], "did you mean multi30k-tiny or multi30k-short?"),
        (
            ["train", "--languages", "en-xx"],
            "(multi30k is the default where neither --preset nor --recipe names a text)",
        ),
        (["fetch", "smolm2"], "did you mean smollm2?"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(arguments: list[str], said: str, capsys: pytest.CaptureFixture) -> None:
    assert main(arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_whatever_the_tables_name_is_a_command_or_an_option() -> None:
    import typer

    commands = typer.main.get_command(build_app()).commands  # type: ignore[attr-defined]
    named = {name for text in COMMANDS.values() for name in re.findall(r"ttutor ([a-z]+)", text)}
    assert named - set(commands) == set()
    options = {option for one in commands.values() for parameter in one.params for option in parameter.opts}
    assert {name for text in OPTIONS.values() for name in re.findall(r"^`(--[a-z-]+)`$", text)} - options == set()
    assert set(COMMANDS) & set(commands) == set()
