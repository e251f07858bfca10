"""What a longer text costs: formulas, shares and every number on the page against ttutor's accounting."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.widgets.conftest import Show
from tests.widgets.figure import Table, in_browser, spoken
from ttutor.transformer import TransformerConfig, account
from ttutor.variants.bert import BERTConfig
from ttutor.variants.gpt import GPTConfig
from ttutor.variants.llama import LlamaConfig
from ttutor.variants.t5 import T5Config
from ttutor.variants.vit import ViTConfig
from ttutor.widgets import SizesExplorer
from ttutor.widgets.sizes import PRECISIONS, PRESETS, _sizes

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
    return SizesExplorer()


def extremes() -> list[SizesExplorer]:
    return [SizesExplorer("Llama 2 70B", n_tokens=131_072), SizesExplorer(ODD["smallest"], n_tokens=1)]


TAP = (".knob.pull", "purple is 13")


def value_of(formula: str, names: dict[str, int]) -> int:
    """What a formula gives: whole numbers, names, sums, products and brackets are Python's own."""
    assert re.fullmatch(r"[\w+−× ()]*", formula), formula
    return eval(formula.replace("×", "*").replace("−", "-"), {"__builtins__": {}}, names)


def by_formula(explorer: SizesExplorer) -> dict[str, dict[str, int]]:
    """Every number of the table, out of the formulas it shows."""
    rows = explorer._formulas()
    names = {**_sizes(explorer.config), "T": explorer.n_tokens, "bytes": PRECISIONS[explorer.precision].itemsize}
    names["parameters"] = sum(value_of(formula, names) for formula in rows["parameters"].values())
    return {
        view: {name: value_of(formula, names) for name, formula in of_view.items()} for view, of_view in rows.items()
    }


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("n_tokens", "precision"), [(None, "fp32"), (7, "bf16")])
def test_formulas_and_growth_give_what_the_accounting_counts(name: str, n_tokens: int | None, precision: str) -> None:
    made = SizesExplorer(MODELS[name], n_tokens=n_tokens, precision=precision)
    assert by_formula(made) == made.numbers
    counted = account(made.config, n_tokens=made.n_tokens, dtype=PRECISIONS[precision])
    assert sum(made.numbers["operations"].values()) == counted.forward_flops
    assert sum(made.numbers["parameters"].values()) == counted.n_parameters
    (facts,) = (one for one in made.models if one["name"] == made.model)
    at = made.n_tokens
    grown = [[c + b * at + a * at * at for c, b, a in view] for view in facts["growth"]]
    assert grown == [list(rows.values()) for rows in made.numbers.values()]


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
        ("GPT-3", {"n_tokens": 0}, ValueError, "n_tokens has to be from 1 to 131,072, not 0"),
        ("GPT-3", {"precision": "fp8"}, ValueError, "precision has to be one of fp32, bf16, int8, not 'fp8'"),
    ],
)
def test_bad_input_is_refused_with_a_reason(model, options, error, message) -> None:
    with pytest.raises(error, match=message):
        SizesExplorer(model, **options)


def shown(page: Page) -> list[list[float]]:
    """The numbers of the table, of each row at the length and at twice that."""
    rows = page.locator("tbody tr").evaluate_all(
        "all => all.map((row) => [...row.querySelectorAll('td')].map((cell) => +cell.dataset.value))"
    )
    return [[pytest.approx(value, rel=1e-12) for value in row] for row in rows]


def expected(made: SizesExplorer) -> list[list[int]]:
    """The same from Python: of each view the sum, and its parts, those that grow with the square first."""
    of_twice = SizesExplorer(made.model, n_tokens=2 * made.n_tokens).numbers
    rows = []
    for view, numbers in made.numbers.items():
        formulas = made._formulas()[view]
        in_order = sorted(numbers, key=lambda name: "T × T" not in formulas[name])
        both = [[numbers[name], of_twice[view][name]] for name in in_order]
        rows += [[sum(one) for one in zip(*both, strict=True)], *both]
    return rows


@in_browser
def test_numbers_of_every_published_model_are_pythons(show: Show) -> None:
    page = show(specimen())
    page.locator("summary").click()
    for name in PRESETS:
        page.get_by_label("Model", exact=True).select_option(name)
        made = SizesExplorer(name, n_tokens=1024)
        assert expected(made) == shown(page), name
        first = page.locator("tbody small").all_inner_texts()
        assert sorted(first) == sorted(one for rows in made._formulas().values() for one in rows.values())
        is_masked = "a causal mask hides" in page.locator(".tt-found").inner_text()
        assert is_masked == (name not in ("BERT-base", "ViT-B/16"))  # which look both ways


