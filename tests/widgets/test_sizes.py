"""The sizes explorer: its formulas and every number on the page against ttutor's accounting; what it refuses."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import Table, in_browser, slide, spoken
from ttutor.transformer import TransformerConfig
from ttutor.variants.bert import BERTConfig
from ttutor.variants.gpt import GPTConfig
from ttutor.variants.llama import LlamaConfig
from ttutor.variants.t5 import T5Config
from ttutor.variants.vit import ViTConfig
from ttutor.widgets import SizesExplorer
from ttutor.widgets.sizes import PRECISIONS, PRESETS, VIEWS

ODD = {
    "smallest": GPTConfig(vocab_size=1, d_model=1, n_heads=1, n_layers=1, d_ff=1, max_len=1),
    "pre-norm, learned": TransformerConfig(vocab_size=11, d_model=12, n_heads=3, norm="pre", positions="learned"),
    "no dropout": TransformerConfig(vocab_size=11, d_model=12, n_heads=3, dropout=0.0, activation="gelu"),
    "output bias, untied": TransformerConfig(
        vocab_size=7, d_model=12, n_heads=2, logits_bias=True, tie_embeddings=False
    ),
    "no positions, untied": GPTConfig(vocab_size=11, d_model=12, n_heads=3, positions="rotary", tie_embeddings=False),
    "segments": BERTConfig(vocab_size=11, d_model=12, n_heads=3, n_segments=5, dropout=0.0),
    "one group, tied": LlamaConfig(vocab_size=11, d_model=12, n_heads=6, n_kv_heads=1, tie_embeddings=True),
    "other patches": ViTConfig(image_size=8, patch_size=4, n_classes=5, d_model=12, n_heads=3, dropout=0.1),
}


MODELS = {**{name: make() for name, make in PRESETS.items()}, **ODD}


def specimen() -> SizesExplorer:
    """The figure as the gallery shows it."""
    return SizesExplorer("GPT-2 small", view="operations")


def extremes() -> list[SizesExplorer]:
    return [SizesExplorer("Llama 2 70B", view=view, n_tokens=100_000, batch=1000) for view in VIEWS]


TAP = ("label:has-text('Memory to train')", "graphics card has 80")


def value_of(formula: str, names: dict[str, int]) -> int:
    """What a formula gives: whole numbers, names, sums, products and brackets are Python's own."""
    assert re.fullmatch(r"[\w+−× ()]*", formula), formula
    return eval(formula.replace("×", "*").replace("−", "-"), {"__builtins__": {}}, names)


def by_formula(explorer: SizesExplorer) -> dict[str, dict[str, int]]:
    """Every number of the figure, out of the formulas it shows."""
    rows = explorer.forms[explorer.form]["rows"]
    names = {**explorer.sizes, "bytes": PRECISIONS[explorer.precision].itemsize}
    names["parameters"] = sum(value_of(row["formula"], names) for row in rows["parameters"])
    return {
        view: {row["name"]: value_of(explorer._formula(row), names) for row in of_view}
        for view, of_view in rows.items()
    }


def without_zeros(numbers: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    return {view: {name: n for name, n in rows.items() if n} for view, rows in numbers.items()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("n_tokens", "batch", "precision", "tiled"), [(None, 1, "fp32", False), (7, 3, "bf16", True)])
def test_every_formula_gives_what_the_accounting_counts(name, n_tokens, batch, precision, tiled) -> None:
    made = SizesExplorer(MODELS[name], n_tokens=n_tokens, batch=batch, precision=precision, tiled=tiled)
    assert without_zeros(by_formula(made)) == without_zeros(made.numbers)


def test_published_sizes_are_found() -> None:
    assert SizesExplorer("GPT-3").account.n_parameters == 174_604_259_328
    assert SizesExplorer("Llama 3 8B").account.n_parameters == 8_030_261_248
    assert SizesExplorer("Llama 2 70B", n_tokens=4096, precision="bf16").numbers["running"]["keys and values"] == (
        1_342_177_280
    )
    assert "keys and values" not in SizesExplorer("BERT-base").numbers["running"]


def test_the_fallback_has_every_number_and_its_formula() -> None:
    made = SizesExplorer("Transformer base (2017)", n_tokens=10)
    table = Table(made.fallback_html())
    assert f"{made.numbers['parameters']['attention']:,}" in table.cells["td"]
    assert "18 × N × (2 × d_model" not in table.cells["td"]
    assert any(cell.startswith("3 × N × (2 × d_model × d_head × (h + h_kv)") for cell in table.cells["td"])
    assert "parameters: 63,082,496 parameters" in table.cells["th"]


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        ("GPT-5", {}, ValueError, "no model is called 'GPT-5'; there are Transformer base"),
        (GPTConfig, {}, TypeError, "or a config .* but is GPTConfig"),
        (T5Config.small(), {}, TypeError, "but is T5Config"),
        (LlamaConfig.mixtral_8x7b(), {}, ValueError, "decoders with Llama's parts alone"),
        (LlamaConfig(d_head=64), {}, ValueError, "d_model / n_heads wide here, but d_head=64"),
        ("GPT-3", {"n_tokens": 0}, ValueError, "T has to be from 1 to 10,000,000, not 0"),
    ],
)
def test_bad_input_is_refused_with_a_reason(model, options, error, message) -> None:
    with pytest.raises(error, match=message):
        SizesExplorer(model, **options)


