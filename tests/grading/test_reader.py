"""The reader: definitions and facts out of messy files, without running a line of them."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.exercises.bank import EXERCISES, RIGHT, STRAY
from ttutor.exercises import exercises, find, student_code
from ttutor.exercises.source import imports, stub_source
from ttutor.grading import answer as definitions
from ttutor.grading.answer import files_read, read_files
from ttutor.grading.assignment import Limits
from ttutor.grading.marks import SourceFile
from ttutor.grading.session import Session
from ttutor.grading.worker.framing import Malformed
from ttutor.grading.worker.reader import read_file

SOFTMAX = find("attention.softmax")
GOOD = "import torch\n\ndef softmax(scores, dim=-1):\n    return scores.exp()\n"


def read(text, name="homework.py", wanted=("softmax", "my_softmax")):
    data = text.encode() if isinstance(text, str) else text
    return files_read([read_file(name, data, list(wanted))], 1)[0]


def notebook(*sources, **more):
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": cells} | more)


def kept(text, **more):
    return [piece.source for piece in read(notebook(*text, **more), "homework.ipynb").pieces]


def test_a_module_is_taken_apart_statement_by_statement():
    found = read(GOOD.replace("scores.exp", "torch.exp") + "x = 1; softmax.y = 2\nprint('done')\n")
    assert [(piece.line, piece.source.partition("\n")[0]) for piece in found.pieces] == [
        (1, "import torch"),
        (3, "def softmax(scores, dim=-1):"),
        (5, "x = 1; softmax.y = 2"),
    ]
    assert set(found.answers) == {"softmax"}
    assert found.notes == ()


def test_of_a_notebook_only_what_answers_need_is_kept():
    found = kept(
        [
            "import torch\nimport matplotlib.pyplot as plt\nEPS = float('1e-9')\nunused = train()",
            "def helper(x):\n    return x + EPS",
            "model = torch.nn.Linear(3, 3)\nfor step in range(10**9): model(step)\nplt.plot([1])",
            "%matplotlib inline\n!pip install something\nhelper?",
            "@torch.no_grad()\ndef softmax(scores, dim=-1):\n    return helper(scores)",
            "softmax(torch.zeros(3))",
        ]
    )
    assert found == [
        "import torch",
        "EPS = float('1e-9')",
        "def helper(x):\n    return x + EPS",
        "@torch.no_grad()\ndef softmax(scores, dim=-1):\n    return helper(scores)",
    ]


def test_what_changes_an_answer_later_is_kept():
    found = kept(
        ["class softmax:\n    pass", "def forward(self, x):\n    return x", "softmax.forward = forward", "x = 3"]
    )
    assert found[1:] == ["def forward(self, x):\n    return x", "softmax.forward = forward"]


def test_the_last_definition_wins_and_my_comes_first():
    text = stub_source(SOFTMAX) + "\n\ndef my_softmax(scores, dim=-1):\n    return 1\n"
    first, second = read(text), read("def softmax(scores, dim=-1):\n    return 2\n")
    chosen = [definitions.chosen(SOFTMAX, files) for files in ([first], [first, second])]
    chosen.append(definitions.chosen(SOFTMAX, [second, read(stub_source(SOFTMAX))]))
    assert [(one.file, one.name) for one in chosen] == [(0, "my_softmax"), (1, "softmax"), (0, "softmax")]
    assert definitions.chosen(SOFTMAX, [read("x = 1")]) is None


@pytest.mark.parametrize("magic", ["%%time", "%%capture out"])
def test_cells_that_are_only_timed_are_read(magic):
    assert kept([f"{magic}\n{GOOD}"])[-1].startswith("def softmax")


def test_cells_for_the_shell_are_not():
    assert kept(["%%bash\ndef softmax(): pass", "%%writefile x.py\nsoftmax = 1"]) == []


def test_a_broken_cell_costs_itself_and_a_note():
    found = read(notebook("import torch\ndef broken(:\n    pass\nk = 1", GOOD), "homework.ipynb")
    assert "softmax" in found.answers
    assert found.notes == ("homework.ipynb, code cell 1, line 2 does not parse (invalid syntax) and was left out",)


def test_a_broken_block_of_a_module_costs_itself_and_a_note():
    found = read("import torch\n\ndef other(x:\n    return (\n\n" + GOOD)
    assert "softmax" in found.answers
    assert [piece.line for piece in found.pieces] == [8]
    assert len(found.notes) == 1


def test_an_answer_that_does_not_parse_is_for_a_human():
    found = read("def softmax(scores, dim=-1:\n    return 1\n")
    assert found.broken == ("softmax",)
    assert definitions.is_broken(SOFTMAX, [found])
    assert not definitions.is_broken(SOFTMAX, [read("x = 1\n")])


def test_what_cannot_be_read_at_all_is_for_a_human():
    for text, name in (("{ not json", "homework.ipynb"), (b"\0\1\2" * 100, "homework.py")):
        assert definitions.is_broken(SOFTMAX, [read(text, name)])


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        (GOOD.encode("utf-8-sig"), 0),
        (GOOD.encode("utf-16"), 0),
        (("# coding: latin-1\n# \xe9\n" + GOOD).encode("latin-1"), 0),
        (("# \xe9\n" + GOOD).encode("cp1252"), 1),
        (GOOD.replace("\n", "\r\n").encode(), 0),
        (GOOD.replace("\n", "\r").encode(), 0),
    ],
)
def test_files_from_other_editors_are_read(data, notes):
    found = read(data)
    assert set(found.answers) == {"softmax"}
    assert len(found.notes) == notes


def test_static_facts_are_those_of_live_functions():
    """Untouched: the same of the source as `check` finds of the function, for a third of the bank's answers."""
    chosen, named = [], defaultdict(set)
    for exercise in EXERCISES:
        answers = [one for mistake in exercise.mistakes for one in mistake.answers]
        answers += [*RIGHT[exercise.id], *(one for one, _ in STRAY[exercise.id]), exercise.stub]
        for answer in answers[::3]:
            chosen.append((exercise, answer))
            named[answer.__module__].add(answer.__name__)
    files = {
        module: read(Path(sys.modules[module].__file__).read_bytes(), wanted=names) for module, names in named.items()
    }
    for exercise, answer in chosen:
        made, name = getattr(answer, "mutated_source", None), answer.__name__
        facts = (read(made, wanted=(name,)) if made else files[answer.__module__]).answers[name]
        assert definitions.is_untouched(exercise, facts) == bool(student_code.is_untouched(exercise, answer))
    assert len(chosen) > 300


