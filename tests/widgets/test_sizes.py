"""The sizes explorer in Python: its formulas against ttutor's accounting, its state, its fallback and its refusals."""

from __future__ import annotations

import html
import json
import re

import pytest

from tests.widgets.test_attention import Table
from ttutor.transformer import TransformerConfig, account
from ttutor.variants.bert import BERTConfig
from ttutor.variants.gpt import GPTConfig
from ttutor.variants.llama import LlamaConfig
from ttutor.variants.t5 import T5Config
from ttutor.variants.vit import ViTConfig
from ttutor.widgets import SizesExplorer
from ttutor.widgets.sizes import PRECISIONS, PRESETS

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


def state_of(explorer: SizesExplorer) -> dict:
    return json.loads(html.unescape(re.search(r'data-state="([^"]*)"', explorer.to_html())[1]))


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("n_tokens", "batch", "precision", "tiled"), [(None, 1, "fp32", False), (7, 3, "bf16", True)])
def test_every_formula_gives_what_the_accounting_counts(name, n_tokens, batch, precision, tiled) -> None:
    made = SizesExplorer(MODELS[name], n_tokens=n_tokens, batch=batch, precision=precision, tiled=tiled)
    assert without_zeros(by_formula(made)) == without_zeros(made.numbers)


@pytest.mark.parametrize("name", MODELS)
def test_the_totals_are_those_of_account(name) -> None:
    made = SizesExplorer(MODELS[name], n_tokens=9, batch=2)
    costs, found = account(MODELS[name], n_tokens=9, batch=2), by_formula(made)
    assert sum(found["parameters"].values()) == costs.n_parameters
    assert sum(found["operations"].values()) == costs.forward_flops
    assert found["running"].get("keys and values", 0) == costs.cache_bytes
    assert sum(found["training"].values()) == 2 * costs.weight_bytes + costs.adam_bytes + costs.activation_bytes


@pytest.mark.parametrize("name", MODELS)
def test_formulas_still_hold_when_all_sizes_have_changed(name) -> None:
    made = SizesExplorer(MODELS[name])
    changed = {"N": 5, "d_model": 42, "h": 6, "h_kv": 6, "d_head": 7, "d_ff": 31, "T": 8, "B": 2}
    if made.forms[made.form]["grouped"]:
        changed["h_kv"] = 2
    if made.sizes["V"]:
        changed["V"] = 23
    made.sizes = {**made.sizes, **changed}
    assert (made.config.d_model, made.config.n_layers, made.config.n_heads) == (42, 5, 6)
    assert without_zeros(by_formula(made)) == without_zeros(made.numbers)


def test_published_sizes_are_found() -> None:
    assert SizesExplorer("GPT-3").account.n_parameters == 174_604_259_328
    assert SizesExplorer("Llama 3 8B").account.n_parameters == 8_030_261_248
    assert SizesExplorer("Llama 2 70B", n_tokens=4096, precision="bf16").numbers["running"]["keys and values"] == (
        1_342_177_280
    )
    assert "keys and values" not in SizesExplorer("BERT-base").numbers["running"]


def test_models_of_one_form_share_its_formulas() -> None:
    made = SizesExplorer("GPT-2 small")
    assert {one["form"] for one in made.presets} == {"Transformer", "BERT", "GPT", "Llama", "ViT"} == set(made.forms)


# ---------------------------------------------------------------- state


def test_an_own_config_joins_the_published_ones() -> None:
    made = SizesExplorer(ODD["one group, tied"])
    assert made.presets[-1]["name"] == "your model"
    assert made.form == "Llama (tied)"
    assert len(made.presets) == len(PRESETS) + 1
    assert SizesExplorer(GPTConfig.gpt2()).presets == SizesExplorer("GPT-2 small").presets


def test_a_page_starts_from_what_was_chosen() -> None:
    state = state_of(SizesExplorer("LLaMA-7B", n_tokens=100, batch=4, precision="bf16", view="training", tiled=True))
    assert (state["sizes"]["T"], state["sizes"]["B"]) == (100, 4)
    assert [state[name] for name in ("form", "precision", "view", "tiled")] == ["Llama", "bf16", "training", True]


def test_the_fallback_has_every_number_and_its_formula() -> None:
    made = SizesExplorer("Transformer base (2017)", n_tokens=10)
    table = Table(made.fallback_html())
    assert f"{made.numbers['parameters']['attention']:,}" in table.cells["td"]
    assert "18 × N × (2 × d_model" not in table.cells["td"]
    assert any(cell.startswith("3 × N × (2 × d_model × (h + h_kv)") for cell in table.cells["td"])
    assert "parameters: 63,082,496 parameters" in table.cells["th"]


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        ("GPT-5", {}, ValueError, "no model is called 'GPT-5'; there are Transformer base"),
        (GPTConfig, {}, TypeError, "or a config .* but is GPTConfig"),
        (3, {}, TypeError, "but is int"),
        (T5Config.small(), {}, TypeError, "but is T5Config"),
        (LlamaConfig(d_head=64), {}, ValueError, "d_model / n_heads wide here, but d_head=64"),
        ("GPT-3", {"n_tokens": 0}, ValueError, "T has to be a whole number from 1"),
        ("GPT-3", {"batch": -1}, ValueError, "B has to be a whole number from 1"),
        ("GPT-3", {"batch": 10**9}, ValueError, "B has to be a whole number from 1 to 10,000,000"),
        ("GPT-3", {"precision": "fp64"}, Exception, "fp64"),
        ("GPT-3", {"view": "everything"}, Exception, "everything"),
    ],
)
def test_bad_input_is_refused_with_a_reason(model, options, error, message) -> None:
    with pytest.raises(error, match=message):
        SizesExplorer(model, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"h": 5}, "d_model must be a multiple of n_heads"),
        ({"d_head": 1}, "d_head has to be 64, not 1"),
        ({"h_kv": 4}, "h_kv has to be 12, not 4"),
        ({"N": 0}, "N has to be a whole number from 1"),
        ({"what": 4}, "sizes has to hold"),
    ],
)
def test_bad_sizes_are_refused_later_too(changes, message) -> None:
    made = SizesExplorer("GPT-2 small")
    with pytest.raises(ValueError, match=message):
        made.sizes = {**made.sizes, **changes}
    with pytest.raises(ValueError, match="form has to be one of"):
        made.form = "T5"
