"""Heads side by side: weights, scores and the geometry of the writes, in Python and on the page; what is left out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import HOSTILE, in_browser, numbers, press
from ttutor.inside import attention_entropy, capture, first_token_score, head_writes, previous_token_score
from ttutor.multihead import MultiHeadAttention
from ttutor.translation.packed import load_packed
from ttutor.widgets import HeadsExplorer
from ttutor.widgets.from_model import recorded_attention
from ttutor.widgets.heads import (
    MAX_HEADS,
    MAX_NUMBERS,
    MAX_TOKENS,
    head_scores,
    keys_by_chance,
    write_products,
)
from ttutor.widgets.translator import EXAMPLES

TOKENS = ["the", "cat", "sat"]
PLACES = [(2, 2), (1, 0), (1, 2), (2, 0)]
NAMES = [f"layer {layer}, head {head}" for layer, head in PLACES]
SENTENCES = [
    EXAMPLES[0],
    "A little boy throws a ball to his dog.",
    "Two men in red shirts play football.",
    "A woman in a blue dress reads a book.",
    "Three children stand in front of a large house.",
    "The old woman sells fruit at the market.",
    "A man with a hat plays the guitar on the street.",
]


def read(sentence: str) -> tuple[list[str], torch.Tensor]:
    """The tokens, and the four heads' weights."""
    seen = recorded_attention(load_packed().translator, sentence)
    return [token.removeprefix("▁") for token in seen.tokens], torch.stack([seen.weights[place] for place in PLACES])


def test_the_gallerys_heads_do_in_every_sentence_what_the_figure_calls_them_after() -> None:
    for sentence in SENTENCES:
        everywhere, back, ahead, before = read(sentence)[1]
        assert before.diagonal(-1).sum() / len(before) > 0.45, sentence
        assert back.tril(-2).sum() / len(back) > 0.5, sentence
        assert ahead.triu(1).sum() / len(ahead) > 0.6, sentence
        assert everywhere.amax(dim=-1).mean() < 0.3, sentence


def specimen() -> HeadsExplorer:
    """The figure as the gallery shows it: four heads of the translator that ships."""
    return HeadsExplorer.translating()


def hostile() -> HeadsExplorer:
    return HeadsExplorer(HOSTILE, shares(2, 3, 3), caption=HOSTILE[1])


def extremes() -> list[HeadsExplorer]:
    long = ["Donaudampfschifffahrtsgesellschaft", "ab"]
    return [explorer(n, caption="A caption.") for n in (1, 24, 60)] + [HeadsExplorer(long, shares(2, 2, 2))]


TAP = (f"button:has-text('{NAMES[1]}')", f"No: {NAMES[1]} looks further back, on the whole. Here “dog” gives most to")


def shares(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1])


