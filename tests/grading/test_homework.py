"""`ttutor homework`: an assignment as a notebook that can be handed out."""

from __future__ import annotations

import json

from tests.grading.made import put
from ttutor.grading.worker.reader import pieces_of

ASSIGNMENT = """
title = "Homework 1"
seed = "nobody knows"
deadline = 2026-11-20T23:59:00+01:00
[exercises]
"attention.softmax" = 4
[by_hand]
essay = { points = 5, asks = "Why does it survive?" }
curve = { points = 2, asks = "Draw it.", kind = "plot" }
"""


def test_a_notebook_has_statement_stub_check_and_room(ttutor, tmp_path) -> None:
    put(tmp_path, {"hw1.toml": ASSIGNMENT})
    said = ttutor("homework", "hw1.toml", "--out", "hw1.ipynb").output
    assert "1 exercise, 2 pieces to be marked by hand" in said
    data = (tmp_path / "hw1.ipynb").read_bytes()
    notebook = json.loads(data)
    text = "\n".join(cell["source"] for cell in notebook["cells"])
    for wanted in (
        "# Homework 1",
        "Due 2026-11-20 23:59 (UTC+01:00)",
        "(4 points)",
        'check("attention.softmax", my_softmax)',
    ):
        assert wanted in text
    for wanted in ("## Essay (5 points, marked by a person)", "Why does it survive?", "# Your code and its picture."):
        assert wanted in text
    assert "nobody knows" not in text
    pieces, notes, broken, is_notebook = pieces_of("hw1.ipynb", data)
    assert (is_notebook, notes, broken) == (True, [], [])
    assert any("def my_softmax" in piece.source for piece in pieces)


def test_nothing_is_overwritten(ttutor, tmp_path) -> None:
    put(tmp_path, {"hw1.toml": ASSIGNMENT, "hw1.ipynb": "mine"})
    ttutor("homework", "hw1.toml", "--out", "hw1.ipynb", code=2)
    assert (tmp_path / "hw1.ipynb").read_text() == "mine"
