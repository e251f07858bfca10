"""The attention map in Python: its state, its numbers, its fallback and what it refuses."""

import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from ttutor.widgets import AttentionExplorer, Explorer
from ttutor.widgets.attention import MAX_TOKENS

TOKENS = ["the", "cat", "sat"]


def specimen() -> AttentionExplorer:
    """The figure as the gallery shows it."""
    scores = 2 * np.random.default_rng(0).normal(size=(6, 6))
    return AttentionExplorer(["the", "cat", "sat", "on", "the", "mat"], scores, d_head=64)


SCORES = [[0.12345, -1.5, 2.0], [0.0, 0.5, 1.0], [3.0, -0.00001, 0.25]]
HOSTILE = ['<img src=x onerror="alert(1)">', "</script>", "'\"&"]


class Table(HTMLParser):
    """Reads the cells of a table back, and every tag that stands in the page."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: dict[str, list[str]] = {"th": [], "td": [], "caption": []}
        self._in = ""
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in = tag
        if tag in self.cells:
            self.cells[tag].append("")

    def handle_data(self, data: str) -> None:
        if self._in in self.cells:
            self.cells[self._in][-1] += data


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def state_of(explorer: AttentionExplorer) -> dict:
    return json.loads(html.unescape(re.search(r'data-state="([^"]*)"', explorer.to_html())[1]))


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("temperature", [0.1, 1.0, 2.5])
def test_weights_are_the_softmax_of_the_rounded_scores(temperature: float) -> None:
    explorer = AttentionExplorer(TOKENS, SCORES, temperature=temperature)
    np.testing.assert_allclose(explorer.weights, softmax(np.round(SCORES, 3) / temperature), atol=1e-12)


def test_raw_products_are_divided_by_the_root_of_d_head_while_scaled() -> None:
    explorer = AttentionExplorer(TOKENS, SCORES, d_head=16)
    np.testing.assert_allclose(explorer.weights, softmax(np.round(SCORES, 3) / 4), atol=1e-12)
    explorer.scaled = False
    np.testing.assert_allclose(explorer.weights, softmax(np.round(SCORES, 3)), atol=1e-12)


def test_causal_and_given_masks_hide_keys() -> None:
    mask = torch.tensor([[True, True, True], [False, True, True], [True, True, True]])
    weights = AttentionExplorer(TOKENS, SCORES, mask=mask, causal=True).weights
    assert weights[0].tolist() == [1.0, 0.0, 0.0]
    assert weights[1].tolist() == [0.0, 1.0, 0.0]
    assert (weights[2] > 0).all()


def test_a_row_that_may_attend_to_nothing_gets_zeros() -> None:
    mask = np.array([[False, False, False], [True, True, True], [True, True, True]])
    assert AttentionExplorer(TOKENS, SCORES, mask=mask).weights[0].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("padding", [1, [False, False, True], np.array([False, False, True])])
def test_padding_hides_keys_while_its_mask_is_on(padding) -> None:
    explorer = AttentionExplorer(TOKENS, SCORES, padding=padding)
    assert explorer.padding == [False, False, True]
    without = softmax(np.round(SCORES, 3)[:, :2])
    np.testing.assert_allclose(explorer.weights, np.pad(without, ((0, 0), (0, 1))), atol=1e-12)
    explorer.padding_masked = False
    np.testing.assert_allclose(explorer.weights, softmax(np.round(SCORES, 3)), atol=1e-12)
    explorer.padding_masked, explorer.padding = True, [True, False, False]
    assert (explorer.weights[:, 0] == 0).all()


def test_padding_causal_and_given_masks_work_together_and_empty_rows_are_said() -> None:
    mask = [[True] * 3, [True, True, True], [True, False, True]]
    explorer = AttentionExplorer(TOKENS, SCORES, mask=mask, causal=True, padding=[True, False, False])
    expected = [[0, 0, 0], [0, 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(explorer.weights, expected, atol=1e-12)
    assert "A row of – alone may attend to nothing: its weights are all 0." in explorer.fallback_html()
    assert "may attend to nothing" not in AttentionExplorer(TOKENS, SCORES, padding=2).fallback_html()
    assert (AttentionExplorer(TOKENS, SCORES, padding=3).weights == 0).all()
    assert AttentionExplorer(TOKENS, SCORES).padding == AttentionExplorer(TOKENS, SCORES, padding=0).padding == []


@pytest.mark.parametrize("padding", [4, -1, [True, False], [0, 1, 1], [[True] * 3], "abc", True])
def test_padding_that_does_not_fit_is_refused(padding) -> None:
    with pytest.raises(ValueError, match="padding is .* keys"):
        AttentionExplorer(TOKENS, SCORES, padding=padding)


def test_minus_infinity_is_read_as_masked() -> None:
    scores = torch.tensor(SCORES).masked_fill(~torch.ones(3, 3).tril().bool(), -torch.inf)
    explorer = AttentionExplorer(TOKENS, scores)
    np.testing.assert_allclose(explorer.weights, torch.softmax(scores, -1).numpy(), atol=1e-3)
    assert explorer.mask == [[True, False, False], [True, True, False], [True, True, True]]
    state_of(explorer)  # JSON has no infinity


@pytest.mark.parametrize("make", [torch.tensor, np.array, list, lambda s: torch.tensor(s, requires_grad=True)])
def test_scores_of_any_kind_are_stored_rounded(make) -> None:
    explorer = AttentionExplorer(tuple(TOKENS), make(SCORES))
    assert explorer.scores == [[0.123, -1.5, 2.0], [0.0, 0.5, 1.0], [3.0, 0.0, 0.25]]
    assert "-0.0" not in explorer.to_html()


def test_cross_attention_has_its_own_keys() -> None:
    explorer = AttentionExplorer(["rouge", "voiture"], [[2.0, 0, 0], [0, 0, 2.0]], key_tokens=["red", "a", "car"])
    assert explorer.weights.shape == (2, 3)
    assert (explorer.tokens, explorer.key_tokens) == (["rouge", "voiture"], ["red", "a", "car"])


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("tokens", "scores", "options", "error", "message"),
    [
        (TOKENS, [[float("nan"), 0, 0], [0] * 3, [0] * 3], {}, ValueError, r"scores\[0\]\[0\] is nan"),
        (TOKENS, [[0, float("inf"), 0], [0] * 3, [0] * 3], {}, ValueError, r"scores\[0\]\[1\] is inf"),
        (TOKENS, [[0, 1], [0, 1, 2], [0]], {}, ValueError, "rows of equal length"),
        (TOKENS, [["a"] * 3] * 3, {}, ValueError, "not a table of numbers"),
        (TOKENS, np.zeros((2, 3)), {}, ValueError, r"shape \(2, 3\), expected \(3, 3\)"),
        (TOKENS, np.zeros((1, 4, 3, 3)), {}, ValueError, r"one sentence and one head, such as scores\[0, 0\]"),
        (TOKENS, [], {}, ValueError, "shape"),
        ([], [], {}, ValueError, "tokens is empty"),
        ("the cat", SCORES, {}, TypeError, r"not one string; for words write tokens=text.split\(\)"),
        ([1, 2, 3], SCORES, {}, TypeError, "holds int; decode token ids"),
        (TOKENS, SCORES, {"key_tokens": ["a"]}, ValueError, r"expected \(3, 1\)"),
        (TOKENS, SCORES, {"mask": np.ones((3, 3))}, TypeError, "expected bool with True = may attend"),
        (TOKENS, SCORES, {"mask": np.ones((2, 3), bool)}, ValueError, "mask has shape"),
        (TOKENS, SCORES, {"temperature": 0.0}, ValueError, "temperature has to be a finite number above 0"),
        (TOKENS, SCORES, {"temperature": float("nan")}, ValueError, "temperature"),
        (TOKENS, SCORES, {"d_head": 0}, ValueError, "d_head has to be"),
    ],
)
def test_bad_input_is_refused_with_a_reason(tokens, scores, options, error, message) -> None:
    with pytest.raises(error, match=message):
        AttentionExplorer(tokens, scores, **options)


def test_bad_input_is_refused_later_too() -> None:
    explorer = AttentionExplorer(TOKENS, SCORES)
    with pytest.raises(ValueError, match="temperature"):
        explorer.temperature = -1.0
    with pytest.raises(ValueError, match="is nan"):
        explorer.scores = [[float("nan")] * 3] * 3
    explorer.scores = [[0.12345] * 3] * 3
    assert explorer.scores == [[0.123] * 3] * 3


def test_too_many_tokens_are_cut_and_it_is_said() -> None:
    n = 10_000
    tokens = [f"t{i}" for i in range(n)]
    with pytest.warns(UserWarning, match="10000 queries and 60 keys .* first 48"):
        explorer = AttentionExplorer(tokens, np.ones((n, 60)), key_tokens=tokens[:60])
    assert np.shape(explorer.scores) == (MAX_TOKENS, MAX_TOKENS)
    np.testing.assert_allclose(explorer.weights, 1 / MAX_TOKENS)
    assert explorer.total == [n, 60]
    assert "The first 16 of 10000 queries and 16 of 60 keys." in explorer.fallback_html()


# ---------------------------------------------------------------- what is stored


def test_the_bundle_holds_a_widget_and_its_static_form() -> None:
    explorer = AttentionExplorer(TOKENS, SCORES)
    data, _ = explorer._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert data["text/html"] == explorer.to_html()
    assert data["text/plain"] == repr(explorer) == "AttentionExplorer(3 queries, 3 keys, temperature 1.0)"


def test_the_same_input_gives_the_same_output() -> None:
    one, two = (AttentionExplorer(TOKENS, torch.tensor(SCORES) + noise) for noise in (0.0, 1e-7))
    assert one.to_html() == two.to_html()
    assert repr(one) == repr(two)
    assert one.model_id not in one.to_html()


def test_the_largest_output_stays_small() -> None:
    rng = np.random.default_rng(0)
    explorer = AttentionExplorer(["quantise"] * MAX_TOKENS, 10 * rng.normal(size=(MAX_TOKENS, MAX_TOKENS)), causal=True)
    assert len(explorer.to_html()) < 30_000


def test_the_state_is_every_trait_that_the_module_reads() -> None:
    read = set(re.findall(r'get\("(\w+)"\)', str(AttentionExplorer._esm)))
    assert read <= set(AttentionExplorer._state_keys)
    assert set(state_of(AttentionExplorer(TOKENS, SCORES))) == set(AttentionExplorer._state_keys)


def test_the_fallback_is_a_table_of_the_weights() -> None:
    explorer = AttentionExplorer(TOKENS, SCORES, causal=True)
    table = Table(explorer.fallback_html())
    assert table.cells["th"] == TOKENS + TOKENS
    shown = [cell for cell in table.cells["td"] if cell]
    weights = explorer.weights
    expected = [f"{weights[i, j]:.2f}" if j <= i else "–" for i in range(3) for j in range(3)]
    assert shown == expected
    assert "temperature 1.0" in table.cells["caption"][0]


def test_tokens_are_never_markup() -> None:
    explorer = AttentionExplorer(HOSTILE, SCORES)
    table = Table(explorer.to_html())
    assert set(table.tags) <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert table.cells["th"] == HOSTILE + HOSTILE
    assert state_of(explorer)["tokens"] == HOSTILE


def test_a_saved_file_stands_alone(tmp_path) -> None:
    page = AttentionExplorer(HOSTILE, SCORES).save(tmp_path / "map.html", title="<My> map").read_text(encoding="utf-8")
    assert "<title>&lt;My&gt; map</title>" in page
    assert page.count("</script>") == 1
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


def test_an_explorer_without_a_fallback_is_not_finished() -> None:
    class Bare(Explorer):
        pass

    with pytest.raises(NotImplementedError, match="Bare has no fallback_html"):
        Bare().to_html()