@in_browser
def test_the_ball_stands_at_the_share_of_what_grows_with_the_square(show: Show) -> None:
    page = show(specimen())
    ball = page.locator(".knob.pull")
    for key, length in (("ArrowRight", 1536), ("ArrowRight", 2048), ("ArrowLeft", 1536)):
        ball.press(key)
        work = SizesExplorer(n_tokens=length).numbers["operations"]
        share = work["scores and blend"] / sum(work.values())
        assert float(ball.get_attribute("data-value")) == pytest.approx(share, abs=1e-8)
        expect(spoken(page)).to_contain_text(f"purple is {100 * share:.0f}\u00a0% of the work")
        expect(page.locator("thead")).to_contain_text(f"{length:,}".replace(",", "\u202f"))
    low, high = (sum(SizesExplorer(n_tokens=n).numbers["operations"].values()) for n in (1536, 3072))
    expect(page.locator(".tt-found")).to_contain_text(f"{high / low:.1f} times the work")


@in_browser
def test_a_text_that_is_longer_than_the_models_positions_is_said_to_be_a_calculation(show: Show) -> None:
    page = show(specimen())
    found = page.locator(".tt-found")
    assert "ends at" not in found.inner_text()
    box, picture = page.locator(".knob.pull").bounding_box(), page.locator(".tt-picture").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(picture["x"] + picture["width"], box["y"])
    page.mouse.up()
    assert "GPT-2 small ends at 1\u202f024 positions: a longer text is a calculation only" in found.inner_text()
    assert "131\u202f072 words" in found.inner_text()


def half_of(name: str) -> int:
    """The shortest text of which at least half the work grows with its square."""
    (facts,) = (one for one in SizesExplorer(name).models if one["name"] == name)
    rows = facts["growth"][0]

    def reaches(n: int) -> bool:
        work = [c + b * n + a * n * n for c, b, a in rows]
        return 2 * sum(cost for cost, (_, _, a) in zip(work, rows, strict=True) if a) >= sum(work)

    return next(n for n in range(1, 131_073) if reaches(n))


@in_browser
def test_the_ball_can_stand_where_purple_is_half_in_every_model_and_it_is_said(show: Show) -> None:
    page = show(SizesExplorer(n_tokens=16))
    ball, found = page.locator(".knob.pull"), page.locator(".tt-found")
    for name in PRESETS:
        half = half_of(name)
        page.get_by_label("Model", exact=True).select_option(name)
        while int(ball.get_attribute("aria-valuenow") or 0) > half:
            ball.press("ArrowLeft")
        while (at := int(ball.get_attribute("aria-valuenow") or 0)) < half:
            ball.press("ArrowRight")
        assert at == half, name
        words = "patches" if name == "ViT-B/16" else "words"
        length = f"{half:,}".replace(",", "\u202f")
        assert f"Here purple is half of the work, at {length} {words}: " in found.inner_text()
    page.get_by_label("Model", exact=True).select_option("BERT-base")
    assert "Here purple is half" not in found.inner_text()


@in_browser
def test_what_is_said_of_an_image_speaks_of_patches_and_of_no_text(show: Show) -> None:
    page = show(SizesExplorer("ViT-B/16", n_tokens=4096))
    page.locator("summary").click()
    page.locator(".knob.pull").press("ArrowRight")
    said = page.locator("section.tt").inner_text() + (page.locator(".knob.pull").get_attribute("aria-label") or "")
    assert "a larger image is a calculation only" in said
    assert not re.search(r"patch[s]|\btext|long", said)


@in_browser
@pytest.mark.parametrize("width", [900, 390, 360])
def test_names_of_parts_are_clear_of_the_ball(show: Show, width: int) -> None:
    page = show(specimen(), width=width)
    ball = page.locator(".knob.pull")
    overlap = """(all, ball) => { const b = ball.getBoundingClientRect(); return all.filter((e) => {
        const r = e.getBoundingClientRect();
        return r.right > b.left && r.left < b.right && r.bottom > b.top && r.top < b.bottom; }).length; }"""
    for _ in range(8):
        names = page.locator(".part-name")
        assert names.count() >= 3
        assert names.evaluate_all(overlap, ball.element_handle()) == 0
        ball.press("ArrowRight")
