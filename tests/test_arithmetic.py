"""Notebooks and tests in other kinds of arithmetic: what is drawn, what is set, and that a difference is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat import write
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests import arithmetic

NOTEBOOKS = sorted(f"book/{path.name}" for path in (arithmetic.ROOT / "book").glob("*.ipynb"))
EVERYTHING_THAT_TRAINS = ("tests/training", "tests/translation", "tests/generation", "tests/exercises", "tests/grading")


def answers(commit: str, changed: str, dirty: str = "") -> dict[str, str]:
    return {"rev-parse": commit, "log -1": "1700000000", "log --since": changed, "diff": dirty}


def draw_with(monkeypatch: pytest.MonkeyPatch, known: dict[str, str]) -> tuple[str, list[str]]:
    def git(*arguments: str) -> str:
        asked = " ".join(arguments)
        return next((text for start, text in known.items() if asked.startswith(start)), "")

    monkeypatch.setattr(arithmetic, "git", git)
    return arithmetic.draw(NOTEBOOKS)


def test_the_commit_draws_the_arithmetic_and_the_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {draw_with(monkeypatch, answers(f"{number:x}", "\n".join(NOTEBOOKS)))[0] for number in range(5)}
    assert drawn == set(arithmetic.here())
    name, some = draw_with(monkeypatch, answers("7", "\n".join(NOTEBOOKS)))
    assert (name, some) == draw_with(monkeypatch, answers("7", "\n".join(reversed(NOTEBOOKS))))
    assert len(some) == arithmetic.MOST_DRAWN
    assert set(some) <= set(NOTEBOOKS)


def test_what_is_changed_and_not_yet_committed_is_drawn_and_what_is_gone_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = answers("7", "book/no-such.ipynb\nbook/02-attention.ipynb\n", "book/05-encoder.ipynb\n")
    assert sorted(draw_with(monkeypatch, known)[1]) == ["book/02-attention.ipynb", "book/05-encoder.ipynb"]


def test_without_git_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert draw_with(monkeypatch, {}) == ("plain", [])


def test_a_notebook_runs_in_the_arithmetic_and_another_output_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    source = "import torch\nprint(torch.backends.cpu.get_cpu_capability())"
    cells = [
        new_code_cell(source, execution_count=n, outputs=[new_output("stream", text=f"{printed}\n")])
        for n, printed in enumerate(("AVX2", "AVX512"), 1)
    ]
    write(new_notebook(cells=cells), tmp_path / "two.ipynb")
    (tmp_path / "none.ini").write_text("[pytest]\n", encoding="utf-8")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading all takes seconds
    monkeypatch.setenv("PYTEST_ADDOPTS", f"-p xdist -p nbval -c {tmp_path / 'none.ini'} --rootdir {tmp_path}")
    assert arithmetic.run("avx2", [str(tmp_path / "two.ipynb")]) == 1
    output = capfd.readouterr().out
    assert "1 failed, 1 passed" in output
    assert "two.ipynb::Cell 1" in output.rpartition("FAILED")[2]


def test_the_machine_is_described_with_what_is_set_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    assert "cores" in arithmetic.describe()
    assert "MKL_CBWR=COMPATIBLE" in arithmetic.describe()


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", arithmetic.here())
def test_every_notebook_prints_the_same_in_every_arithmetic(name: str) -> None:
    assert arithmetic.run(name, NOTEBOOKS) == 0


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", arithmetic.here())
def test_whatever_trains_passes_in_every_arithmetic(name: str) -> None:
    assert arithmetic.run(name, list(EVERYTHING_THAT_TRAINS)) == 0
