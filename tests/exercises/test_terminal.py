"""`ttutor exercises` and `ttutor check`, as a student meets them."""

from __future__ import annotations

import json
import re

import platformdirs
import pytest
import torch
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from ttutor.errors import FileError
from ttutor.exercises import exercises, find
from ttutor.exercises.exercise import CHAPTERS
from ttutor.exercises.loading import read_work
from ttutor.exercises.order import number
from ttutor.exercises.source import imports, solution_source

WORK = """
import torch
from ttutor.attention import scaled_dot_product_attention

def my_softmax(scores, dim=-1):
    weights = (scores - scores.amax(dim=dim, keepdim=True)).exp()
    return weights / weights.sum(dim=dim, keepdim=True)

def causal_mask(n_queries, n_keys):
    return torch.ones(n_queries, n_keys).tril().bool()

def padding_mask(token_ids, pad_id): ...
"""


@pytest.fixture
def ttutor(tmp_path, monkeypatch, ttutor):
    """Run a command with progress kept in its folder."""
    monkeypatch.setenv("TTUTOR_PROGRESS", str(tmp_path / "kept" / "progress.json"))
    return ttutor


@pytest.fixture
def work(tmp_path):
    """Three answers in a file: a right one, a wrong one, and one that is not started."""
    path = tmp_path / "my_work.py"
    path.write_text(WORK)
    return path


def test_ctrl_c_names_the_exercise(ttutor, work, monkeypatch) -> None:
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("ttutor.exercises.checking.judge", interrupted)
    assert "Stopped while attention.softmax was being checked" in ttutor("check", str(work), code=130).output


def test_each_chapter_has_a_bar_and_lists_its_exercises_with_their_numbers(ttutor, work) -> None:
    ttutor("check", "my_work.py", "attention.softmax")
    output = "".join(ttutor("exercises", chapter).output for chapter in CHAPTERS)
    listed = re.findall(r"^  (\d+\.\d+) +(?:open|begun|right) +\S+ +(\S+)", output, re.MULTILINE)
    assert listed == [(number(one.id), one.id) for one in exercises()]
    earned, possible = find("attention.softmax").points, sum(one.points for one in exercises("attention"))
    output = ttutor("exercises").output
    assert "attention.causal_mask" not in output
    full = 20 * earned // possible
    bar = "#" * full + "-" * (20 - full)
    assert f" 2  attention    [{bar}] {earned:3} of {possible} points" in output
    assert [name for name in CHAPTERS if f"  {name} " not in output] == []


def test_checks_in_a_notebook_count(ttutor, tmp_path, monkeypatch) -> None:
    source = solution_source(find("attention.softmax"), "my_softmax")
    cells = [
        "\n".join([*imports(find("attention.softmax")), "from ttutor.exercises import check"]),
        f'{source}\n\ncheck("attention.softmax", my_softmax)',
        'check("attention.causal_mask", lambda n_queries, n_keys: None)',
    ]
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    NotebookClient(notebook, kernel_name="python3").execute()
    points = find("attention.softmax").points
    assert f"right  {points}/{points}  attention.softmax" in ttutor("exercises", "attention").output
    assert json.loads((tmp_path / "kept" / "progress.json").read_text())["points"] == {"attention.softmax": points}
    monkeypatch.setenv("TTUTOR_PROGRESS", "none")
    assert "Progress is not kept." in ttutor("exercises").output


def test_a_solution_is_shown(ttutor) -> None:
    assert "return powers / powers.sum" in ttutor("solution", "attention.softmax").output
    assert "did you mean attention.softmax" in ttutor("solution", "attention.sofmax", code=2).output


def test_a_chapter_is_listed_alone(ttutor) -> None:
    output = ttutor("exercises", "attention").output
    assert f"attention: 0 of {sum(one.points for one in exercises('attention'))} points" in output
    assert "vit." not in output


def test_one_exercise_is_shown_with_its_stub_and_the_hints_asked_for(ttutor) -> None:
    output = ttutor("exercises", "attention.softmax", "--hint", "1").output
    assert "def my_softmax(" in output
    assert "Hint 1: " in output
    assert "Hint 2: " not in output


def test_an_unknown_exercise_is_refused_with_advice(ttutor) -> None:
    assert "did you mean attention.softmax" in ttutor("exercises", "attention.sofmax", code=2).output
    assert "did you mean attention?" in ttutor("exercises", "attentoin", code=2).output


def test_the_list_for_programs(ttutor) -> None:
    records = json.loads(ttutor("exercises", "--json").output)
    assert [record["id"] for record in records] == [one.id for one in exercises()]
    assert {record["earned"] for record in records} == {0}


def test_checking_says_what_is_right_and_what_is_not(ttutor, work) -> None:
    output = ttutor("check", "my_work.py", code=1).output
    assert "✓ " + find("attention.softmax").title in output
    says = find("attention.causal_mask").known_mistake("no_cache_offset").says
    assert says.split(":")[0] in output.replace("\n", " ")
    assert "Not started: attention.padding_mask." in output
    assert "2 of 3 started, 1 right" in output


def test_what_is_imported_is_no_answer(work) -> None:
    assert set(read_work(work).names) == {"my_softmax", "causal_mask", "padding_mask"}


def test_progress_is_kept_and_never_falls(ttutor, work) -> None:
    ttutor("check", "my_work.py", code=1)
    points = find("attention.softmax").points
    assert f"right  {points}/{points}  attention.softmax" in ttutor("exercises", "attention").output
    work.write_text(WORK.replace("(scores - ", "(2 * scores - "))
    ttutor("check", "my_work.py", "attention.softmax", code=1)
    assert f"right  {points}/{points}  attention.softmax" in ttutor("exercises", "attention").output


