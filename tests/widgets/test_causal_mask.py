"""The causal mask in Python: its weights, what changes with a token, its fallback and what it refuses."""

import html
import re

import numpy as np
import pytest
import torch

from ttutor.widgets import CausalMaskExplorer
from ttutor.widgets.causal_mask import MAX_TOKENS

TOKENS = ["the", "cat", "sat", "on"]
SCORES = np.random.default_rng(3).normal(size=(4, 4))
HOSTILE = ['<img src=x onerror="alert(1)">', "</script>", "'\"&"]


def specimen() -> CausalMaskExplorer:
    """The figure as the gallery shows it."""
    return CausalMaskExplorer(["the", "cat", "sat", "on", "the", "mat", "<eos>"], shown=3)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("n", [1, 2, 4])
def test_weights_are_a_softmax_under_the_mask(n: int) -> None:
    made = CausalMaskExplorer(TOKENS, SCORES, shown=n)
    scores = torch.tensor(np.round(SCORES, 3))[:n, :n]
    np.testing.assert_allclose(made.weights(causal=False), scores.softmax(-1), atol=1e-12)
    hidden = ~torch.ones(n, n).tril().bool()
    np.testing.assert_allclose(
        made.weights(causal=True), scores.masked_fill(hidden, -torch.inf).softmax(-1), atol=1e-12
    )


def test_a_token_changes_no_old_row_under_the_mask_and_every_old_row_without() -> None:
    made = CausalMaskExplorer(TOKENS, SCORES)
    for n in range(1, 5):
        made.shown = n
        assert made.changed_rows(causal=True) == []
        assert made.changed_rows(causal=False) == list(range(n - 1))
    made.shown = 5
    assert made.changed_rows(causal=False) == []  # the end mark adds no key


def test_the_end_mark_has_no_row() -> None:
    made = CausalMaskExplorer([*TOKENS, "<eos>"], SCORES)
    assert made.tokens == TOKENS
    made.shown = 5
    assert made.weights(causal=True).shape == (4, 4)
    assert CausalMaskExplorer(["a", "."], end_mark=".").tokens == ["a"]


def test_scores_of_any_kind_are_stored_rounded_and_seeded_ones_are_the_same_each_time() -> None:
    for kind in (torch.tensor(SCORES, requires_grad=True), SCORES, SCORES.tolist()):
        assert CausalMaskExplorer(TOKENS, kind).scores == np.round(SCORES, 3).tolist()
    assert CausalMaskExplorer(TOKENS).scores == CausalMaskExplorer(TOKENS).scores
    assert CausalMaskExplorer(TOKENS).scores[0][0] == round(CausalMaskExplorer(TOKENS).scores[0][0], 3)


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("tokens", "scores", "options", "error", "message"),
    [
        ("the cat", None, {}, TypeError, "not one string"),
        ([], None, {}, ValueError, "tokens is empty"),
        (["<eos>"], None, {}, ValueError, "nothing but the end mark '<eos>'"),
        ([1, 2], None, {}, TypeError, "decode token ids"),
        (TOKENS, np.zeros((3, 4)), {}, ValueError, r"shape \(3, 4\), expected \(4, 4\)"),
        (TOKENS, [[0, 1], [0]], {}, ValueError, "rows of equal length"),
        (TOKENS, np.full((4, 4), np.nan), {}, ValueError, r"scores\[0\]\[0\] is nan"),
        (TOKENS, None, {"shown": 0}, ValueError, "shown has to be from 1 to 5 .*, not 0"),
        (TOKENS, None, {"shown": 6}, ValueError, "shown has to be from 1 to 5"),
        (TOKENS, None, {"view": "mask"}, ValueError, "view has to be one of weights, scores, not 'mask'"),
    ],
)
def test_bad_input_is_refused_with_a_reason(tokens, scores, options, error, message) -> None:
    with pytest.raises(error, match=message):
        CausalMaskExplorer(tokens, scores, **options)


def test_too_many_tokens_are_cut_and_it_is_said() -> None:
    with pytest.warns(UserWarning, match="10000 tokens are more than fit a screen; showing the first 12"):
        made = CausalMaskExplorer([f"t{i}" for i in range(10_000)])
    assert len(made.tokens) == len(made.scores) == MAX_TOKENS
    assert f"The first {MAX_TOKENS} of 10000 tokens." in made.fallback_html()
    with pytest.raises(ValueError, match="from 1 to 12"):
        made.shown = 13


# ---------------------------------------------------------------- what is stored


def test_the_fallback_holds_both_views() -> None:
    made = CausalMaskExplorer(TOKENS, SCORES)
    cells = re.findall(r"<td>([^<]+)</td>", made.fallback_html())
    causal, full = (made.weights(causal=kind, n_tokens=4) for kind in (True, False))
    expected = [f"{causal[i, j]:.2f}" if j <= i else "–" for i in range(4) for j in range(4)]
    assert cells == expected + [f"{weight:.2f}" for weight in full.flat]


def test_tokens_are_never_markup() -> None:
    made = CausalMaskExplorer(HOSTILE)
    assert "<img" not in made.to_html()
    assert html.escape(HOSTILE[0]) in made.fallback_html()


def test_its_name_says_where_it_stands() -> None:
    assert repr(specimen()) == "CausalMaskExplorer(3 of 6 tokens)"
