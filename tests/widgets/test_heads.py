"""Heads side by side in Python: weights, scores, the geometry of the writes, what is refused and what is left out."""

import html
import json
import re

import numpy as np
import pytest
import torch

from ttutor import assets
from ttutor.inside import attention_entropy, capture, first_token_score, head_writes, previous_token_score
from ttutor.multihead import MultiHeadAttention
from ttutor.widgets import HeadsExplorer
from ttutor.widgets.head_facts import head_scores, keys_by_chance, label_of, write_parts, write_products
from ttutor.widgets.head_input import MAX_HEADS, MAX_NUMBERS, MAX_TOKENS

TOKENS = ["the", "cat", "sat"]
HOSTILE = ['<img src=x onerror="alert(1)">', "</script>", "'\"&"]


def specimen() -> HeadsExplorer:
    """The figure as the gallery shows it."""
    return HeadsExplorer.recorded(layer=1, query=1)


def shares(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1])


def vectors(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def state_of(explorer: HeadsExplorer) -> dict:
    return json.loads(html.unescape(re.search(r'data-state="([^"]*)"', explorer.to_html())[1]))


# ---------------------------------------------------------------- the sum through W_O


def test_products_hold_all_lengths_and_angles() -> None:
    writes, rest = vectors(2, 3, 4, 8), vectors(2, 4, 8, seed=2)
    products = write_products(writes, rest)
    assert products.shape == (2, 4, 10)
    parts = [*writes[1, :, 2], rest[1, 2]]
    expected = [parts[i] @ parts[j] for i in range(4) for j in range(i + 1)]
    np.testing.assert_allclose(products[1, 2], expected, atol=1e-12)


@pytest.mark.parametrize("on", [[True] * 4, [True, False, True, True], [False, False, False, True]])
def test_what_points_along_the_sum_adds_up_and_lengths_do_not(on: list[bool]) -> None:
    writes, rest = vectors(1, 3, 1, 8), vectors(1, 1, 8, seed=2)
    found = write_parts(write_products(writes, rest)[0, 0], on)
    parts = np.array([*writes[0, :, 0], rest[0, 0]])
    total = parts[on].sum(axis=0)
    np.testing.assert_allclose(found.total, np.linalg.norm(total), atol=1e-12)
    np.testing.assert_allclose(found.norms, np.linalg.norm(parts, axis=1), atol=1e-12)
    np.testing.assert_allclose(found.along, on * (parts @ total) / np.linalg.norm(total), atol=1e-12)
    np.testing.assert_allclose(found.along.sum(), found.total, atol=1e-12)
    assert found.norms[on].sum() >= found.total - 1e-12


def test_parts_that_cancel_leave_nothing() -> None:
    found = write_parts(write_products([[[[1.0, 2.0]], [[-1.0, -2.0]]]])[0, 0], [True, True, True])
    assert found.total == 0.0
    assert found.along.tolist() == [0.0, 0.0, 0.0]


def test_the_parts_are_the_layers_own_output() -> None:
    torch.manual_seed(0)
    layer, hidden = MultiHeadAttention(12, 3), torch.randn(1, 4, 12)
    torch.nn.init.normal_(layer.to_output.bias)
    with torch.no_grad(), capture(layer, "weights", "context") as seen:
        output = layer(hidden)
        writes = head_writes(layer, seen["context"])
    rest = layer.to_output.bias.expand(4, -1)
    explorer = HeadsExplorer(list("abcd"), seen["weights"][0], writes=writes[0], rest=rest, query=3)
    assert explorer.write_parts().total == pytest.approx(float(output[0, 3].norm()), abs=1e-3)
    np.testing.assert_allclose(explorer.weights[0], seen["weights"][0].numpy(), atol=5e-4)


# ---------------------------------------------------------------- scores


def test_scores_are_those_of_ttutor_inside() -> None:
    weights = torch.tensor(shares(2, 3, 5, 5))
    names, scores = head_scores(weights, list("abcde"), True)
    assert names == ["own token", "token before", "token after", "first token", "last token", "keys in effect"]
    batched = weights[:, None]
    np.testing.assert_allclose(scores[..., 1], previous_token_score(batched), atol=1e-12)
    np.testing.assert_allclose(scores[..., 3], first_token_score(batched), atol=1e-12)
    np.testing.assert_allclose(scores[..., 5], attention_entropy(batched).exp(), atol=1e-12)
    np.testing.assert_allclose(scores[..., 0], weights.diagonal(dim1=-2, dim2=-1).mean(-1), atol=1e-12)
    np.testing.assert_allclose(scores[..., 2], weights.diagonal(1, -2, -1).mean(-1), atol=1e-12)
    np.testing.assert_allclose(scores[..., 4], weights[..., -1].mean(-1), atol=1e-12)


def test_a_causal_head_has_no_score_for_what_it_cannot_see_and_one_for_repetition() -> None:
    weights = torch.tensor(shares(1, 1, 4, 4)).tril()
    names, _ = head_scores(weights / weights.sum(-1, keepdim=True), list("abab"), True)
    assert names == ["own token", "token before", "first token", "after an earlier twin", "keys in effect"]
    assert head_scores(weights, list("abcd"), True)[0][-2] == "first token"


def test_cross_attention_is_scored_by_its_ends() -> None:
    explorer = HeadsExplorer(["a", "b"], shares(2, 2, 3), key_tokens=["x", "y", "z"])
    assert explorer.score_names == ["first key", "last key", "keys in effect"]


@pytest.mark.parametrize(
    ("weights", "label"),
    [
        (np.eye(4), "mostly own token"),
        (np.eye(4)[[0, 0, 1, 2]], "mostly token before"),
        (np.full((4, 4), 0.25), "spread evenly"),
        (0.6 * np.eye(4)[[1, 2, 3, 0]] + 0.1, "mostly token after"),
    ],
)
def test_a_head_is_called_after_what_it_does(weights: np.ndarray, label: str) -> None:
    assert HeadsExplorer(list("abcd"), weights[None]).labels == [[label]]


def test_a_name_needs_more_than_chance() -> None:
    assert label_of(["own token", "keys in effect"], [0.3, 3.0], 4) == "no simple rule"
    assert label_of(["own token", "keys in effect"], [0.3, 3.0], 9) == "partly own token"


def test_chance_in_a_decoder_is_the_mean_of_one_over_the_number_of_keys() -> None:
    even = np.tril(np.ones((9, 9))) / np.arange(1, 10)[:, None]
    assert 1 / keys_by_chance(even[None, None]) == pytest.approx(sum(1 / n for n in range(1, 10)) / 9)
    assert keys_by_chance(np.full((1, 1, 9, 9), 1 / 9)) == 9
    assert keys_by_chance(np.full((1, 1, 2, 5), 1 / 5)) == 5
    # .42 of the weight on the first token is not half as much again as the .31 that chance gives it.
    leaning = 0.85 * even + 0.15 * np.eye(9)[np.zeros(9, dtype=int)]
    assert HeadsExplorer(list("abcdefghi"), leaning[None]).labels == [["spread evenly"]]


def test_one_token_is_enough() -> None:
    assert HeadsExplorer(["a"], [[[1.0]]]).score_names == ["own token", "keys in effect"]


# ---------------------------------------------------------------- the recording


def test_the_recording_is_of_our_translator_and_says_so() -> None:
    stored = assets.load("multihead_recording")
    explorer = HeadsExplorer.recorded(1)
    assert explorer.tokens == [token.removeprefix("▁") for token in stored["sentences"][1]["tokens"]]
    assert explorer.weights == stored["sentences"][1]["weights"]
    assert stored["provenance"]["command"] in explorer.note
    assert explorer.tokens[-1] == "<eos>"
    with pytest.raises(IndexError, match="sentences 0 to 1, but 2"):
        HeadsExplorer.recorded(2)


def test_recorded_weights_are_shares_and_recorded_products_are_of_vectors() -> None:
    for sentence in assets.load("multihead_recording")["sentences"]:
        np.testing.assert_allclose(np.sum(sentence["weights"], axis=-1), 1, atol=6e-3)
        n_parts = np.shape(sentence["weights"])[1] + 1
        for products in np.reshape(sentence["products"], (-1, n_parts * (n_parts + 1) // 2)):
            found = write_parts(products, [True] * n_parts)
            assert found.total <= found.norms.sum()
            assert abs(found.along).max() <= found.norms.max() + 1e-2


# ---------------------------------------------------------------- state and its limits


def test_what_python_sets_is_checked() -> None:
    explorer = HeadsExplorer(TOKENS, shares(2, 4, 3, 3))
    for name, value, words in [
        ("layer", 2, "layer has to be from 0 to 1, not 2"),
        ("head", -1, "head has to be from 0 to 3"),
        ("query", 3, "query has to be from 0 to 2"),
        ("on", [True], "each of 4 heads, not 1"),
        ("weights", [[[[2.0] * 3] * 3] * 4] * 2, r"weights\[0\]\[0\]\[0\]\[0\] is 2.0; weights are shares"),
        ("products", [[[1.0]]], "products has shape"),
    ]:
        with pytest.raises(ValueError, match=words):
            setattr(explorer, name, value)


def test_weights_that_are_set_later_are_scored_anew() -> None:
    explorer = HeadsExplorer(TOKENS, shares(1, 1, 3, 3))
    explorer.weights = [[np.eye(3).tolist()]]
    assert explorer.labels == [["mostly own token"]]
    assert explorer.scores[0][0][0] == 1.0


@pytest.mark.parametrize(
    ("tokens", "weights", "options", "error", "message"),
    [
        (TOKENS, np.zeros((3, 3)), {}, ValueError, r"expected \(layers, heads, 3, 3\) or \(heads, 3, 3\)"),
        (TOKENS, np.zeros((1, 2, 4, 4)), {}, ValueError, "of one text"),
        (TOKENS, np.zeros((0, 3, 3)), {}, ValueError, "weights has shape"),
        (TOKENS, np.full((1, 3, 3), np.nan), {}, ValueError, r"weights\[0\]\[0\]\[0\]\[0\] is nan"),
        (TOKENS, [[[1, 2], [3]]], {}, ValueError, "rows of equal length"),
        (TOKENS, -np.ones((1, 3, 3)), {}, ValueError, "after the softmax"),
        ("the cat", np.zeros((1, 2, 2)), {}, TypeError, "not one string"),
        ([], [], {}, ValueError, "tokens is empty"),
        ([1, 2], np.zeros((1, 2, 2)), {}, TypeError, "decode token ids"),
        (TOKENS, shares(2, 3, 3), {"writes": np.zeros((3, 3, 8))}, ValueError, "writes has shape"),
        (TOKENS, shares(2, 3, 3), {"writes": np.full((2, 3, 8), np.inf)}, ValueError, "writes holds a number"),
        (TOKENS, shares(2, 3, 3), {"writes": np.ones((2, 3, 8)), "rest": np.ones((3, 4))}, ValueError, "rest has"),
        (TOKENS, shares(2, 3, 3), {"products": np.ones((1, 3, 3))}, ValueError, "make it with write_products"),
        (TOKENS, shares(2, 3, 3), {"layers": [1]}, IndexError, "some of the layers 0 to 0"),
        (TOKENS, shares(2, 3, 3), {"head": 2}, ValueError, "head has to be from 0 to 1"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_a_reason(tokens, weights, options, error, message) -> None:
    with pytest.raises(error, match=message):
        HeadsExplorer(tokens, weights, **options)


def test_layers_can_be_chosen_and_keep_their_numbers() -> None:
    weights = shares(4, 2, 3, 3)
    explorer = HeadsExplorer(TOKENS, weights, writes=vectors(4, 2, 3, 5), layers=[0, -1], layer=1)
    assert explorer.layers == [0, 3]
    np.testing.assert_allclose(explorer.weights[1], weights[3], atol=5e-4)
    expected = write_parts(write_products(vectors(4, 2, 3, 5))[3, 0], [True] * 3)
    np.testing.assert_allclose(explorer.write_parts().along, expected.along, atol=1e-3)


@pytest.mark.parametrize(
    ("layers", "heads", "n"), [(2, 4, 200), (12, 12, 10), (1, 40, 6), (24, 16, 60), (6, 8, 24), (1, 2, 2000)]
)
def test_what_is_too_much_is_left_out_and_it_is_said(layers: int, heads: int, n: int) -> None:
    tokens = [f"t{i}" for i in range(n)]
    writes = vectors(layers, heads, n, 2)
    with pytest.warns(UserWarning, match="more than one figure holds.*Choose layers"):
        explorer = HeadsExplorer(tokens, np.full((layers, heads, n, n), 1 / n), writes=writes)
    shape = np.shape(explorer.weights)
    assert shape[1] == min(heads, MAX_HEADS)
    assert shape[2] <= MAX_TOKENS
    assert np.size(explorer.weights) + np.size(explorer.products) <= MAX_NUMBERS
    assert len(explorer.to_html().encode()) < 30_000
    assert f"Of {layers} layers, {heads} heads, {n} queries" in explorer.note
    assert explorer.layers[0] == 0
    # Heads that are left out stay in the sum.
    total = np.linalg.norm(writes[0, :, 0].sum(axis=0))
    assert explorer.write_parts().total == pytest.approx(total, abs=1e-2)


def test_no_writes_no_sum() -> None:
    assert HeadsExplorer(TOKENS, shares(2, 3, 3)).write_parts() is None


def test_tokens_are_never_markup() -> None:
    explorer = HeadsExplorer(HOSTILE, shares(2, 3, 3), caption="<b>mine</b>")
    assert "<img" not in explorer.to_html()
    assert "<b>" not in explorer.to_html()
    assert state_of(explorer)["tokens"] == HOSTILE


def test_the_fallback_names_heads_and_the_key_that_each_query_looks_at_most() -> None:
    explorer = HeadsExplorer(["I", "sleep"], [[[1, 0], [0.9, 0.1]], [[0.2, 0.8], [0.3, 0.7]]])
    cells = re.findall(r"<td>(.*?)</td>", explorer.fallback_html())
    assert cells == ["I", "I", "sleep", "sleep"]
    assert "layer 0, head 0: mostly " in explorer.fallback_html()
