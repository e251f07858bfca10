"""The sizes of a model turned into its costs: parameters, operations and memory, each with its formula.

The formulas are those by which `ttutor.transformer.account` counts, with the symbols of the book put in for a model's
sizes (`ttutor.transformer.formula`).
"""

import html
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, get_args

import torch
import traitlets as t

from ttutor.transformer import Account, TransformerConfig, account
from ttutor.transformer.activations import ActivationPolicy, activations_around, stack_activations
from ttutor.transformer.blueprint import Blueprint
from ttutor.transformer.formula import Formula
from ttutor.variants.bert import BERTConfig
from ttutor.variants.gpt import GPTConfig
from ttutor.variants.llama import LlamaConfig
from ttutor.variants.vit import ViTConfig
from ttutor.widgets.base import Explorer, one_of, within

REMARKS = {
    "embeddings": "A row for each token that can be looked up.",
    "attention": "Queries, keys, values and output: four matrices in each attention.",
    "feed-forward": "Into d_ff features and back.",
    "attention projections": "Two operations for each parameter and token.",
    "scores and blend": "Every query with every key, and every weight with every value: T × T.",
    "keys and values": "The cache: a key and a value of each token, layer and key/value head.",
    "attention weights": "One number for each pair of tokens and each head.",
    "Adam's two means": "Of each gradient and of its square.",
    "around the layers": "Embeddings, last norm and logits.",
    "masks": "Which tokens may be seen: a byte each.",
}
_KEPT = {"weights": "attention weights", "feed-forward": "inside feed-forward"}
_LONGER = "Make the text longer: purple grows with its square"
_CROSSING = "From about {} tokens on, scores and blend cost more than the layers' matrices (output projection aside)."
SLIDERS = {
    "N": ("layers N", 1, 128),
    "d_model": ("d_model", 64, 16_384),
    "h": ("heads h", 1, 0),
    "h_kv": ("key/value heads h_kv", 1, 0),
    "d_ff": ("d_ff", 64, 65_536),
    "V": ("vocabulary V", 256, 262_144),
    "T": ("length T", 16, 131_072),
    "B": ("batch B", 1, 1024),
}
"""What can be changed: its label, from where, to where; heads are always divisors."""


