"""The normaliser on made-up notebooks, and the rules for every notebook of the book."""

from __future__ import annotations

import base64
import io
import json
import shutil
from pathlib import Path

import pytest
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from book._tools.notebook_io import ROOT, code_cells
from book._tools.notebooks import (
    KERNEL,
    LANGUAGE,
    WIDGET_VIEW,
    check,
    execute,
    keep_ignored_outputs,
    main,
    normalise,
    notebooks,
    problems,
    read,
    refresh,
    small_picture,
    source_mark,
    to_text,
)

VIEW = {"model_id": "5f2c", "version_major": 2, "version_minor": 0}
PIXEL = "iVBORw0KGgo="


def cell(
    source: str, count: int | None = 1, outputs: list | None = None, name: str = "one", **metadata
) -> NotebookNode:
    made = new_code_cell(source, execution_count=count, outputs=outputs or [], metadata=metadata)
    made.id = name
    return made


def notebook(*cells: NotebookNode) -> NotebookNode:
    return new_notebook(cells=list(cells))


def shown(**data: object) -> NotebookNode:
    return new_output("display_data", data={key.replace("__", "/"): value for key, value in data.items()})


def widget(with_html: bool) -> NotebookNode:
    html = {"text/html": "<div data-explorer>seen</div>"} if with_html else {}
    return new_output("display_data", data={WIDGET_VIEW: VIEW, "text/plain": "Explorer()", **html})


def as_base64(image: Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def from_base64(picture: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(picture)))


