"""Heads side by side as a reader without a kernel meets them: numbers, pointer, keyboard, touch, screen reader."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.book.browser import OVERFLOW
from ttutor.widgets import HeadsExplorer

pytestmark = pytest.mark.browser

TOKENS = ["the", "cat", "sat", "down"]
HOSTILE = ['<img src=x onerror="window.hacked=1">', "</script><script>window.hacked=1</script>", "&lt;b&gt;"]
Open = Callable[..., Page]


def explorer(n_tokens: int = 4, **options: object) -> HeadsExplorer:
    random = np.random.default_rng(0)
    weights = random.dirichlet(np.ones(n_tokens), size=(2, 3, n_tokens))
    writes, rest = random.normal(size=(2, 3, n_tokens, 6)), 0.3 * random.normal(size=(2, n_tokens, 6))
    tokens = TOKENS if n_tokens == 4 else [f"token{i}" for i in range(n_tokens)]
    return HeadsExplorer(tokens, weights, writes=writes, rest=rest, **options)


def queries(page: Page) -> Locator:
    return page.locator(".lines button")


def shown_weights(page: Page) -> list[float]:
    return page.locator(".lines data").evaluate_all("all => all.map((one) => Number(one.dataset.value))")


def shown_parts(page: Page) -> np.ndarray:
    """Lengths and parts along the sum, in two columns; the sum is the last row."""
    return np.reshape(page.locator(".sum data").evaluate_all("all => all.map((one) => +one.dataset.value)"), (-1, 2))


def assert_python_agrees(page: Page, made: HeadsExplorer) -> None:
    np.testing.assert_allclose(shown_weights(page), made.weights[made.layer][made.head][made.query], atol=1e-6)
    found = made.write_parts()
    table = shown_parts(page)
    np.testing.assert_allclose(table[:-1, 0], found.norms * [*made.on, True], atol=1e-6)
    np.testing.assert_allclose(table[:-1, 1], found.along, atol=1e-6)
    np.testing.assert_allclose(table[-1], [found.total] * 2, atol=1e-6)
    np.testing.assert_allclose(table[:-1, 1].sum(), table[-1, 1], atol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"layer": 1, "head": 2, "query": 3}, {"layers": [1], "head": 1, "query": 2}], ids=str
)
def test_numbers_on_screen_are_pythons(open_saved: Open, options: dict) -> None:
    made = explorer(**options)
    assert_python_agrees(open_saved(made), made)


def test_heads_can_be_switched_off_and_leave_the_sum(open_saved: Open) -> None:
    made = explorer(query=1)
    page = open_saved(made)
    page.get_by_label("head 1 on").uncheck()
    made.on = [True, False, True]
    assert_python_agrees(page, made)
    expect(page.get_by_role("status")).to_have_text("Head 1 off")
    page.get_by_role("button", name="All off").click()
    made.on = [False] * 3
    assert_python_agrees(page, made)
    page.get_by_role("button", name="All on").click()
    made.on = [True] * 3
    assert_python_agrees(page, made)


def test_a_head_is_enlarged_and_reset_brings_all_back(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made)
    page.get_by_role("button", name="head 2").click()
    page.get_by_label("Layer").select_option("1")
    queries(page).nth(3).hover()
    page.get_by_label("head 0 on").uncheck()
    made.head, made.layer, made.query, made.on = 2, 1, 3, [False, True, True]
    assert_python_agrees(page, made)
    assert f"Layer 1, head 2: {made.labels[1][2]}" in page.locator("section.tt").inner_text()
    expect(page.get_by_role("button", name="head 2")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Reset").click()
    assert_python_agrees(page, explorer())


def test_scores_stand_beside_the_head(open_saved: Open) -> None:
    made = explorer(head=1)
    page = open_saved(made)
    rows = page.locator(".tt-bars li").evaluate_all(
        "all => all.map((li) => [li.firstChild.textContent, li.lastChild.textContent])"
    )
    scores = made.scores[0][1]
    assert rows == [[name, f"{score:.2f}"] for name, score in zip(made.score_names[:-1], scores[:-1], strict=True)]
    assert f"{scores[-1]:.2f} keys in effect" in page.locator(".view").inner_text()


def test_lines_are_as_thick_as_the_weights(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made)
    widths = page.locator(".lines line").evaluate_all("all => all.map((one) => +one.getAttribute('stroke-width'))")
    expected = [9 * weight for row in made.weights[0][0] for weight in row if weight >= 0.01]
    np.testing.assert_allclose(widths, expected, atol=1e-6)


def test_queries_are_one_tab_stop_and_arrows_move(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made)
    assert queries(page).evaluate_all("all => all.filter((one) => one.tabIndex === 0).length") == 1
    queries(page).nth(0).focus()
    for key, row in [
        ("ArrowDown", 1),
        ("ArrowDown", 2),
        ("ArrowUp", 1),
        ("ArrowDown", 2),
        ("ArrowDown", 3),
        ("ArrowDown", 3),
    ]:
        page.keyboard.press(key)
        expect(queries(page).nth(row)).to_be_focused()
        made.query = row
        assert_python_agrees(page, made)


def test_screen_readers_hear_where_a_query_looks_and_which_head_it_is(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made)
    row = made.weights[0][0][1]
    best = int(np.argmax(row))
    expect(queries(page).nth(1)).to_have_attribute("aria-label", f"cat attends most to {TOKENS[best]}, {row[best]:.2f}")
    page.get_by_role("button", name="head 1").click()
    expect(page.get_by_role("status")).to_have_text(f"Layer 0, head 1: {made.labels[0][1]}")


def test_a_tap_chooses_head_and_query(open_saved: Open) -> None:
    made = explorer()
    page = open_saved(made, width=360, touch=True)
    page.get_by_role("button", name="head 1").tap()
    queries(page).nth(2).tap()
    made.head, made.query = 1, 2
    assert_python_agrees(page, made)


def test_without_writes_there_is_no_sum(open_saved: Open) -> None:
    page = open_saved(HeadsExplorer(["a", "b"], np.full((2, 2, 3), 1 / 3), key_tokens=["x", "y", "z"]))
    assert page.locator(".sum").count() == 0
    assert shown_weights(page) == pytest.approx([1 / 3] * 3, abs=1e-3)
    assert page.locator(".tt-bars .token").all_inner_texts() == ["first key", "last key"]


def test_a_head_that_writes_against_the_sum_goes_back(open_saved: Open) -> None:
    writes = np.array([[[[4.0, 0.0]], [[-1.0, 0.0]]]])
    made = HeadsExplorer(["a"], np.ones((1, 2, 1, 1)), writes=writes)
    page = open_saved(made)
    assert_python_agrees(page, made)
    assert shown_parts(page)[:, 1].tolist() == [4, -1, 0, 3]
    first, second, *_ = page.locator(".sum div").evaluate_all(
        "all => all.map((one) => [one.getBoundingClientRect().left, one.getBoundingClientRect().right])"
    )
    assert second[1] == pytest.approx(first[1], abs=1)
    assert second[0] == pytest.approx(first[0] + 0.75 * (first[1] - first[0]), abs=1)


def test_hostile_tokens_stay_text(open_saved: Open) -> None:
    page = open_saved(HeadsExplorer(HOSTILE, np.full((2, 3, 3), 1 / 3), caption="<i>caption</i>"))
    queries(page).nth(1).hover()
    assert page.evaluate("window.hacked") is None
    assert queries(page).nth(1).inner_text() == HOSTILE[1]
    assert "<i>caption</i>" in page.locator("section.tt").inner_text()


@pytest.mark.filterwarnings("ignore:.*more than one figure holds")
@pytest.mark.parametrize("width", [360, 900])
@pytest.mark.parametrize("n_tokens", [1, 24, 60])
def test_nothing_is_wider_than_its_page(open_saved: Open, n_tokens: int, width: int) -> None:
    page = open_saved(explorer(n_tokens, caption="A caption."), width=width)
    assert page.evaluate(OVERFLOW) == []
    text = page.locator("section.tt").inner_text()
    assert ("60 queries" in text) == (n_tokens == 60)
    long = HeadsExplorer(["Donaudampfschifffahrtsgesellschaft", "ab"], np.full((2, 2, 2), 0.5))
    assert open_saved(long, width=width).evaluate(OVERFLOW) == []


def test_several_share_a_page(open_saved: Open) -> None:
    class Twice(HeadsExplorer):
        def to_html(self) -> str:
            return super().to_html() * 2

    page = open_saved(Twice(["a", "b"], np.full((2, 2, 2), 0.5)))
    second = page.locator(".explorer").nth(1)
    second.get_by_role("button", name="head 1").click()
    expect(second.get_by_role("status")).to_contain_text("head 1")
    expect(page.locator(".explorer").nth(0).get_by_role("button", name="head 0")).to_have_attribute(
        "aria-pressed", "true"
    )
    ids = page.locator("[id]").evaluate_all("all => all.map((one) => one.id)")
    assert len(ids) == len(set(ids))
