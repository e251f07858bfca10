"""The positions explorer in Python: its numbers are those of ttutor.positions, and it refuses what it cannot show."""

import html
import json
import re

import numpy as np
import pytest
import torch
from traitlets import TraitError

from ttutor.positions import RotaryPositions, alibi_slopes, sinusoidal_encoding
from ttutor.widgets import PositionsExplorer
from ttutor.widgets.positions import MAX_OWN, VIEWS, random_weights


def specimen() -> PositionsExplorer:
    """The figure as the gallery shows it."""
    return PositionsExplorer(length=32, d_model=32)


def learned(positions: int = 12, features: int = 6) -> np.ndarray:
    return 0.02 * np.random.default_rng(0).normal(size=(positions, features))


# ---------------------------------------------------------------- numbers


def test_the_table_is_the_encoding_and_grows_without_changing() -> None:
    short, long = PositionsExplorer(8, 16).encoding, PositionsExplorer(64, 16).encoding
    np.testing.assert_array_equal(short, sinusoidal_encoding(8, 16).numpy())
    np.testing.assert_array_equal(long[:8], short)


def test_the_fastest_hand_is_ambiguous_the_slowest_tells_little_and_all_are_exact() -> None:
    explorer = PositionsExplorer(32, 32, position=4, reads="fast")
    assert explorer.candidates == [4, 10, 23, 29]
    explorer.reads = "slow"
    assert explorer.candidates == list(range(32))
    explorer.reads = "turn"
    assert explorer.candidates == [3, 4, 5]
    explorer.reads = "all"
    assert [PositionsExplorer(32, 32, position=p).candidates for p in range(32)] == [[p] for p in range(32)]


@pytest.mark.parametrize("width", [4, 32, 64])
def test_products_depend_on_the_distance_alone_until_they_are_projected(width: int) -> None:
    explorer = PositionsExplorer(32, width)
    along = [np.diagonal(explorer.similarity, k) for k in range(-20, 21)]
    assert max(line.std() for line in along) < 1e-6
    assert along[20].mean() == pytest.approx(width / 2)
    explorer.projected = True
    assert np.mean([np.diagonal(explorer.similarity, k).std() for k in range(-20, 21)]) > 0.1


def test_the_random_projections_are_fixed_and_have_the_usual_size() -> None:
    one, two = random_weights(32)
    assert torch.equal(one, random_weights(32)[0])
    assert not torch.equal(one, two)
    assert one.var().item() == pytest.approx(1 / 32, rel=0.1)
    assert abs(one.mean().item()) < 0.02


def test_the_rotary_score_stays_while_both_move() -> None:
    explorer = PositionsExplorer(query_position=8, key_position=5)
    scores = [explorer.score_at(8 + by, 5 + by) for by in range(50)]
    np.testing.assert_allclose(scores, explorer.score, atol=1e-12)
    assert abs(explorer.score_at(9, 5) - explorer.score) > 0.1
    q, k = (RotaryPositions(8)(torch.tensor([[p]]))(torch.eye(8).double()[None, None, :1]) for p in (8, 5))
    np.testing.assert_allclose(PositionsExplorer(query=[1, 0], key=[1, 0]).score, float((q * k).sum()), atol=1e-12)


@pytest.mark.parametrize("n_heads", [1, 8, 12, 16])
def test_alibi_takes_the_slope_times_the_distance(n_heads: int) -> None:
    explorer = PositionsExplorer(16, n_heads=n_heads)
    np.testing.assert_allclose(explorer.bias, -np.outer(alibi_slopes(n_heads), range(16)), atol=1e-6)
    powers = np.exp(explorer.bias)
    np.testing.assert_allclose(explorer.alibi_weights, powers / powers.sum(1, keepdims=True), atol=1e-12)


# ---------------------------------------------------------------- a table of one's own


@pytest.mark.parametrize("make", [np.array, torch.tensor, list, lambda a: torch.tensor(a, requires_grad=True)])
def test_a_table_of_any_kind_is_shown_rounded(make) -> None:
    explorer = PositionsExplorer(table=make(learned().tolist()))
    assert explorer.length == 12
    np.testing.assert_allclose(explorer.encoding, learned(), atol=1e-5)
    np.testing.assert_allclose(explorer.similarity, learned() @ learned().T, atol=1e-6)