CARDS = {
    "parameters": "Parameters", "operations": "One forward pass",
    "running": "Memory to run", "training": "Memory to train",
}  # fmt: skip


def unfold(page: Page) -> None:
    for summary in page.locator("summary").all():
        summary.click()


def view(page: Page, name: str) -> None:
    page.get_by_role("radio", name=re.compile(CARDS[name])).check()


def shown(page: Page) -> dict[str, dict[str, int]]:
    """Every row of every view, exactly."""
    found = {}
    for one in VIEWS:
        view(page, one)
        rows = (
            page.get_by_role("option")
            .filter(has=page.locator(".token"))
            .evaluate_all("all => all.map((li) => [li.querySelector('.token').textContent, li.dataset.value])")
        )
        found[one] = {name.removesuffix(" · T²"): int(value) for name, value in rows}
    return found


def model(page: Page):
    return page.get_by_label("Model", exact=True)


def slid(page: Page, label: str) -> str:
    return page.get_by_role("slider", name=label, exact=True).get_attribute("aria-valuetext").replace("\u202f", "")


@in_browser
def test_numbers_of_every_published_model_are_pythons(show: Show) -> None:
    page = show(specimen())
    for name in list(PRESETS)[::2]:
        model(page).select_option(name)
        assert without_zeros(shown(page)) == without_zeros(SizesExplorer(name).numbers), name


@in_browser
@pytest.mark.parametrize("name", ["GPT-2 small", "ViT-B/16"])
def test_what_is_grey_grows_at_most_twofold_and_purple_more(name: str, show: Show) -> None:
    page = show(SizesExplorer(name))
    both = [SizesExplorer("GPT-2 small", n_tokens=n).numbers["training"] for n in (1024, 2048)]
    for kind in ("operations", "training"):
        view(page, kind)
        found = page.locator(".tt-found").inner_text()
        assert f"four times, because every {'patch' if name.startswith('ViT') else 'word'} meets" in found
        if name == "GPT-2 small" and kind == "training":
            growth = {row: both[1][row] / both[0][row] for row in both[0]}
            for row, times in growth.items():
                bar = page.locator("li", has=page.get_by_text(row, exact=True)).locator(".tt-bar")
                assert ("--tt-weights)" in bar.evaluate("e => e.style.getPropertyValue('--c')")) == (times > 3), row
            assert "up to four" in found


@in_browser
def test_precision_and_tiling_change_the_memory_and_changes_are_spoken(show: Show) -> None:
    made = specimen()
    page = show(made)
    unfold(page)
    slide(page, "batch B", "ArrowRight")
    expect(spoken(page)).to_contain_text("Twice the length")
    slide(page, "batch B", "ArrowLeft")
    view(page, "training")
    page.get_by_label("tiled attention").check()
    for precision in PRECISIONS:
        page.get_by_role("radio", name=precision).check()
        made.precision, made.tiled = precision, True
        assert without_zeros(shown(page)) == without_zeros(made.numbers)
    assert "nobody trains in int8" in page.locator("details .tt-note").inner_text()
    kv_heads = page.get_by_role("slider", name="key/value heads h_kv")
    expect(kv_heads).to_be_hidden()
    model(page).select_option("Llama 2 70B")
    expect(kv_heads).to_be_visible()


@in_browser
@pytest.mark.parametrize("key", ["Home", "End"])
def test_at_the_ends_of_all_sliders_numbers_are_pythons(show: Show, key: str) -> None:
    made = SizesExplorer("Llama 3 8B", precision="bf16")
    page = show(made)
    unfold(page)
    symbols = {
        "d_model": "d_model", "heads h": "h", "key/value heads h_kv": "h_kv", "d_ff": "d_ff", "layers N": "N",
        "vocabulary V": "V", "length T": "T", "batch B": "B",
    }  # fmt: skip
    there = [label for label in symbols if page.get_by_role("slider", name=label, exact=True).is_visible()]
    slid_to = {}
    for label in there:
        slide(page, label, key)
    for label in there:
        slid_to[symbols[label]] = int(slid(page, label))
    sizes = {**made.sizes, **slid_to}
    sizes["h_kv"] = slid_to.get("h_kv", sizes["h"])
    made.sizes = {**sizes, "d_head": sizes["d_model"] // sizes["h"]}
    assert without_zeros(shown(page)) == without_zeros(made.numbers)


@in_browser
def test_the_formula_of_a_row_has_the_numbers_put_in(show: Show) -> None:
    page = show(specimen())
    unfold(page)
    page.get_by_role("option").filter(has_text="feed-forward").click()
    lines = [line.replace("\u202f", "") for line in page.locator(".made").all_inner_texts()]
    count = specimen().numbers["operations"]["feed-forward"]
    assert lines == ["4 × B × N × T × d_model × d_ff", "= 4 × 1 × 12 × 1024 × 768 × 3072", f"= {count}"]
    assert "39.8" in page.locator(".formula").inner_text()


@in_browser
def test_a_text_that_is_longer_than_the_models_positions_is_said_to_be_a_calculation(show: Show) -> None:
    page = show(specimen())
    found = page.locator(".tt-found")
    assert "ends at" not in found.inner_text()
    slide(page, "length T", "End")
    assert "ends at 1\u202f024 positions: longer texts are a calculation only" in found.inner_text()