GREYS = Image.linear_gradient("L").point(lambda grey: grey // 4 * 4)
COLOURS = Image.merge("RGB", (GREYS, GREYS.rotate(90), GREYS.rotate(180)))  # many more than a palette holds


@pytest.mark.parametrize(("drawn", "mode"), [(GREYS, "L"), (COLOURS, "RGB")], ids=["few colours", "many colours"])
def test_a_picture_becomes_smaller_once_and_keeps_every_pixel(drawn: Image.Image, mode: str) -> None:
    large = as_base64(drawn.convert("RGBA"))
    small = small_picture(large)
    assert from_base64(small).mode == mode
    assert from_base64(small).convert("RGB").tobytes() == drawn.convert("RGB").tobytes()
    assert len(small) < len(large)
    assert small_picture(small) == small


def test_normalising_drops_what_differs_from_run_to_run() -> None:
    made = notebook(cell("1", execution={"iopub.status.busy": "2026-01-01"}, scrolled=True, tags=["hide-input"]))
    made.metadata["widgets"] = {"state": {}}
    made.metadata["language_info"] = {"name": "python", "version": "3.11.7"}
    made.metadata["kernelspec"] = {"display_name": "my environment", "language": "python", "name": "mine"}
    clean = normalise(made, "made.ipynb")
    assert clean.cells[0].metadata == {"tags": ["hide-input"]}
    assert clean.metadata == {"kernelspec": KERNEL, "language_info": LANGUAGE}
    assert "version" not in clean.metadata["language_info"]


def test_a_widget_keeps_its_static_rendering_only() -> None:
    data = normalise(notebook(cell("x", outputs=[widget(with_html=True)])), "made.ipynb").cells[0].outputs[0].data
    assert set(data) == {"text/html", "text/plain"}


def test_a_widget_without_static_rendering_is_an_error_that_names_the_cell() -> None:
    with pytest.raises(ValueError, match=r"made\.ipynb, cell 0 \(slider\), shows a widget without a static rendering"):
        normalise(notebook(cell("x", outputs=[widget(with_html=False)], name="slider")), "made.ipynb")


def test_ids_stay_and_missing_or_doubled_ones_become_stable() -> None:
    made = json.loads(to_text(notebook(cell("1", name="kept"), cell("2", name="lost"), cell("3", name="twin"))))
    del made["cells"][1]["id"]
    made["cells"][2]["id"] = "kept"
    assert [c.id for c in read(json.dumps(made)).cells] == ["kept", "cell-001", "cell-002"]


@pytest.mark.parametrize("ignored", [{"tags": ["nbval-ignore-output"]}, {}], ids=["tag", "comment"])
def test_the_output_of_an_uncompared_cell_is_kept(ignored: dict) -> None:
    source = "time()" if ignored else "# NBVAL_IGNORE_OUTPUT\ntime()"
    old = cell(source, outputs=[shown(text__plain="1.0 s")], **ignored)
    old.metadata["output_of"] = source_mark(old)
    new = notebook(cell(source, outputs=[shown(text__plain="1.1 s")], **ignored))
    keep_ignored_outputs(new, notebook(old))
    assert new.cells[0].outputs == [shown(text__plain="1.0 s")]


def test_the_output_of_an_uncompared_cell_follows_its_code() -> None:
    old = cell("time(1)", outputs=[shown(text__plain="1.0 s")], tags=["nbval-ignore-output"])
    old.metadata["output_of"] = source_mark(old)
    new = notebook(cell("time(2)", outputs=[shown(text__plain="2.0 s")], tags=["nbval-ignore-output"]))
    keep_ignored_outputs(new, notebook(old))
    assert new.cells[0].outputs == [shown(text__plain="2.0 s")]


def test_execution_is_repeatable_and_keeps_timings(tmp_path: Path) -> None:
    path = tmp_path / "made.ipynb"
    timing = cell("import time; print(time.perf_counter())", name="timing", tags=["nbval-ignore-output"])
    path.write_text(to_text(notebook(cell("1 + 1", name="sum", count=None), timing)), encoding="utf-8")
    assert refresh(path) is True
    first = path.read_text(encoding="utf-8")
    assert check(path) == []
    assert refresh(path) is False
    assert path.read_text(encoding="utf-8") == first
    assert refresh(path, refresh_ignored=True) is True


GOOD = notebook(cell("1", 1), new_markdown_cell("text"), cell("2", 2, name="two"))
ERROR = new_output("error", ename="ValueError", evalue="no", traceback=[])
BAD = {
    "never executed": (notebook(cell("1", None)), "has execution count None, expected 1"),
    "executed out of order": (notebook(cell("1", 2)), "has execution count 2, expected 1"),
    "empty": (notebook(cell(" ", None)), "is empty"),
    "stored error": (notebook(cell("1", outputs=[ERROR])), "stores the error ValueError"),
    "stored warning": (
        notebook(cell("1", outputs=[new_output("stream", name="stderr", text="no")])),
        "stores a warning",
    ),
    "blank widget": (
        notebook(cell("1", outputs=[widget(with_html=False)])),
        "shows a widget without a static rendering",
    ),
    "live widget": (notebook(cell("1", outputs=[widget(with_html=True)])), "stores the view of a live widget"),
    "picture": (notebook(cell("1", outputs=[shown(image__png=PIXEL)])), "has a picture without a description"),
    "semicolon": (notebook(cell("plt.plot();")), "ends with ';'"),
    "stale output": (
        notebook(cell("1", outputs=[shown(text__plain="1")], tags=["nbval-ignore-output"], output_of="123")),
        "keeps the output of an earlier version",
    ),
}


@pytest.mark.parametrize(("made", "words"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said(made: NotebookNode, words: str) -> None:
    assert any(words in problem for problem in problems(made, 10))


def test_good_notebooks_have_no_problem() -> None:
    picture = cell("1", outputs=[shown(image__png=PIXEL)], mystnb={"image": {"alt": "a dot"}})
    raising = cell("1", outputs=[ERROR], tags=["raises-exception"])
    assert [problems(made, 10) for made in (GOOD, notebook(picture), notebook(raising))] == [[], [], []]


def test_check_says_all_that_is_wrong_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "made.ipynb"
    path.write_text(to_text(notebook(cell("1;", None))), encoding="utf-8")
    assert main(["--check", str(path)]) == 1
    assert capsys.readouterr().out.count("made.ipynb: cell 0 (one)") == 2


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_chapter_is_stored_in_order(path: Path) -> None:
    assert check(path) == []


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_chapter_is_stored_normalised(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert to_text(normalise(read(text), path.name)) == text


@pytest.fixture
def server(tmp_path: Path) -> LargeFileManager:
    """What JupyterLab opens and saves files with, as `make edit` starts it."""
    return LargeFileManager(root_dir=str(tmp_path), pre_save_hook="book._tools.notebooks.before_saving")


def opened_run_and_saved(server: LargeFileManager, path: Path, cells_have_run: int = 0) -> str:
    """The text of a notebook after JupyterLab opened it, ran it (with counts from there on) and saved it."""
    model = server.get(path.name)
    if cells_have_run:
        model["content"] = as_jupyterlab_ran(execute(model["content"], ROOT / "book", timeout=300), cells_have_run)
    server.save(model, path.name)
    return path.read_text(encoding="utf-8")


def as_jupyterlab_ran(executed: NotebookNode, cells_have_run: int) -> NotebookNode:
    """An executed notebook with what JupyterLab leaves in it: another Python, trust, and counts from there on."""
    executed.metadata["language_info"]["version"] = "3.12.1"
    for code_cell in code_cells(executed):
        code_cell.execution_count += cells_have_run
        code_cell.metadata["trusted"] = True
    return executed


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_opening_and_saving_a_chapter_leaves_no_difference(server: LargeFileManager, path: Path) -> None:
    copy = Path(shutil.copy(path, server.root_dir))
    assert opened_run_and_saved(server, copy) == path.read_text(encoding="utf-8")


def test_running_and_saving_a_notebook_leaves_no_difference(server: LargeFileManager) -> None:
    shows = 'from ttutor.widgets import CausalMaskExplorer\nCausalMaskExplorer(["a", "b"])'
    draws = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    timing = cell("import time; print(time.perf_counter())", name="timing", tags=["nbval-ignore-output"])
    made = notebook(cell("6 * 7", name="six"), new_markdown_cell("text"), cell(shows, name="w"), cell(draws, name="p"))
    made.cells += [timing]
    path = Path(server.root_dir) / "made.ipynb"
    executed = execute(made, ROOT / "book", timeout=300)
    before = to_text(normalise(executed, path.name))
    path.write_text(before, encoding="utf-8")
    model = server.get(path.name)
    model["content"] = as_jupyterlab_ran(executed, cells_have_run=12)
    executed.cells[-1].outputs[0].text = "another time\n"
    server.save(model, path.name)
    assert path.read_text(encoding="utf-8") == before


@pytest.mark.soak
@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_running_and_saving_a_chapter_leaves_no_difference_where_outputs_are_compared(
    server: LargeFileManager, path: Path
) -> None:
    copy = Path(shutil.copy(path, server.root_dir))
    assert opened_run_and_saved(server, copy, cells_have_run=12) == path.read_text(encoding="utf-8")