def test_a_large_table_is_cut_and_its_products_are_not() -> None:
    table = learned(1000, 200)
    with pytest.warns(UserWarning, match="1000 positions and 200 features .* first 48 positions and 32 features"):
        explorer = PositionsExplorer(48, table=table)
    assert explorer.encoding.shape == MAX_OWN
    np.testing.assert_allclose(explorer.similarity, (table @ table.T)[:48, :48], atol=1e-4)
    assert len(explorer.to_html().encode()) < 30_000
    assert "16 of 1000 positions and 8 of 200 features" in explorer.fallback_html()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0, float("nan")], [0, 0]], r"table\[0\]\[1\] is nan"),
        ([[1.0, 2.0], [1.0]], "rows of equal length"),
        ([["<b>", "x"]] * 3, "not a table of numbers"),
        (np.zeros((2, 3, 4)), r"positions, features\); choose one"),
        ([[1.0, 2.0]], "table has one position"),
        ([], "shape"),
        (np.zeros((3, 0)), "shape"),
        ([[1e300] * 2] * 3, "products"),
    ],
)
def test_a_bad_table_is_refused_with_a_reason(table, message) -> None:
    with pytest.raises(ValueError, match=message):
        PositionsExplorer(table=table)


def test_a_table_has_two_views_and_stays() -> None:
    with pytest.raises(ValueError, match="views table and similarity, not 'clocks'"):
        PositionsExplorer(view="clocks", table=learned())
    explorer = PositionsExplorer(table=learned())
    with pytest.raises(ValueError, match="another table needs another figure"):
        explorer.table = [[1.0], [2.0]]
    with pytest.raises(ValueError, match="length has to be 2 to 12, not 13"):
        explorer.length = 13


def test_a_table_of_zeros_is_shown() -> None:
    assert "0.000" in PositionsExplorer(table=np.zeros((3, 2))).fallback_html()


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"length": 1}, ValueError, "length has to be 2 to 64, not 1"),
        ({"length": 10_000}, ValueError, "length has to be 2 to 64"),
        ({"d_model": 7}, ValueError, "even, since features come in pairs, not 7; try 8"),
        ({"d_model": 128}, ValueError, "d_model has to be 4 to 64"),
        ({"view": "<b>"}, TraitError, "view"),
        ({"tolerance": float("nan")}, ValueError, "tolerance has to be 0.05 to 1, not nan"),
        ({"query": [1.0]}, ValueError, r"query has shape \(1,\)"),
        ({"key": [1.0, float("inf")]}, ValueError, r"key\[1\] is inf"),
        ({"n_heads": 0}, ValueError, "n_heads has to be 1 to 16"),
        ({"pair": 4}, ValueError, "pair has to be 0 to 3"),
        ({"position": -1}, ValueError, "position"),
        ({"heads": 3}, TypeError, "unknown setting heads; there are view, length"),
        ({"selected": [-1, -1]}, ValueError, r"selected has to be \[\] or \[position, feature\]"),
        ({"selected": [3]}, ValueError, "selected"),
        ({"position": "ten"}, TraitError, "position"),
    ],
)
def test_bad_settings_are_refused_with_a_reason(settings, error, message) -> None:
    with pytest.raises(error, match=message):
        PositionsExplorer(**settings)


def test_bad_settings_are_refused_later_too() -> None:
    explorer = specimen()
    with pytest.raises(ValueError, match="d_model"):
        explorer.d_model = 5
    assert explorer.d_model == 32


# ---------------------------------------------------------------- what is stored


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_has_a_table_for_readers_without_scripts(view: str) -> None:
    markup = PositionsExplorer(view=view, n_heads=12, position=63).fallback_html()
    assert re.match(r"<table><caption>[^<]{60,}</caption><thead>", markup)
    assert markup.count("<tr>") > 4
    assert "nan" not in markup


def test_the_fallback_says_what_hands_look_alike_and_that_scores_stay() -> None:
    clocks = PositionsExplorer(32, view="clocks", position=4).fallback_html()
    assert '<th scope="row">fastest</th><td>4, 10, 23, 29</td>' in clocks
    scores = re.findall(r"<td>(−?-?[\d.]+)</td></tr>", PositionsExplorer(view="rotary").fallback_html())
    assert len(scores) == 4
    assert scores[0] == scores[1] == scores[2] != scores[3]


def test_the_state_is_plain_json() -> None:
    explorer = PositionsExplorer(table=learned(), selected=[1, 2])
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', explorer.to_html())[1]))
    assert set(state) == set(explorer._state_keys)
    assert state["total"] == [12, 6]
    assert repr(explorer) == "PositionsExplorer(table, 12 positions, 6 features of a table)"
