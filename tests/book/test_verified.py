"""The record of verified runs: what it marks, and that only what passes is written into it."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat import NotebookNode

from book._tools import verified
from book._tools.notebook_io import to_text
from book._tools.verified import ROOT, mark, mark_of, recorded, verify
from tests.book.made import code, notebook, text


def test_the_mark_changes_with_code_and_with_outputs_that_are_compared() -> None:
    before = mark(notebook(code("print(1)", "a")))
    changed = notebook(code("print(1)", "a"))
    changed.cells[0].outputs[0].text = "other\n"
    assert before == mark(notebook(code("print(1)", "a")))
    assert before != mark(notebook(code("print(2)", "a")))
    assert before != mark(changed)


def test_the_mark_stays_when_only_prose_or_an_uncompared_output_changes() -> None:
    first = notebook(text("Hello.", "t"), code("clock()", "a", "nbval-ignore-output"))
    second = notebook(text("Good day.", "t"), code("clock()", "a", "nbval-ignore-output"))
    second.cells[1].outputs[0].text = "other\n"
    assert mark(first) == mark(second)


def write(path: Path, cells: NotebookNode) -> Path:
    path.write_text(to_text(cells), encoding="utf-8")
    return path


def test_what_passes_is_recorded_and_what_fails_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = (write(tmp_path / f"{name}.ipynb", notebook(code("1", "a"))) for name in ("good", "bad"))
    monkeypatch.setattr(verified, "run", lambda path: (path == good, 12.4))
    record = tmp_path / "verified.json"
    assert [verify(path, record) for path in (good, bad)] == [True, False]
    entry = recorded(record)["good"]
    assert list(recorded(record)) == ["good"]
    assert (entry["cells"], entry["processor_seconds"]) == (mark_of(good), 12)


@pytest.mark.parametrize(("stored", "passes"), [("printed\n", True), ("something else\n", False)])
def test_a_run_passes_only_with_the_stored_outputs(tmp_path: Path, stored: str, passes: bool) -> None:
    cells = notebook(code("print('printed')", "a"))
    cells.cells[0].outputs[0].text = stored
    cells.cells[0].outputs[0].name = "stdout"
    cells.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    passed, seconds = verified.run(write(tmp_path / "small.ipynb", cells))
    assert passed is passes
    assert 0 < seconds < 300


def test_the_record_of_the_book_is_about_its_notebooks() -> None:
    known = recorded()
    assert known
    assert set(known) <= {path.stem for path in (ROOT / "book").glob("*.ipynb")}
    wanted = {"cells", "date", "machine", "processor_seconds", "versions"}
    assert [stem for stem, entry in known.items() if set(entry) != wanted] == []
    assert [stem for stem, entry in known.items() if not 0 < entry["processor_seconds"] < 600] == []
