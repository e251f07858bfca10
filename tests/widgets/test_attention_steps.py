"""Attention step by step, in Python: its matrices, its fallback and what it refuses."""

import html
import json
import re

import numpy as np
import pytest
import torch

from ttutor.attention import attention_weights
from ttutor.masks import causal_mask
from ttutor.multihead import AttentionHead
from ttutor.widgets import AttentionStepsExplorer
from ttutor.widgets.attention_steps import MAX_TOKENS, STEPS

TOKENS = "I love ML !".split()
HOSTILE = ['<img src=x onerror="alert(1)">', "</script>", "'\"&"]


def specimen() -> AttentionStepsExplorer:
    """The figure as the gallery shows it."""
    return AttentionStepsExplorer(TOKENS, step="scores")


def random_numbers(*shape: int, seed: int) -> torch.Tensor:
    """As in chapter 2."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- numbers


def test_the_numbers_are_those_of_the_chapters_worked_example() -> None:
    made = AttentionStepsExplorer(TOKENS)
    assert made.embeddings == random_numbers(4, 4, seed=11).round(decimals=1).tolist()
    for name, seed in (("w_query", 21), ("w_key", 22), ("w_value", 23)):
        assert getattr(made, name) == random_numbers(3, 4, seed=seed).round(decimals=1).tolist()


@pytest.mark.parametrize("causal", [False, True])
def test_every_matrix_follows_from_the_ones_before(causal: bool) -> None:
    made = AttentionStepsExplorer(TOKENS, causal=causal)
    found = made.trace()
    x, w_query, w_key, w_value = (np.array(one) for one in (made.embeddings, made.w_query, made.w_key, made.w_value))
    np.testing.assert_allclose(found["Q"], x @ w_query.T)
    np.testing.assert_allclose(found["QK"], (x @ w_query.T) @ (x @ w_key.T).T)
    np.testing.assert_allclose(found["S"], found["QK"] / np.sqrt(3))
    allowed = causal_mask(4, 4).numpy() if causal else np.ones((4, 4), bool)
    powers = np.where(allowed, np.exp(found["S"]), 0.0)
    np.testing.assert_allclose(found["A"], powers / powers.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found["AV"], found["A"] @ (x @ w_value.T))
    assert ("M" in found) == causal


def test_a_heads_steps_end_in_the_heads_output() -> None:
    torch.manual_seed(0)
    head, x = AttentionHead(7, 5), torch.randn(1, 3, 7)
    made = AttentionStepsExplorer.from_head(head, x, ["a", "b", "c"], causal=True)
    np.testing.assert_allclose(made.trace()["AV"], head(x, causal=True)[0].detach().numpy(), atol=5e-3)  # 3 decimals
    np.testing.assert_allclose(made.w_query, head.to_query.weight.detach().numpy(), atol=5.1e-4)
    assert made.note == ""


def test_equal_tokens_have_equal_vectors_and_other_sentences_work() -> None:
    made = AttentionStepsExplorer(["the", "cat", "the"])
    assert made.embeddings[0] == made.embeddings[2] != made.embeddings[1]
    assert made.note.startswith("X and the matrices W are random, to one decimal; the rest follows. Nothing")
    assert AttentionStepsExplorer(["a"], w_query=made.w_query).note.startswith("X is random, to one decimal")


@pytest.mark.parametrize("kind", [torch.tensor, np.array, list])
def test_arrays_of_any_kind_are_stored_rounded(kind) -> None:
    rows = [[0.12345, -0.00001], [1.0, 2.0]]
    made = AttentionStepsExplorer(["a", "b"], kind(rows), kind(rows), kind(rows), kind([[1.0, 0.0]]))
    assert made.w_query == made.embeddings == [[0.123, 0.0], [1.0, 2.0]]
    assert made.trace()["AV"].shape == (2, 1)  # d_value need not be d_head
    expected = attention_weights(*(torch.tensor(made.trace()[name]) for name in "QK"))
    np.testing.assert_allclose(made.trace()["A"], expected.numpy())


# ---------------------------------------------------------------- what it refuses


EYE = np.eye(2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("a b", EYE), TypeError, "not one string"),
        (([],), ValueError, "tokens is empty"),
        (([1, 2],), TypeError, "holds int"),
        ((["a"], EYE), ValueError, r"embeddings has shape \(2, 2\), expected \(1, any\)"),
        ((["a", "b"], [[1.0], [1.0, 2.0]]), ValueError, "rows of equal length"),
        ((["a", "b"], EYE * np.nan), ValueError, "is nan"),
        ((["a", "b"], EYE * 11), ValueError, "between -10 and 10"),
        ((["a", "b"], np.ones((2, 17))), ValueError, "d_model = 17, at most 16"),
        ((["a", "b"], EYE, np.ones((2, 3))), ValueError, r"w_query has shape \(2, 3\), expected \(any, 2\)"),
        ((["a", "b"], EYE, EYE, np.ones((3, 2))), ValueError, r"w_key has shape \(3, 2\), expected \(2, 2\)"),
        ((["a", "b"], EYE, np.ones((9, 2))), ValueError, "w_query has 9 rows, at most 8"),
    ],
)
def test_bad_input_is_refused_with_a_reason(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        AttentionStepsExplorer(*arguments)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="step has to be one of embed, project"):
        AttentionStepsExplorer(step="guess")
    made = AttentionStepsExplorer()
    for wrong in (["A"], ["Z", 0, 0], ["A", -1, 0], ["A", 0, "1"]):
        with pytest.raises(ValueError, match="selected has to be empty or"):
            made.selected = wrong
    with pytest.raises(ValueError, match="within hold_trait_notifications"):
        made.tokens = ["one"]
    with pytest.raises(ValueError, match="w_key has shape"):
        made.w_key = [[1.0]]
    with pytest.raises(ValueError, match="bias=False"):
        AttentionStepsExplorer.from_head(AttentionHead(2, 2, bias=True), EYE, ["a", "b"])


def test_too_many_tokens_are_cut_and_it_is_said() -> None:
    with pytest.warns(UserWarning, match="10000 tokens .* first 8"):
        made = AttentionStepsExplorer([f"t{i}" for i in range(10_000)])
    assert len(made.tokens) == len(made.embeddings) == MAX_TOKENS
    assert "The first 8 of 10000 tokens" in made.fallback_html()


# ---------------------------------------------------------------- what is stored


def test_the_fallback_has_every_step_and_every_number() -> None:
    made = AttentionStepsExplorer(TOKENS, causal=True)
    text = html.unescape(re.sub(r"<[^>]*>", " ", made.fallback_html()))
    assert made.fallback_html().count("<table>") == len(made.trace()) == 9
    assert made.fallback_html().count("<li>") == len(STEPS)
    for value in made.trace()["AV"].ravel():
        assert f"{value:.2f}".replace("-", "−") in text
    assert "−∞" in text


def test_tokens_and_notes_are_never_markup() -> None:
    made = AttentionStepsExplorer(HOSTILE, note="<b>bold</b>")
    page = made.to_html()
    assert not re.search(r"<(?!/?(div|p|ol|li|table|caption|thead|tbody|tr|th|td)\b)", page)
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', page)[1]))
    assert state["tokens"] == HOSTILE
    assert state["note"] == "<b>bold</b>"


def test_the_largest_output_stays_small() -> None:
    rng = np.random.default_rng(0)
    wide = [rng.uniform(-9, 9, size=(8, 16)) for _ in range(4)]
    assert len(AttentionStepsExplorer(["quantise"] * 8, *wide, causal=True).to_html().encode()) < 30_000
