"""The runner of `make test`: nothing that fails goes unseen, and every test is counted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from nbformat import write
from nbformat.v4 import new_code_cell, new_notebook, new_output

from book._tools.notebook_io import notebooks as all_notebooks
from book._tools.notebook_io import unsupported_reason
from tests import arithmetic, run
from tests.run import Outcome, Stage, report, run_stage

PASSES = "def test_one():\n    assert 1 == 1\n\n\ndef test_two():\n    assert 2 == 2\n"
FAILS = """
import pytest

def test_one():
    assert 1 == 2

@pytest.mark.skip(reason="no")
def test_two():
    pass
"""


@pytest.fixture
def _without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start pytest alone: its plugins take seconds to load."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def stage_of(tmp_path: Path, *texts: str) -> Stage:
    commands = []
    for index, text in enumerate(texts):
        path = tmp_path / f"test_made_{index}.py"
        path.write_text(text, encoding="utf-8")
        commands.append((*run.PYTEST, "-c", str(tmp_path / "none.ini"), "--rootdir", str(tmp_path), str(path)))
    (tmp_path / "none.ini").write_text("[pytest]\n", encoding="utf-8")
    return Stage("made", 100, commands)


@pytest.mark.usefixtures("_without_plugins")
def test_all_commands_run_and_all_tests_count_when_the_first_fails(tmp_path: Path) -> None:
    outcome = run_stage(stage_of(tmp_path, FAILS, PASSES))
    assert outcome.counts == {"failed": 1, "skipped": 1, "passed": 2}
    assert len(outcome.failed) == 1
    assert "exit status 1" in outcome.failed[0]


@pytest.mark.usefixtures("_without_plugins")
def test_a_run_without_tests_is_a_failure(tmp_path: Path) -> None:
    assert "exit status 5" in run_stage(stage_of(tmp_path, "")).failed[0]


def test_a_command_that_is_no_test_counts_by_its_status_also_beside_others(capsys: pytest.CaptureFixture) -> None:
    ends = (sys.executable, "-c", "import sys; print('here'); sys.exit(3)")
    outcome = run_stage(Stage("made", 100, [ends], beside=[ends, (sys.executable, "--version")]))
    assert (outcome.counts, len(outcome.failed)) == ({}, 2)
    assert capsys.readouterr().out.count("\nhere\n") == 2


def test_a_stage_over_its_budget_is_said_and_fails_nothing(capsys: pytest.CaptureFixture) -> None:
    slow = run_stage(Stage("made", 0, [(sys.executable, "-c", "import time; time.sleep(0.01)")]))
    report([slow])
    assert slow.failed == []
    assert "passed, over budget" in capsys.readouterr().out


def test_modules_are_compiled_once_also_where_no_bytecode_may_stand_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    asked = "import sys; sys.exit(sys.dont_write_bytecode or not sys.pycache_prefix)"
    assert run_stage(Stage("made", 100, [(sys.executable, "-c", asked)])).failed == []


def test_all_stages_together_take_twelve_minutes() -> None:
    assert sum(stage.budget for stage in run.plan(lax=False)) <= 12 * 60


def test_the_table_shows_seconds_budgets_failures_and_one_closing_line(capsys: pytest.CaptureFixture) -> None:
    good = Outcome(Stage("unit", 240, []), 12.4, [], {"passed": 7, "skipped": 1})
    slow = Outcome(Stage("book", 180, []), 200.0, ["python x (exit status 1)"], {"passed": 2, "failed": 1, "error": 1})
    report([good, slow])
    lines = capsys.readouterr().out.strip().splitlines()
    assert any("unit" in line and "12 of  240 s   passed: 7 passed, 1 skipped" in line for line in lines)
    assert any("book" in line and "FAILED, over budget" in line for line in lines)
    assert "FAILED in book: python x (exit status 1)" in lines
    assert lines[-1] == "9 passed, 2 failed, 1 skipped"


@pytest.mark.parametrize(("failed", "status"), [([], 0), (["python x (exit status 1)"], 1)])
def test_the_exit_status_tells_whether_all_passed(
    failed: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "run_stage", lambda stage: Outcome(stage, 1.0, list(failed)))
    monkeypatch.setattr(arithmetic, "describe", lambda: "a machine")
    monkeypatch.setattr("sys.argv", ["run.py", "unit"])
    assert run.main() == status


def test_an_unknown_stage_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr("sys.argv", ["run.py", "nothing"])
    with pytest.raises(SystemExit) as stopped:
        run.main()
    assert stopped.value.code == 2
    assert "no stage is called nothing" in capsys.readouterr().err


def test_every_marker_has_its_stage() -> None:
    commands = [" ".join(command) for stage in run.plan(lax=False) for command in stage.commands]
    units = next(command for command in commands if "not trainer" in command)
    for marker in ("browser", "trainer"):
        assert f"not {marker}" in units
        assert any(f"-m {marker} and not soak" in command for command in commands)


def executed(lax: bool = False) -> list[tuple[str, ...]]:
    """The commands that execute notebooks."""
    return next(stage.commands for stage in run.plan(lax) if stage.name == "notebooks")


def test_lax_executes_notebooks_without_comparing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "draw", lambda known: ("avx2", known[:2]))
    usual, other = executed()
    assert "--nbval" in usual
    assert other[-4:] == ("--only", "avx2", *other[-2:])
    (lax,) = executed(lax=True)
    assert "--nbval-lax" in lax


@pytest.mark.parametrize("mark", sorted(run.MARKED))
def test_every_test_with_a_mark_stands_where_its_stage_looks(mark: str) -> None:
    marked = {path for path in (run.ROOT / "tests").rglob("test_*.py") if f"mark.{mark}" in path.read_text("utf-8")}
    looked_at = {path for folder in run.MARKED[mark] for path in (run.ROOT / folder).rglob("test_*.py")}
    assert marked - {run.ROOT / "tests" / "test_run.py"} <= looked_at
    assert marked & looked_at


@pytest.mark.parametrize("n_drawn", [0, 2])
def test_the_longest_notebooks_exist_and_each_is_run_once(n_drawn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "draw", lambda known: ("plain", known[:n_drawn]))
    names = [argument for command in executed() for argument in command if argument.endswith(".ipynb")]
    assert len(executed()) == 1 + (n_drawn > 0)
    assert sorted(names) == [
        str(path.relative_to(run.ROOT)) for path in all_notebooks() if not unsupported_reason(path)
    ]


def test_a_notebook_that_opens_models_is_left_out_with_the_reason_where_they_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTUTOR_MODELS", str(tmp_path))
    monkeypatch.setenv("TTUTOR_REQUIRE", "browser")
    page = run.ROOT / "book" / "pretrained.ipynb"
    assert (
        "skipped: it opens models that are not on this machine; ttutor fetch smollm2 and minilm"
        in unsupported_reason(page)
    )
    assert unsupported_reason(run.ROOT / "book" / "outlook.ipynb") is None
    assert "book/pretrained.ipynb" not in sum(executed(), ())
    monkeypatch.setenv("TTUTOR_REQUIRE", "browser,pretrained")
    assert "book/pretrained.ipynb" in sum(executed(), ())


@pytest.mark.skipif(sys.platform != "linux", reason="forked kernels are used on Linux alone")
def test_a_warm_kernel_knows_nothing_and_compares_as_a_new_one(tmp_path: Path) -> None:
    """What one notebook defines is not there in the next; what is printed is compared."""
    for name, source in (("1", "shown = 1"), ("2", "shown = int('shown' in dir())"), ("3", "shown = 1")):
        cell = new_code_cell(f"{source}\nprint(shown)", execution_count=1, outputs=[new_output("stream", text="1\n")])
        write(new_notebook(cells=[cell]), tmp_path / f"{name}.ipynb")
    (tmp_path / "none.ini").write_text("[pytest]\n", encoding="utf-8")
    alone = ("-c", str(tmp_path / "none.ini"), "--rootdir", str(tmp_path), str(tmp_path))
    outcome = run_stage(Stage("made", 100, [(*run.PYTEST, "-p", "tests.warm_kernels", "--nbval", *alone)]))
    assert outcome.counts == {"failed": 1, "passed": 2}