def vectors(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def writes_of(made: HeadsExplorer) -> tuple[np.ndarray, np.ndarray, float]:
    """Of the chosen query the length of each part, how much of it points along the sum, and the sum's length."""
    on, n_parts = np.array([*made.on, True], dtype=float), len(made.on) + 1
    products = np.zeros((n_parts, n_parts))
    products[np.tril_indices(n_parts)] = made.products[made.layer][made.query]
    products = products + np.tril(products, -1).T
    total = float(np.sqrt(on @ products @ on))
    return np.sqrt(np.diag(products)), on * (products @ on) / total, total


def test_products_hold_all_lengths_and_angles() -> None:
    writes, rest = vectors(2, 3, 4, 8), vectors(2, 4, 8, seed=2)
    products = write_products(writes, rest)
    assert products.shape == (2, 4, 10)
    parts = [*writes[1, :, 2], rest[1, 2]]
    expected = [parts[i] @ parts[j] for i in range(4) for j in range(i + 1)]
    np.testing.assert_allclose(products[1, 2], expected, atol=1e-12)


def test_the_parts_are_the_layers_own_output() -> None:
    torch.manual_seed(0)
    layer, hidden = MultiHeadAttention(12, 3), torch.randn(1, 4, 12)
    torch.nn.init.normal_(layer.to_output.bias)
    with torch.no_grad(), capture(layer, "weights", "context") as seen:
        output = layer(hidden)
        writes = head_writes(layer, seen["context"])
    rest = layer.to_output.bias.expand(4, -1)
    explorer = HeadsExplorer(list("abcd"), seen["weights"][0], writes=writes[0], rest=rest, query=3)
    assert writes_of(explorer)[-1] == pytest.approx(float(output[0, 3].norm()), abs=1e-3)
    np.testing.assert_allclose(explorer.weights[0], seen["weights"][0].numpy(), atol=5e-4)


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


@pytest.mark.parametrize(
    ("weights", "label"),
    [
        (np.eye(4), "mostly own token"),
        (np.eye(4)[[0, 0, 1, 2]], "mostly token before"),
        (np.full((4, 4), 0.25), "spread evenly"),
        (0.6 * np.eye(4)[[1, 2, 3, 0]] + 0.1, "mostly token after"),
        (np.eye(4)[[0, 1, 0, 1]], "mostly 2 tokens back"),
        (np.eye(5)[[0, 1, 2, 0, 1]], "mostly 3 tokens back"),
    ],
)
def test_a_head_is_called_after_what_it_does(weights: np.ndarray, label: str) -> None:
    assert HeadsExplorer(list("abcde")[: len(weights)], weights[None]).labels == [[label]]


def test_chance_in_a_decoder_is_the_mean_of_one_over_the_number_of_keys() -> None:
    even = np.tril(np.ones((9, 9))) / np.arange(1, 10)[:, None]
    assert 1 / keys_by_chance(even[None, None]) == pytest.approx(sum(1 / n for n in range(1, 10)) / 9)
    assert keys_by_chance(np.full((1, 1, 9, 9), 1 / 9)) == 9
    assert keys_by_chance(np.full((1, 1, 2, 5), 1 / 5)) == 5
    # .42 of the weight on the first token is not half as much again as the .31 that chance gives it.
    leaning = 0.85 * even + 0.15 * np.eye(9)[np.zeros(9, dtype=int)]
    assert HeadsExplorer(list("abcdefghi"), leaning[None]).labels == [["spread evenly"]]


@pytest.mark.parametrize(
    ("weights", "options", "error", "message"),
    [
        (np.zeros((3, 3)), {}, ValueError, r"expected \(layers, heads, 3, 3\) or \(heads, 3, 3\)"),
        (-np.ones((1, 3, 3)), {}, ValueError, "after the softmax"),
        (shares(2, 3, 3), {"writes": np.zeros((3, 3, 8))}, ValueError, "writes has shape"),
        (shares(2, 3, 3), {"layers": [1]}, IndexError, "some of the layers 0 to 0"),
        (shares(2, 3, 3), {"head": 2}, ValueError, "head has to be from 0 to 1"),
        (shares(2, 3, 3), {"names": ["one"]}, ValueError, "names has 1 names, expected one for each of 2 heads"),
    ],
)
def test_bad_input_is_refused_with_a_reason(weights, options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        HeadsExplorer(TOKENS, weights, **options)


@pytest.mark.parametrize(("layers", "heads", "n"), [(2, 4, 200), (1, 40, 6), (24, 16, 60)])
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
    assert writes_of(explorer)[-1] == pytest.approx(total, abs=1e-2)


WORDS = ["the", "cat", "sat", "down"]


def explorer(n_tokens: int = 4, **options: object) -> HeadsExplorer:
    random = np.random.default_rng(0)
    weights = random.dirichlet(np.ones(n_tokens), size=(2, 3, n_tokens))
    writes, rest = random.normal(size=(2, 3, n_tokens, 6)), 0.3 * random.normal(size=(2, n_tokens, 6))
    tokens = WORDS if n_tokens == 4 else [f"token{i}" for i in range(n_tokens)]
    return HeadsExplorer(tokens, weights, writes=writes, rest=rest, **options)


def shown_weights(page: Page) -> np.ndarray:
    return numbers(page, "text")


def shown_parts(page: Page) -> np.ndarray:
    """Lengths and parts along the sum, in two columns; the sum is the last row."""
    return np.reshape(numbers(page, "data"), (-1, 2))


def assert_python_agrees(page: Page, made: HeadsExplorer) -> None:
    np.testing.assert_allclose(shown_weights(page), made.weights[made.layer][made.head][made.query], atol=1e-6)
    norms, along, total = writes_of(made)
    table = shown_parts(page)
    np.testing.assert_allclose(table[:-1, 0], norms * [*made.on, True], atol=1e-6)
    np.testing.assert_allclose(table[:-1, 1], along, atol=1e-6)
    np.testing.assert_allclose(table[-1], [total] * 2, atol=1e-6)
    np.testing.assert_allclose(table[:-1, 1].sum(), table[-1, 1], atol=1e-6)


@in_browser
@pytest.mark.parametrize(
    "options", [{}, {"layer": 1, "head": 2, "query": 3}, {"layers": [1], "head": 1, "query": 2}], ids=str
)
def test_numbers_on_screen_are_pythons(show: Show, options: dict) -> None:
    made = explorer(**options)
    assert_python_agrees(show(made), made)


def unfold(page: Page) -> None:
    page.get_by_text("What the heads add up to").click()


@in_browser
def test_heads_can_be_switched_off_and_leave_the_sum_which_keeps_its_unit(show: Show) -> None:
    made = explorer(query=1)
    page = show(made)
    unfold(page)
    widths = []
    for on in ([True] * 3, [True, False, True], [False] * 3):
        for head, yes in enumerate(on):
            page.get_by_label(f"head {head}", exact=True).set_checked(yes)
        made.on = on
        assert_python_agrees(page, made)
        box = page.locator(".sum .length").last.bounding_box()
        widths.append(box["width"] / writes_of(made)[-1])
    np.testing.assert_allclose(widths, widths[0], rtol=0.02)  # pixels for one unit of length


@in_browser
def test_a_head_is_enlarged_with_lines_as_thick_as_its_weights(show: Show) -> None:
    made = explorer()
    page = show(made)
    press(page, "head 2")
    page.get_by_label("Layer").select_option("1")
    page.locator('[data-key="ask3"]').click()
    made.head, made.layer, made.query = 2, 1, 3
    assert_python_agrees(page, made)
    expect(page.get_by_role("button", name="head 2")).to_have_attribute("aria-pressed", "true")
    top = made.key_tokens[int(np.argmax(made.weights[1][2][3]))]
    row = made.weights[1][2][3]
    told = f", on the whole. Here “down” gives most to “{top}”, {max(row):.3f}; its row adds up to 1.00."
    assert page.locator(".tt-found").inner_text().endswith(told)
    widths = page.locator(".tt-picture .link").evaluate_all(
        "all => all.map((one) => +one.getAttribute('stroke-width'))"
    )
    expected = [0.45 * 34 * weight for row in made.weights[1][2] for weight in row if weight >= 0.01]
    np.testing.assert_allclose(widths, expected, atol=0.006)


@in_browser
def test_every_head_says_where_it_sends_the_word_that_asks(show: Show) -> None:
    made = explorer()
    page = show(made)
    for query in range(4):
        page.locator(f'[data-key="ask{query}"]').click()
        found = [made.key_tokens[int(np.argmax(head[query]))] for head in made.weights[0]]
        assert [text.split("→ ")[1] for text in page.locator(".heads button").all_inner_texts()] == found


@in_browser
def test_a_head_that_looks_one_way_is_asked_for_and_found(show: Show) -> None:
    before, after = np.eye(5)[[0, 0, 1, 2, 3]], np.eye(5)[[1, 2, 3, 4, 4]] * 0.9 + 0.02
    page = show(HeadsExplorer(list("abcde"), [np.full((5, 5), 0.2), after, before], query=2))
    assert page.locator(".tt-invite").inner_text() == "Find the head that looks one place back, and tap it."
    finding = page.locator(".tt-found")
    for head, words in enumerate(["No: head 0 looks in all directions", "No: head 1 looks ahead", "Yes, 0.80 of"]):
        press(page, f"head {head}")
        assert finding.inner_text().startswith(words)
    names = page.locator(".heads em")
    assert names.all_inner_texts() == ["in all directions", "ahead", "one place back"]  # what was named stays named
    press(page, "Reset")
    assert names.all_inner_texts() == ["in all directions", "?", "?"]


@in_browser
def test_pointing_at_a_word_or_a_head_shows_what_a_click_keeps(show: Show) -> None:
    made = explorer()
    page = show(made)
    found = page.locator(".tt-found")
    before = found.inner_text()
    for place, head, query in [(page.locator('[data-key="ask3"]'), 0, 3), (page.locator(".heads button").nth(2), 2, 3)]:
        place.hover()
        told, row = found.inner_text(), made.weights[0][head][query]
        assert f"“{made.tokens[query]}” gives most to “{made.key_tokens[int(np.argmax(row))]}”, {max(row):.3f};" in told
        np.testing.assert_allclose(numbers(page, "text"), row, atol=1e-6)
        page.mouse.move(0, 0)
        assert found.inner_text() == before
        place.click()
        page.mouse.move(0, 0)
        before = found.inner_text()
        assert before == told


@in_browser
def test_pointing_at_a_head_does_not_solve_the_puzzle(show: Show) -> None:
    page = show(specimen())
    heads, names = page.locator(".heads button"), page.locator(".heads em").all_inner_texts()
    heads.nth(1).hover()
    told = page.locator(".tt-found").inner_text()
    assert told.startswith(f"{NAMES[1]}: “")
    assert page.locator(".heads em").all_inner_texts() == names
    heads.nth(1).click()
    judged = page.locator(".tt-found").inner_text()
    assert judged.startswith(("Yes, ", "No: "))
    assert judged.endswith(told.split("“", 1)[1])


@in_browser
def test_the_heads_have_the_models_own_numbers_and_the_puzzle_is_not_solved_beforehand(show: Show) -> None:
    page = show(specimen())
    assert page.locator(".heads b").all_inner_texts() == NAMES
    tokens, weights = read(SENTENCES[0])
    assert page.locator(".heads").inner_text().count("→") == 1  # that of the head that is open
    for head, name in enumerate(NAMES):
        press(page, name)
        assert f"→ {tokens[int(weights[head, 2].argmax())]}" in page.locator(".heads").inner_text()
    assert f"{NAMES[1]}: " in specimen().fallback_html()