def test_all_right_is_exit_code_0(ttutor, work) -> None:
    points = find("attention.softmax").points
    ran = ttutor("check", "my_work.py", "attention.softmax")
    assert ran.exit_code == 0
    assert f"{points} of {points} points" in ran.output


def test_hints_come_where_they_are_asked_for(ttutor, work) -> None:
    hint = "Hint 2"
    assert hint not in ttutor("check", "my_work.py", code=1).output
    assert hint in ttutor("check", "my_work.py", "--hint", "2", code=1).output


def test_a_misspelt_answer_is_named_and_not_passed_over(ttutor, work) -> None:
    work.write_text(work.read_text() + "\n\ndef my_paddingmask(token_ids):\n    return token_ids != 0\n")
    output = ttutor("check", "my_work.py", code=1).output
    assert "my_paddingmask answers no exercise; did you mean my_padding_mask?" in output


def test_what_may_not_be_used_is_said_with_an_exercise_and_over_its_stub(ttutor) -> None:
    told = "Not to be used: cross_entropy, nll_loss, CrossEntropyLoss, NLLLoss, smoothed_cross_entropy."
    assert told in ttutor("exercises", "training.masked_loss").output
    assert f"# {told}\ndef my_masked_loss(" in ttutor("exercises", "--stubs", "training.masked_loss").output
    assert "Not to be used" not in ttutor("exercises", "training.low_loss").output


def test_the_stubs_of_all_exercises_are_a_file_that_is_not_started(ttutor, tmp_path) -> None:
    (tmp_path / "stubs.py").write_text(ttutor("exercises", "--stubs").output)
    output = ttutor("check", "stubs.py", code=1).output
    assert f"0 of {len(exercises())} started, 0 right, 0 of" in output


def test_the_solutions_of_all_exercises_in_one_file_are_right(ttutor, tmp_path) -> None:
    every = exercises()
    parts = ["\n".join(imports(*every)), *(solution_source(one, f"my_{one.name}") for one in every)]
    (tmp_path / "all.py").write_text("\n\n\n".join(parts))
    output = ttutor("check", "all.py").output
    points = sum(result.points for result in every)
    assert f"{len(every)} of {len(every)} started, {len(every)} right, {points} of {points} points." in output


def test_a_notebook_is_read_for_its_definitions(ttutor, tmp_path) -> None:
    cells = [
        {"cell_type": "markdown", "source": "def nothing"},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import torch\n", "raise RuntimeError('ran')"]},
        {"cell_type": "code", "source": "%%bash\nexit 1"},
        {"cell_type": "code", "source": "from nowhere_at_all import thing"},
        {"cell_type": "code", "source": f"{WORK}\nprint(undefined_name)\n!ls"},
        {"cell_type": "code", "source": "def broken(:"},
    ]
    (tmp_path / "my_work.ipynb").write_text(json.dumps({"cells": cells}))
    result = ttutor("check", "my_work.ipynb", code=1)
    assert "2 of 3 started, 1 right" in result.output
    assert "code cell 3 was left out: ModuleNotFoundError" in result.stderr
    assert "code cell 5 was left out: SyntaxError" in result.stderr
    assert result.stderr.count("was left out") == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("my_work.py", "x = 1\n", "answers none of"),
        ("my_work.py", "x = (\n", "my_work.py, line 1: '(' was never closed"),
        ("my_work.py", "import torch\ntorch.zeros(2) @ torch.zeros(3)\n", "my_work.py, line 2, raises RuntimeError"),
        ("my_work.py", "raise SystemExit(0)\n", "raises SystemExit"),
        ("my_work.ipynb", "no json", "is not a notebook of format 4"),
        ("my_work.txt", "", "must be a Python file (.py) or a notebook (.ipynb)"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_message(
    ttutor, tmp_path, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    output = ttutor("check", name, code=2).output
    assert words in output
    assert output.startswith("Error: ")


def test_a_file_that_is_not_there_is_refused(ttutor) -> None:
    assert "there is no file nowhere.py; check the path, or begin one" in ttutor("check", "nowhere.py", code=2).output


def test_a_file_in_another_encoding_is_refused(tmp_path) -> None:
    (tmp_path / "my_work.py").write_bytes("# é".encode("latin-1"))
    with pytest.raises(FileError, match="is not in UTF-8"):
        read_work(tmp_path / "my_work.py")


def test_a_user_without_a_home_is_told_where_progress_could_be(ttutor, monkeypatch) -> None:
    def no_home(*_: object, **__: object) -> None:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.delenv("TTUTOR_PROGRESS")
    monkeypatch.setattr(platformdirs, "user_data_path", no_home)
    assert "no home folder where progress could be kept: set HOME, or name a file" in ttutor("exercises", code=2).output
    monkeypatch.setenv("TTUTOR_PROGRESS", "none")
    ttutor("exercises")


def test_damaged_progress_is_said_and_not_overwritten(ttutor, work, tmp_path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "progress.json").write_text("[]")
    for arguments in (("exercises",), ("check", "my_work.py")):
        assert "progress.json is damaged: delete it" in ttutor(*arguments, code=2).output
    assert (tmp_path / "kept" / "progress.json").read_text() == "[]"


def test_answers_are_checked_on_one_thread(ttutor, work, two_threads) -> None:
    ttutor("check", "my_work.py", "attention.softmax")
    assert torch.get_num_threads() == 1
