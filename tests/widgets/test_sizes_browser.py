"""The sizes explorer as a reader without a kernel meets it: every number is the accounting's, to the last digit."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.book.browser import OVERFLOW
from tests.widgets.test_sizes import ODD, specimen, without_zeros
from ttutor.transformer.costs import crossover_length
from ttutor.widgets import SizesExplorer
from ttutor.widgets.sizes import PRECISIONS, PRESETS, VIEWS

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
CARDS = {
    "parameters": "Parameters", "operations": "One forward pass",
    "running": "Memory to run", "training": "Memory to train",
}  # fmt: skip


def show(page: Page, view: str) -> None:
    page.get_by_role("radio", name=re.compile(CARDS[view])).check()


def shown(page: Page) -> dict[str, dict[str, int]]:
    """Every row of every view, exactly."""
    found = {}
    for view in VIEWS:
        show(page, view)
        rows = (
            page.get_by_role("option")
            .filter(has=page.locator(".token"))
            .evaluate_all("all => all.map((li) => [li.querySelector('.token').textContent, li.dataset.value])")
        )
        found[view] = {name.removesuffix(" · T²"): int(value) for name, value in rows}
    return found


def model(page: Page):
    return page.get_by_label("Model", exact=True)


def slide(page: Page, label: str, key: str) -> None:
    page.get_by_role("slider", name=label, exact=True).press(key)


def slid(page: Page, label: str) -> str:
    return page.get_by_role("slider", name=label, exact=True).get_attribute("aria-valuetext").replace("\u202f", "")


# ---------------------------------------------------------------- numbers


def test_numbers_of_every_published_model_are_pythons(open_saved: Open) -> None:
    page = open_saved(specimen())
    for name in PRESETS:
        model(page).select_option(name)
        assert without_zeros(shown(page)) == without_zeros(SizesExplorer(name).numbers), name


@pytest.mark.parametrize("name", ODD)
def test_numbers_of_odd_models_are_pythons(open_saved: Open, name: str) -> None:
    made = SizesExplorer(ODD[name], n_tokens=7, batch=3, precision="bf16", tiled=True)
    assert without_zeros(shown(open_saved(made))) == without_zeros(made.numbers)


@pytest.mark.parametrize("preset", ["Transformer base (2017)", "Llama 3 8B", "ViT-B/16"])
@pytest.mark.parametrize("key", ["Home", "End"])
def test_at_the_ends_of_all_sliders_numbers_are_pythons(open_saved: Open, preset: str, key: str) -> None:
    made = SizesExplorer(preset, precision="bf16")
    page = open_saved(made)
    sizes = dict(made.sizes)
    symbols = {
        "d_model": "d_model", "heads h": "h", "key/value heads h_kv": "h_kv", "d_ff": "d_ff", "layers N": "N",
        "vocabulary V": "V", "length T": "T", "batch B": "B",
    }  # fmt: skip
    there = {
        label: symbol
        for label, symbol in symbols.items()
        if page.get_by_role("slider", name=label, exact=True).is_visible()
    }
    for label in there:
        slide(page, label, key)
    sizes |= {symbol: int(slid(page, label)) for label, symbol in there.items()}
    sizes["h_kv"] = sizes["h_kv"] if "key/value heads h_kv" in there else sizes["h"]
    made.sizes = {**sizes, "d_head": sizes["d_model"] // sizes["h"]}
    assert without_zeros(shown(page)) == without_zeros(made.numbers)


def test_precision_and_tiling_change_the_memory(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    show(page, "training")
    page.get_by_label("tiled attention").check()
    for precision in PRECISIONS:
        page.get_by_role("radio", name=precision).check()
        made.precision, made.tiled = precision, True
        assert without_zeros(shown(page)) == without_zeros(made.numbers)
    assert "nobody trains in int8" in page.locator(".tt-note").inner_text()
    assert page.get_by_role("option").filter(has_text="T²").count() == 0


# ---------------------------------------------------------------- formulas


def test_the_formula_of_a_row_has_the_numbers_put_in(open_saved: Open) -> None:
    page = open_saved(specimen())
    page.get_by_role("option").filter(has_text="feed-forward").hover()
    lines = [line.replace("\u202f", "") for line in page.locator(".made").all_inner_texts()]
    count = specimen().numbers["operations"]["feed-forward"]
    assert lines == ["N × B × T × 4 × d_model × d_ff", "= 12 × 1 × 1024 × 4 × 768 × 3072", f"= {count}"]
    assert "39.8" in page.locator(".formula").inner_text()


def test_words_name_the_length_where_the_square_takes_over(open_saved: Open) -> None:
    page = open_saved(SizesExplorer("GPT-3", view="operations"))
    at = crossover_length(d_model=12_288, n_heads=96, d_head=128, d_ff=49_152)
    words = page.locator(".tt-note").inner_text().replace("\u202f", "")
    assert f"From about {at:.0f} tokens on, scores and blend cost more than the layers' matrices (output" in words


def test_the_length_that_words_name_is_that_of_the_layers_matrices(open_saved: Open) -> None:
    said = open_saved(specimen()).locator(".tt-note").inner_text()
    at = int(re.search(r"From about ([\d\u202f]+) tokens", said)[1].replace("\u202f", ""))
    for n_tokens, is_over in ((at - 1, False), (at + 1, True)):
        costs = SizesExplorer("GPT-2 small", n_tokens=n_tokens).numbers["operations"]
        assert (costs["scores and blend"] > costs["attention projections"] + costs["feed-forward"]) == is_over
    assert costs["scores and blend"] < sum(costs.values()) - costs["scores and blend"]  # with the output projection


def test_a_text_longer_than_its_positions_is_pointed_out(open_saved: Open) -> None:
    page = open_saved(specimen())
    assert "too few" not in page.locator(".tt-note").inner_text()
    slide(page, "length T", "End")
    assert "too few rows for this length" in page.locator(".tt-note").inner_text()
    assert "From about 4\u202f608 tokens on" in page.locator(".tt-note").inner_text()
    model(page).select_option("LLaMA-7B")
    slide(page, "length T", "End")
    assert "too few" not in page.locator(".tt-note").inner_text()


# ---------------------------------------------------------------- controls


def test_sizes_stay_possible_while_one_is_changed(open_saved: Open) -> None:
    page = open_saved(SizesExplorer("Llama 3 8B"))
    slide(page, "d_model", "ArrowLeft")
    assert [slid(page, label) for label in ("d_model", "heads h", "key/value heads h_kv", "d_ff")] == [
        "3072", "24", "6", "10752",
    ]  # fmt: skip
    assert page.locator("select option:checked").inner_text() == "other sizes"
    slide(page, "heads h", "Home")
    assert [slid(page, label) for label in ("heads h", "key/value heads h_kv")] == ["1", "1"]


def test_only_grouped_models_have_key_value_heads_to_choose(open_saved: Open) -> None:
    page = open_saved(specimen())
    kv_heads = page.get_by_role("slider", name="key/value heads h_kv", exact=True)
    expect(kv_heads).to_be_hidden()
    model(page).select_option("Llama 2 70B")
    expect(kv_heads).to_be_visible()
    model(page).select_option("ViT-B/16")
    expect(page.get_by_role("slider", name="vocabulary V")).to_be_hidden()


def test_reset_brings_everything_back(open_saved: Open) -> None:
    page = open_saved(specimen())
    before = page.locator("section.tt").inner_text()
    model(page).select_option("LLaMA-7B")
    show(page, "training")
    page.get_by_label("tiled attention").check()
    slide(page, "batch B", "End")
    page.get_by_role("button", name="Reset").click()
    assert page.locator("section.tt").inner_text() == before


def test_rows_are_one_tab_stop_and_arrows_move_in_them(open_saved: Open) -> None:
    page = open_saved(specimen())
    rows = page.get_by_role("option").filter(has=page.locator(".token"))
    rows.nth(0).focus()
    for key, at in [("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("ArrowUp", 0), ("ArrowUp", 0)]:
        page.keyboard.press(key)
        expect(rows.nth(at)).to_be_focused()
        expect(rows.nth(at)).to_have_attribute("aria-selected", "true")
        assert (
            rows.nth(at).locator(".token").inner_text().removesuffix(" · T²") in page.locator(".formula").inner_text()
        )
    assert page.locator('li[tabindex="0"]').count() == 1


def test_a_tap_shows_a_formula(open_saved: Open) -> None:
    page = open_saved(specimen(), width=360, touch=True)
    page.get_by_role("option").filter(has_text="output projection").tap()
    assert "2 × B × T × d_model × V" in page.locator(".formula").inner_text()


def test_changes_are_spoken(open_saved: Open) -> None:
    page = open_saved(specimen())
    slide(page, "batch B", "ArrowRight")
    expect(page.locator('[role="status"]')).to_have_text("batch B 2. One forward pass: 583\u00a0GFLOP")


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_is_wider_than_a_phone(open_saved: Open, view: str) -> None:
    page = open_saved(SizesExplorer("Llama 2 70B", view=view, n_tokens=100_000, batch=1000), width=360)
    assert page.evaluate(OVERFLOW) == []
