"""What every explorer is given passes these: tokens as text, tables as rounded finite numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from ttutor.widgets import AttentionExplorer
from ttutor.widgets.base import rounded_array, token_list


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        ("the cat", TypeError, r"not one string; for words write tokens=text.split\(\)"),
        ([], ValueError, "tokens is empty"),
        ([1, 2, 3], TypeError, "holds int; decode token ids"),
    ],
)
def test_tokens_are_a_list_of_text(tokens: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        token_list("tokens", tokens)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[np.nan, 0], [0, 0]], r"scores\[0\]\[0\] is nan"),
        ([[0, np.inf], [0, 0]], r"scores\[0\]\[1\] is inf"),
        ([[0, 1], [0]], "rows of equal length"),
        ([["a", "b"]] * 2, "not a table of numbers"),
        (np.zeros((2, 3)), r"shape \(2, 3\), expected \(2, 2\)"),
        (np.zeros((1, 2, 2)), r"choose one sentence and one head, such as scores\[0\]"),
    ],
)
def test_a_table_holds_finite_numbers_of_the_right_shape(table: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rounded_array("scores", table, (2, 2), 3, axes="queries, keys")


@pytest.mark.parametrize("kind", [torch.tensor, np.array, list, lambda rows: torch.tensor(rows, requires_grad=True)])
def test_numbers_of_any_kind_are_rounded_without_minus_zero(kind: Callable) -> None:
    rows = rounded_array("scores", kind([[0.12345, -1.5], [-0.00001, 2.0]]), (None, 2), 3, axes="queries, keys")
    assert rows == [[0.123, -1.5], [0.0, 2.0]]
    assert str(rows[1][0]) == "0.0"


def test_numbers_that_are_set_later_are_checked_and_rounded_too() -> None:
    explorer = AttentionExplorer(["a"], [[0.0]])
    with pytest.raises(ValueError, match="is nan"):
        explorer.scores = [[float("nan")]]
    explorer.scores = [[0.12345]]
    assert explorer.scores == [[0.123]]