def ladder(low: int, high: int) -> list[int]:
    """Powers of two times the lowest and, between them, one and a half times as much."""
    found = {low * 2**k * n // 2 for k in range(18) for n in (2, 3)}
    return sorted(value for value in found if value <= high)


def costs_by_view(
    blueprint: Blueprint, sizes: Mapping[str, int], bytes_of_number: int, tiled: bool
) -> dict[str, dict[str, int]]:
    """What a model costs by view and row, by `ttutor.transformer.account`; of formulas it makes formulas.

    Args:
        blueprint: the model.
        sizes: the length ``T`` and the batch ``B``.
        bytes_of_number: how many bytes a number takes.
        tiled: whether attention keeps no weights for the backward pass.
    """
    costs = account(blueprint, n_tokens=sizes["T"], batch=sizes["B"], dtype=torch.int8)  # a byte a number
    parameters: int = costs.n_parameters
    if isinstance(parameters, Formula):
        parameters = Formula.named(parameters, "parameters")
    weights = parameters * bytes_of_number
    policy = ActivationPolicy(dtype=torch.int8, is_tiled=tiled)
    lengths: dict[str, Any] = {"n_memory": costs.n_memory, "batch": costs.batch, "policy": policy}
    kept: Counter[str] = Counter()
    for stack in blueprint.stacks:
        for what, count in stack_activations(stack, costs.n_tokens, **lengths).items():
            is_counted_in_bytes = what == "masks" or (tiled and what == "weights")
            kept[_KEPT.get(what, what)] += count if is_counted_in_bytes else count * bytes_of_number
    around = sum(activations_around(blueprint, costs.n_tokens, **lengths).values()) * bytes_of_number
    return {
        "parameters": costs.parameters,
        "operations": costs.flops,
        "running": {"weights": weights, "keys and values": costs.cache_bytes * bytes_of_number},
        "training": {
            "weights": weights,
            "gradients": weights,
            "Adam's two means": 2 * weights,
            **kept,
            "around the layers": around,
        },
    }


def formulas(blueprint: Blueprint, sizes: dict[str, int]) -> dict[str, Any]:
    """The rows of each view: name, formula, and another formula for tiled attention where it differs.

    Args:
        blueprint: of a model whose stacks have the same sizes.
        sizes: the names that formulas may use, as `SizesExplorer` has them; which of them are 0 decides the form.
    """
    named = {name: Formula.named(value, name) for name, value in sizes.items()}
    model, bytes_of_number = _in_names(blueprint, named), Formula.named(4, "bytes")
    plain, tiled = (costs_by_view(model, named, bytes_of_number, tiled) for tiled in (False, True))
    rows = {
        view: [_row(name, count, tiled[view].get(name, 0)) for name, count in counts.items() if count]
        for view, counts in plain.items()
    }
    is_grouped = blueprint.name == "Llama"
    return {"rows": rows, "looks": _looks(rows, is_grouped=is_grouped), "grouped": is_grouped}


def _row(name: str, count: int, tiled: int) -> dict[str, str]:
    formula, other = (made.text if isinstance(made, Formula) else str(made) for made in (count, tiled))
    return {"name": name, "formula": formula} | ({"tiled": other} if other != formula else {})


def _in_names(blueprint: Blueprint, named: dict[str, Formula]) -> Blueprint:
    """The same model, its sizes formulas that know their names."""
    width, d_out = named["d_model"], named["V"] or named["classes"]
    sizes = {field: named[name] for name, field in _CONFIG_FIELDS.items()}
    sizes |= {"n_distinct_layers": named["N"], "n_kv_heads": named["h_kv"], "d_head": named["d_head"]}
    projections = tuple(
        projection.replace(
            d_in=named["patch"] if projection.part == "embeddings" else width,
            d_out=d_out if projection.part == "output projection" else width,
        )
        for projection in blueprint.projections
    )
    rows = sum((named[name] for name in ("V", "rows") if named[name]), start=0)
    further = {"norms": blueprint.further.get("norms", 0) // blueprint.stacks[0].d_model * width}
    return blueprint.replace(
        stacks=tuple(stack.replace(**sizes, windows=None) for stack in blueprint.stacks),
        projections=projections,
        further={"embeddings": rows * width, **further},
    )


def _looks(rows: dict[str, list[dict[str, str]]], *, is_grouped: bool) -> dict[str, list[str]]:
    """What there is to see in each view: words, and the two formulas whose ratio stands at `{}`."""
    operations, running = ({row["name"]: row["formula"] for row in rows[view]} for view in ("operations", "running"))
    matrices = f"T × ({operations['attention projections']} + {operations['feed-forward']})"
    cache = running.get("keys and values")
    smaller = " Fewer key/value heads make it smaller, and the weights hardly." if is_grouped else ""
    return {
        "parameters": [
            "Double d_model: the layers' matrices grow fourfold, the embeddings twofold. The length T is in no formula."
        ],
        "operations": [
            f"{_LONGER}, grey in proportion. {_CROSSING}",
            matrices,
            operations["scores and blend"],
        ],
        "running": [
            "Make the text longer: the weights stay. At {} tokens in all, the cache is as large as they are." + smaller,
            f"B × T × {running['weights']}",
            cache,
        ]
        if cache
        else ["It sees all tokens at once and generates none, so it keeps no keys and values."],
        "training": [
            f"{_LONGER}. Then try tiled attention, which keeps no weights and makes them anew on the way back."
        ],
        "int8": [" Gradients do not fit into a byte: nobody trains in int8."],
        "rows": [" The table of positions has too few rows for this length."],
    }


PRESETS: dict[str, Callable[[], "Family"]] = {
    "Transformer base (2017)": TransformerConfig.base,
    "BERT-base": BERTConfig.base,
    "GPT-2 small": GPTConfig.gpt2,
    "GPT-2 large": GPTConfig.gpt2_large,
    "GPT-3": GPTConfig.gpt3,
    "LLaMA-7B": LlamaConfig.llama_7b,
    "Llama 2 70B": LlamaConfig.llama2_70b,
    "Llama 3 8B": LlamaConfig.llama3_8b,
    "ViT-B/16": ViTConfig.base,
}
"""Published models that the figure offers."""
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}
VIEWS = ("parameters", "operations", "running", "training")
LARGEST = 10_000_000
Family = TransformerConfig | BERTConfig | GPTConfig | LlamaConfig | ViTConfig
_CONFIG_FIELDS = {"N": "n_layers", "d_model": "d_model", "h": "n_heads", "d_ff": "d_ff"}
_UNITS = {
    "parameters": "parameters",
    "operations": "floating-point operations",
    "running": "bytes",
    "training": "bytes",
}


class SizesExplorer(Explorer):
    """A model's sizes to change, and what they cost: parameters, operations, memory to run and to train.

    Every bar has its formula, with the numbers put in. Start from a published model or from a config of your own; in
    Jupyter the traits follow what the reader does, and setting one from Python redraws the figure.

    Args:
        model: the name of one of ``PRESETS``, or a config of a Transformer, BERT, GPT, Llama or ViT.
        n_tokens: length of each sequence, and of its source if the model has an encoder and a decoder; the longest
            that the model was made for when left out.
        batch: how many sequences.
        precision: what a number is stored in: ``"fp32"``, ``"bf16"`` or ``"int8"``.
        view: what is shown: ``"parameters"``, ``"operations"``, ``"running"`` or ``"training"`` (both memory).
        tiled: whether attention keeps no weights for the backward pass, as FlashAttention does.

    >>> explorer = SizesExplorer("GPT-2 small")
    >>> explorer
    SizesExplorer(GPT, 12 layers, d_model 768, 1 × 1024 tokens, fp32)
    >>> explorer.numbers["parameters"]["attention"]
    28348416
    """

    _module = "sizes"
    _title = "Sizes"

    presets = t.List(t.Dict()).tag(sync=True)
    forms = t.Dict().tag(sync=True)
    remarks = t.Dict().tag(sync=True)
    sliders = t.List(t.List()).tag(sync=True)
    form = t.Unicode().tag(sync=True)
    sizes = t.Dict(value_trait=t.Int()).tag(sync=True)
    precision = t.Enum(tuple(PRECISIONS), "fp32").tag(sync=True)
    view = t.Enum(VIEWS, "parameters").tag(sync=True)
    tiled = t.Bool(False).tag(sync=True)
    selected = t.Int(1).tag(sync=True)

    def __init__(
        self,
        model: Any = "GPT-2 small",
        *,
        n_tokens: int | None = None,
        batch: int = 1,
        precision: str = "fp32",
        view: str = "parameters",
        tiled: bool = False,
    ) -> None:
        configs = {name: make() for name, make in PRESETS.items()}
        name, config = _chosen(model, configs)
        configs[name] = config
        self._configs = {_form(config): config for config in [*configs.values(), config]}
        sizes = _sizes(config)
        sizes |= {"T": sizes["T"] if n_tokens is None else n_tokens, "B": batch}
        super().__init__(
            presets=[{"name": name, "form": _form(each), "sizes": _sizes(each)} for name, each in configs.items()],
            forms={kind: formulas(each.blueprint(), _sizes(each)) for kind, each in self._configs.items()},
            sliders=[[symbol, label, ladder(*ends)] for symbol, (label, *ends) in SLIDERS.items()],
            remarks=REMARKS,
            form=_form(config),
            sizes=sizes,
            precision=precision,
            view=view,
            tiled=tiled,
        )

    @property
    def config(self) -> Family:
        """The model of the sizes as they stand."""
        return _config(self._configs[self.form], self.sizes)

    @property
    def account(self) -> Account:
        """What it costs by `ttutor.transformer.account`."""
        dtype = PRECISIONS[self.precision]
        return account(self.config, n_tokens=self.sizes["T"], batch=self.sizes["B"], dtype=dtype)

    @property
    def numbers(self) -> dict[str, dict[str, int]]:
        """Every number that the figure shows now, by view and row, out of ttutor's own accounting."""
        size = PRECISIONS[self.precision].itemsize
        views = costs_by_view(self.config.blueprint(), self.sizes, size, self.tiled)
        rows_of = self.forms[self.form]["rows"]
        return {view: {row["name"]: views[view].get(row["name"], 0) for row in rows_of[view]} for view in views}

    def describe(self) -> str:
        sizes = self.sizes
        tokens = f"{sizes['B']} × {sizes['T']} tokens"
        return f"{self.form}, {sizes['N']} layers, d_model {sizes['d_model']}, {tokens}, {self.precision}"

    def fallback_html(self) -> str:
        """All numbers of the chosen model as a table, each with its formula."""
        rows = []
        for view, numbers in self.numbers.items():
            formula_of = {row["name"]: self._formula(row) for row in self.forms[self.form]["rows"][view]}
            heading = f"{view}: {sum(numbers.values()):,} {_UNITS[view]}"
            rows.append(f'<tr><th scope="rowgroup" colspan="3">{heading}</th></tr>')
            rows += [
                f'<tr><th scope="row">{html.escape(row)}</th><td>{formula_of[row]}</td><td>{count:,}</td></tr>'
                for row, count in numbers.items()
            ]
        caption = f"{html.escape(self.describe())}. " + ", ".join(
            f"{key} = {n:,}" for key, n in self.sizes.items() if n
        )
        head = '<tr><th scope="col">part</th><th scope="col">formula</th><th scope="col">number</th></tr>'
        return f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"

    def _formula(self, row: dict[str, str]) -> str:
        return row.get("tiled", row["formula"]) if self.tiled else row["formula"]

    @t.validate("sizes")
    def _check_sizes(self, proposal: dict) -> dict[str, int]:
        given = proposal["value"]
        for name in ("T", "B"):
            within(name, given[name], 1, LARGEST)
        expected = {**given, **_sizes(_config(self._configs[self.form], given)), "T": given["T"], "B": given["B"]}
        wrong = [f"{name} has to be {n}, not {given.get(name)}" for name, n in expected.items() if given.get(name) != n]
        if wrong:
            raise ValueError(f"in this model {'; '.join(wrong)}")
        return given

    @t.validate("form")
    def _check_form(self, proposal: dict) -> str:
        return one_of("form", proposal["value"], self._configs)


def _chosen(model: Any, configs: dict[str, Family]) -> tuple[str, Family]:
    """The model's name in the list of presets, and its config."""
    if isinstance(model, str):
        if model not in configs:
            raise ValueError(f"no model is called {model!r}; there are {', '.join(configs)}; or give a config")
        return model, configs[model]
    if not isinstance(model, Family):
        names = ", ".join(family.__name__ for family in get_args(Family))
        got = model.__name__ if isinstance(model, type) else type(model).__name__
        raise TypeError(f"model has to be a name, such as 'GPT-2 small', or a config ({names}), but is {got}")
    stack = model.blueprint().stacks[0]
    if model.blueprint().name == "modern decoder":
        raise ValueError("the figure knows decoders with Llama's parts alone; ttutor.transformer.account counts others")
    if stack.n_heads * stack.d_head != stack.d_model:
        raise ValueError(f"heads have to be d_model / n_heads wide here, but d_head={stack.d_head}")
    return next((name for name, config in configs.items() if config == model), "your model"), model


def _form(config: Family) -> str:
    """What the figure calls the family; configs whose formulas differ have different names."""
    blueprint = config.blueprint()
    stack = blueprint.stacks[0]
    marks = [
        ("pre-norm", isinstance(config, TransformerConfig) and stack.norm == "pre"),
        ("no dropout", not stack.dropout and not isinstance(config, LlamaConfig | ViTConfig)),
        ("dropout", bool(stack.dropout) and isinstance(config, ViTConfig)),
        (stack.activation, isinstance(config, TransformerConfig) and stack.activation != "relu"),
        ("tied", isinstance(config, LlamaConfig) and config.tie_embeddings),
        ("untied", not getattr(config, "tie_embeddings", True) and not isinstance(config, LlamaConfig)),
        ("output bias", getattr(config, "logits_bias", False)),
    ]
    said = ", ".join(mark for mark, holds in marks if holds)
    return f"{blueprint.name} ({said})" if said else blueprint.name


def _sizes(config: Family) -> dict[str, int]:
    """The numbers that the formulas are in, as they stand in a config, by their symbols."""
    blueprint = config.blueprint()
    stack, vocab_size = blueprint.stacks[0], getattr(config, "vocab_size", 0)
    rows = blueprint.further["embeddings"] // stack.d_model - vocab_size
    own = {symbol: getattr(stack, field) for symbol, field in _CONFIG_FIELDS.items()}
    sizes = {**own, "h_kv": stack.n_kv_heads, "d_head": stack.d_head, "T": blueprint.n_tokens, "B": 1, "rows": rows}
    if isinstance(config, ViTConfig):
        return sizes | {"V": 0, "classes": config.n_classes, "patch": config.n_channels * config.patch_size**2}
    return sizes | {"V": vocab_size, "classes": 0, "patch": 0}


def _config(config: Family, sizes: dict[str, int]) -> Family:
    """The config with these sizes; of positions and segments it has as many rows as they say."""
    changes: dict[str, Any] = {field: sizes[symbol] for symbol, field in _CONFIG_FIELDS.items()}
    if isinstance(config, LlamaConfig):
        changes |= {"n_kv_heads": sizes["h_kv"], "d_head": None}
    if isinstance(config, ViTConfig):
        return config.replace(**changes)
    extra = config.n_segments if isinstance(config, BERTConfig) else 0
    n_tables = 2 if isinstance(config, TransformerConfig) else 1
    if sizes["rows"]:
        changes["max_len"] = (sizes["rows"] - extra) // n_tables
    return config.replace(**changes, vocab_size=sizes["V"])
