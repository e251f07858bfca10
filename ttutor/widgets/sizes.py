"""The sizes of a model turned into its costs: parameters, operations and memory, each with its formula."""

import html
from typing import Any

import torch
import traitlets as t

from ttutor.configs import Config
from ttutor.transformer import Account, TransformerConfig, account
from ttutor.variants.bert import BERTConfig
from ttutor.variants.gpt import GPTConfig
from ttutor.variants.llama import LlamaConfig
from ttutor.variants.vit import ViTConfig
from ttutor.widgets.base import Explorer
from ttutor.widgets.sizes_formulas import REMARKS, SLIDERS, activations, formulas, ladder

PRESETS = {
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
_FAMILIES = (TransformerConfig, BERTConfig, GPTConfig, LlamaConfig, ViTConfig)
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

    Raises:
        TypeError: the model is neither a name nor a config.
        ValueError: there is no model of that name, or a size is out of range.

    >>> explorer = SizesExplorer("GPT-2 small")
    >>> explorer
    SizesExplorer(GPT, 12 layers, d_model 768, 1 × 1024 tokens, fp32)
    >>> explorer.numbers["parameters"]["attention"]
    28348416
    """

    _module = "sizes"
    _title = "Sizes"
    _state_keys = ("presets", "forms", "remarks", "sliders", "form", "sizes", "precision", "view", "tiled", "selected")

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
    def config(self) -> Config:
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
        costs = self.account
        running = {"weights": costs.weight_bytes, "keys and values": costs.cache_bytes}
        state = {"weights": costs.weight_bytes, "gradients": costs.weight_bytes, "Adam's two means": costs.adam_bytes}
        return {
            "parameters": {part: count for part, count in costs.parameters.items() if self._has("parameters", part)},
            "operations": costs.flops,
            "running": {row: count for row, count in running.items() if self._has("running", row)},
            "training": {**state, **activations(costs, self.tiled)},
        }

    def _has(self, view: str, row: str) -> bool:
        return row in [one["name"] for one in self.forms[self.form]["rows"][view]]

    def describe(self) -> str:
        """The family, the sizes and the precision."""
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
        wanted = set(_sizes(self._configs[self.form]))
        if set(given) != wanted:
            raise ValueError(f"sizes has to hold {', '.join(sorted(wanted))}, but holds {', '.join(sorted(given))}")
        for name, value in given.items():
            if (
                type(value) is not int
                or not (0 if name in ("rows", "V", "classes", "patch") else 1) <= value <= LARGEST
            ):
                raise ValueError(f"{name} has to be a whole number from 1 to {LARGEST:,}, not {value!r}")
        expected = {**given, **_sizes(_config(self._configs[self.form], given)), "T": given["T"], "B": given["B"]}
        wrong = [
            f"{name} has to be {expected[name]}, not {given[name]}" for name in given if given[name] != expected[name]
        ]
        if wrong:
            raise ValueError(f"in this model {'; '.join(wrong)}")
        return given

    @t.validate("form")
    def _check_form(self, proposal: dict) -> str:
        if proposal["value"] not in self._configs:
            raise ValueError(f"form has to be one of {', '.join(self._configs)}, not {proposal['value']!r}")
        return proposal["value"]


def _chosen(model: Any, configs: dict[str, Config]) -> tuple[str, Config]:
    """The model's name in the list of presets, and its config."""
    if isinstance(model, str):
        if model not in configs:
            raise ValueError(f"no model is called {model!r}; there are {', '.join(configs)}; or give a config")
        return model, configs[model]
    if not isinstance(model, _FAMILIES):
        names = ", ".join(family.__name__ for family in _FAMILIES)
        got = model.__name__ if isinstance(model, type) else type(model).__name__
        raise TypeError(f"model has to be a name, such as 'GPT-2 small', or a config ({names}), but is {got}")
    stack = model.blueprint().stacks[0]
    if stack.n_heads * stack.d_head != stack.d_model:
        raise ValueError(f"heads have to be d_model / n_heads wide here, but d_head={stack.d_head}")
    return next((name for name, config in configs.items() if config == model), "your model"), model


def _form(config: Config) -> str:
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


def _sizes(config: Config) -> dict[str, int]:
    """The numbers that the formulas are in, as they stand in a config, by their symbols."""
    blueprint = config.blueprint()
    stack, vocab_size = blueprint.stacks[0], getattr(config, "vocab_size", 0)
    rows = blueprint.further["embeddings"] // stack.d_model - vocab_size
    own = {symbol: getattr(stack, field) for symbol, field in _CONFIG_FIELDS.items()}
    sizes = {**own, "h_kv": stack.n_kv_heads, "d_head": stack.d_head, "T": blueprint.n_tokens, "B": 1, "rows": rows}
    if isinstance(config, ViTConfig):
        return sizes | {"V": 0, "classes": config.n_classes, "patch": config.n_channels * config.patch_size**2}
    return sizes | {"V": vocab_size, "classes": 0, "patch": 0}


def _config(config: Config, sizes: dict[str, int]) -> Config:
    """The config with these sizes; of positions and segments it has as many rows as they say."""
    changes = {field: sizes[symbol] for symbol, field in _CONFIG_FIELDS.items()}
    if isinstance(config, LlamaConfig):
        changes |= {"n_kv_heads": sizes["h_kv"], "d_head": None}
    if isinstance(config, ViTConfig):
        return config.replace(**changes)
    extra = config.n_segments if isinstance(config, BERTConfig) else 0
    n_tables = 2 if isinstance(config, TransformerConfig) else 1
    if sizes["rows"]:
        changes["max_len"] = (sizes["rows"] - extra) // n_tables
    return config.replace(**changes, vocab_size=sizes["V"])