def test_stubs_as_handed_out_are_untouched():
    for exercise in exercises():
        found = read("\n".join(imports(exercise)) + "\n" + stub_source(exercise), wanted=definitions.names_of(exercise))
        assert definitions.is_untouched(exercise, definitions.chosen(exercise, [found]).facts), exercise.id


def test_reading_in_a_worker_gives_the_same_as_here(sandbox):
    files = (SourceFile("one.py", GOOD.encode()), SourceFile("../two.ipynb", notebook(GOOD).encode()))
    here = files_read([read_file(one.name, one.data, ["softmax"]) for one in files], 2)
    with Session(sandbox, Limits(), 60.0) as session:
        assert read_files(session, files, ["softmax"]) == here


@pytest.mark.soak
def test_a_file_that_ends_the_reader_costs_no_other(sandbox):
    bad = SourceFile("bad.py", b"x = " + b"9" * 50_000_000)
    good = SourceFile("good.py", GOOD.encode())
    with Session(sandbox, Limits(memory=512), 60.0) as session:
        one, other = read_files(session, (bad, good), ["softmax"])
    assert "could not be read" in (one.problem or " ".join(one.notes)) or one.notes
    assert set(other.answers) == {"softmax"}


@pytest.mark.parametrize(
    "came",
    [
        None,
        [],
        [{"more": 1}],
        [{"pieces": {}}],
        [{"pieces": [1]}],
        [{"pieces": [{"where": "x", "source": "y", "line": 0}]}],
        [{"pieces": [{"where": "x", "source": "y", "line": True}]}],
        [{"pieces": [{"where": 1, "source": "y", "line": 1}]}],
        [{"pieces": [{"where": "x", "source": "y", "line": 1}] * 5001}],
        [{"answers": {"a": {}}}],
        [{"imports": [1]}],
        [{"notes": ["x" * 5000]}],
    ],
)
def test_what_is_no_reading_is_refused(came):
    with pytest.raises(Malformed):
        files_read(came, 1)
