"""Sequential or parallel, in Python: what was measured from ttutor's modules, and the formulas held to it."""

import html
import json
import math
import re

import numpy as np
import pytest
import torch

from ttutor.decoder import Decoder
from ttutor.recurrence import RNNCell, linear_scan, unroll
from ttutor.widgets import SequentialExplorer
from ttutor.widgets.lanes import Lane, measure
from ttutor.widgets.sequential import LONGEST, ROWS

SENTENCE = "the cat sat on the warm mat".split()
SIZES = [(2, 1, 4), (2, 3, 8), (5, 2, 16), (8, 1, 16), (9, 2, 6), (17, 4, 4)]


def specimen() -> SequentialExplorer:
    """The figure as the gallery shows it."""
    return SequentialExplorer(SENTENCE, n_layers=2, n_tokens=8, tick=1)


def evaluate(formula: str, n_tokens: int, n_layers: int, d_model: int) -> int:
    """What the JavaScript does with a formula."""
    sizes = {"T": n_tokens, "L": n_layers, "d": d_model, "min(T, L)": min(n_tokens, n_layers)}
    terms = ([sizes.get(factor) or int(factor) for factor in term.split("·")] for term in formula.split("+"))
    return sum(math.prod(factors) for factors in terms)


def facts(lane: Lane, generating: bool) -> list[int]:
    """In the order of the rows."""
    all_ = [lane.n_ticks, lane.at_once, lane.hops, lane.between_tokens, lane.multiply_adds, lane.kept]
    return all_ if generating else all_[:5]


# ---------------------------------------------------------------- what is measured


@pytest.mark.parametrize("generating", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_formula_is_what_the_modules_did(sizes: tuple[int, int, int], generating: bool) -> None:
    measured = measure(*sizes, generating)
    for column, lane in enumerate(measured.values(), start=3 if generating else 1):
        formulas = [row[column] for row in ROWS if row[column]]
        assert [evaluate(formula, *sizes) for formula in formulas] == facts(lane, generating)


def test_rnn_lane_climbs_a_token_a_tick_and_the_transformer_a_layer() -> None:
    lanes = measure(4, 2, 8, False)
    assert lanes["rnn"].ticks.tolist() == [[1, 2, 3, 4], [2, 3, 4, 5]]
    assert lanes["transformer"].ticks.tolist() == [[1] * 4, [2] * 4]


def test_generating_is_sequential_for_both() -> None:
    lanes = measure(3, 2, 8, True)
    for lane in lanes.values():
        assert lane.ticks.tolist() == [[1, 3, 5], [2, 4, 6]]


@pytest.mark.parametrize("n_tokens", [3, 7])
def test_calls_of_a_cell_against_calls_of_a_layer(n_tokens: int) -> None:
    """RNN-19: with all tokens known the recurrent net still loops, the decoder does not."""
    calls: list[torch.nn.Module] = []
    cell, decoder = RNNCell(8, 8), Decoder(8, 2, 16, n_layers=1, cross_attention=False)
    for module in (cell, decoder.layers[0]):
        module.register_forward_hook(lambda module, *_: calls.append(module))
    inputs = torch.randn(1, n_tokens, 8)
    unroll(cell, inputs)
    decoder(inputs)
    assert (calls.count(cell), calls.count(decoder.layers[0])) == (n_tokens, 1)


@pytest.mark.parametrize("n_tokens", [2, 5, 8, 33, 64])
def test_a_linear_recurrence_takes_the_rounds_that_the_note_tells(n_tokens: int) -> None:
    """RNN-01: the note's number is ttutor's own count."""
    _, n_rounds = linear_scan(torch.full((1, n_tokens, 1), 0.5), torch.ones(1, n_tokens, 1))
    assert n_rounds == math.ceil(math.log2(n_tokens))


def test_the_price_turns_where_the_note_says() -> None:
    """Between tokens: equal at T = d / 2 in training, at T + 1 = d in generating."""
    surplus = {}
    for n_tokens, generating in [(7, False), (8, False), (9, False), (14, True), (15, True), (16, True)]:
        lanes = measure(n_tokens, 2, 16, generating)
        surplus[n_tokens] = np.sign(lanes["transformer"].between_tokens - lanes["rnn"].between_tokens)
    assert list(surplus.values()) == [-1, 0, 1, -1, 0, 1]


# ---------------------------------------------------------------- use


def test_the_sentence_is_repeated_or_cut() -> None:
    assert SequentialExplorer(SENTENCE).n_tokens == 7
    assert SequentialExplorer(["one"]).n_tokens == 2
    assert "The first 10 of 12 tokens." in SequentialExplorer(SENTENCE, n_tokens=12).fallback_html()


def test_too_many_tokens_are_cut_and_it_is_said() -> None:
    with pytest.warns(UserWarning, match="10000 tokens .* first 64"):
        made = SequentialExplorer(["a"] * 10_000)
    assert (len(made.tokens), made.n_tokens, made.total) == (LONGEST, LONGEST, 10_000)


@pytest.mark.parametrize(
    ("tokens", "options", "error", "message"),
    [
        ("the cat", {}, TypeError, "not one string"),
        ([], {}, ValueError, "tokens is empty"),
        ([1, 2], {}, TypeError, "holds int"),
        (SENTENCE, {"n_tokens": 1}, ValueError, "n_tokens has to be a whole number from 2 to 64, not 1"),
        (SENTENCE, {"n_tokens": 10_000}, ValueError, "n_tokens"),
        (SENTENCE, {"n_layers": 0}, ValueError, "n_layers has to be a whole number from 1 to 6"),
        (SENTENCE, {"d_model": 0}, ValueError, "d_model"),
        (SENTENCE, {"tick": -1}, ValueError, "tick"),
    ],
)
def test_bad_input_is_refused_with_a_reason(tokens, options, error, message) -> None:
    with pytest.raises(error, match=message):
        SequentialExplorer(tokens, **options)


def test_bad_input_is_refused_later_too() -> None:
    made = specimen()
    for name, value in [("n_tokens", 65), ("tick", -1), ("tokens", []), ("tokens", ["a"] * 65)]:
        with pytest.raises(ValueError, match=name):
            setattr(made, name, value)


def test_the_fallback_has_what_was_measured() -> None:
    text = specimen().fallback_html()
    rows = dict(re.findall(r'<tr><th scope="row">([^<]*)</th>((?:<td>[^<]*</td>)+)</tr>', text))
    cells = {name: re.findall(r"<td>([^<]*)</td>", row) for name, row in rows.items()}
    assert cells["Ticks in all"] == ["9", "2", "16", "16"]
    assert cells["Hops from first to last token"] == ["7", "1", "7", "1"]
    assert cells["Numbers kept for the next token"] == ["–", "–", "32", "512"]
    assert cells["RNN, layer 2"] == [str(tick) for tick in range(2, 10)]
    assert cells["Transformer, layer 1"] == ["1"] * 8


def test_hostile_tokens_stay_text_and_the_state_comes_back() -> None:
    made = SequentialExplorer(["<img src=x>", "</script>"])
    assert "<img" not in made.to_html()
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', made.to_html())[1]))
    assert state["tokens"] == ["<img src=x>", "</script>"]
    assert np.shape(state["rows"]) == (6, 5)
