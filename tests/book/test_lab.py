"""The reader's own copies: they come, are never overwritten, and what is new lies beside them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jupyterlab.commands
import pytest
from nbformat import NotebookNode

from book._tools import editions, lab
from book._tools.lab import main
from book._tools.notebook_io import notebooks, read, to_text
from tests.book.made import code, notebook, text


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A book of one chapter, ``book/02-attention.ipynb``, in a folder of its own."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "book" / "02-attention.ipynb"
    path.parent.mkdir()
    for module in (editions, lab):
        monkeypatch.setattr(module, "notebooks", lambda: [path])
    teach(path, "one")
    return path


def teach(path: Path, words: str) -> None:
    """Write what the chapter says in the source."""
    made = notebook(text(f"# Attention\n\n{words}", "title"), code("answer = ...", "answer"))
    path.write_text(to_text(normal(made)), encoding="utf-8")


def normal(made: NotebookNode) -> NotebookNode:
    made.metadata["language_info"] = NotebookNode(name="python")
    return made


def mine(name: str = "02-attention.ipynb") -> Path:
    return Path("my-course") / name


def change(path: Path, **of_first_code: object) -> None:
    """Change a copy as its reader does, in JupyterLab."""
    copy = read(path.read_text(encoding="utf-8"))
    next(cell for cell in copy.cells if cell.cell_type == "code").update(of_first_code)
    path.write_text(to_text(copy), encoding="utf-8")


def files() -> list[str]:
    """The reader's notebooks, without the page to begin with."""
    return sorted(path.name for path in Path("my-course").glob("*.ipynb") if path.name != "00-start.ipynb")


def test_a_folder_gets_what_it_lacks_and_a_second_time_nothing(course: Path, capsys: pytest.CaptureFixture) -> None:
    assert (main([]), files()) == (0, ["02-attention.ipynb"])
    before = mine().read_text(encoding="utf-8")
    assert main([]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == ["my-course is up to date: 2 notebooks were written", "my-course is up to date"]
    assert mine().read_text(encoding="utf-8") == before


def test_what_the_reader_wrote_stays_and_what_is_new_lies_beside_it(
    course: Path, capsys: pytest.CaptureFixture
) -> None:
    main([])
    change(mine(), source="answer = 42")
    teach(course, "two")
    assert main([]) == 0
    assert files() == ["02-attention (new).ipynb", "02-attention.ipynb"]
    assert "answer = 42" in mine().read_text(encoding="utf-8")
    assert "two" in mine("02-attention (new).ipynb").read_text(encoding="utf-8")
    assert "02-attention.ipynb is new, and you changed yours" in capsys.readouterr().out
    main([])
    assert len(files()) == 2
    change(mine("02-attention (new).ipynb"), source="answer = 43")
    teach(course, "three")
    main([])
    assert files() == ["02-attention (new 2).ipynb", "02-attention (new).ipynb", "02-attention.ipynb"]
    assert "answer = 43" in mine("02-attention (new).ipynb").read_text(encoding="utf-8")


def test_a_copy_that_was_run_and_not_changed_is_brought_up_to_date(course: Path) -> None:
    main([])
    change(mine(), outputs=[], execution_count=12)
    teach(course, "two")
    main([])
    assert files() == ["02-attention.ipynb"]
    assert "two" in mine().read_text(encoding="utf-8")


def test_a_notebook_of_the_readers_own_with_that_name_stays(course: Path) -> None:
    Path("my-course").mkdir()
    mine().write_text(to_text(notebook(text("Shopping list", "title"))), encoding="utf-8")
    main([])
    assert "Shopping list" in mine().read_text(encoding="utf-8")
    assert files() == ["02-attention (new).ipynb", "02-attention.ipynb"]


def test_a_file_that_is_no_notebook_is_named(course: Path, capsys: pytest.CaptureFixture) -> None:
    main([])
    mine().write_text("{", encoding="utf-8")
    assert main([]) == 2
    assert "my-course/02-attention.ipynb" in capsys.readouterr().err


def test_the_book_comes_whole_with_its_solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    folder = tmp_path / "course"
    assert main([str(folder)]) == 0
    assert sorted(path.name for path in folder.glob("*.ipynb")) == [
        "00-start.ipynb",
        *(path.name for path in notebooks()),
    ]
    start = read((folder / "00-start.ipynb").read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)]+)\)", start.cells[0].source)
    assert {"02-attention.ipynb", "02-attention-deeper.ipynb", "02-attention-exercises.ipynb"} <= set(links)
    assert [link for link in links if not (folder / link).exists()] == []
    assert start.cells[1].source.endswith("-m ttutor exercises")
    assert (folder / "solutions" / "02-attention-exercises.ipynb").exists()
    raw = [path.name for path in folder.rglob("*.ipynb") if "{cite" in path.read_text(encoding="utf-8")]
    assert raw == []


def test_the_start_page_tells_the_kernel_as_the_chapters_do(course: Path) -> None:
    """JupyterLab marks a notebook as changed whose kernel says more of itself than it does."""
    assert main([]) == 0
    pages = [read(mine(name).read_text(encoding="utf-8")) for name in ("00-start.ipynb", "02-attention.ipynb")]
    assert pages[0].metadata.language_info == pages[1].metadata.language_info


def test_what_make_lab_sets_is_known_to_jupyterlab() -> None:
    config = Path(lab.__file__).parent / "labconfig"
    settings = json.loads((config / "default_setting_overrides.json").read_text(encoding="utf-8"))
    schemas = Path(jupyterlab.commands.get_app_dir()) / "schemas"
    for plugin, values in settings.items():
        package, _, name = plugin.partition(":")
        known = json.loads((schemas / package / f"{name}.json").read_text(encoding="utf-8"))["properties"]
        assert values.keys() <= known.keys()
        assert all(type(value) is type(known[key]["default"]) for key, value in values.items())
