"""The sizes of a model turned into its costs: parameters, operations and memory, each with its formula.

The formulas are written from a model's blueprint in the symbols of the book, for the reader to see. They know whole
numbers, names, `+`, `−`, `×` and brackets, and the tests hold them equal to `ttutor.transformer.account`.
"""

import html
from collections.abc import Callable
from typing import Any, get_args

import torch
import traitlets as t

from ttutor.transformer import Account, TransformerConfig, account
from ttutor.transformer.activations import ActivationPolicy, activation_bytes, layer_activations
from ttutor.transformer.blueprint import Blueprint, Projection, Stack
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
_SQUARE = "T × T"
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


def formulas(blueprint: Blueprint, sizes: dict[str, int]) -> dict[str, Any]:
    """The rows of each view: name, formula, what it is, and another formula for tiled attention where it differs.

    Args:
        blueprint: of a model whose stacks have the same sizes.
        sizes: the names that formulas may use, as `SizesExplorer` has them; which of them are 0 decides the form.
    """
    stacks = blueprint.stacks
    views: dict[str, dict[str, Any]] = {
        "parameters": _parameters(blueprint, sizes),
        "operations": _operations(blueprint),
        "running": _running(stacks),
        "training": _training(blueprint),
    }
    return {
        "rows": {view: [_row(name, made) for name, made in rows.items()] for view, rows in views.items()},
        "looks": _looks(views, is_grouped=blueprint.name == "Llama"),
        "grouped": blueprint.name == "Llama",
    }


def _looks(views: dict[str, dict], *, is_grouped: bool) -> dict[str, list[str]]:
    """What there is to see in each view: words, and the two formulas whose ratio stands at `{}`."""
    operations, running = views["operations"], views["running"]
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


def _row(name: str, made: str | tuple[str, str]) -> dict[str, str]:
    formula, *tiled = (made,) if isinstance(made, str) else made
    row = {"name": name, "formula": formula}
    return row | ({"tiled": tiled[0]} if tiled else {})


def _times(*factors: object) -> str:
    """A product without its ones."""
    return " × ".join(str(factor) for factor in factors if factor != 1) or "1"


def _n_attentions(*stacks: Stack) -> int:
    return sum(2 if stack.cross_attention else 1 for stack in stacks)


def _parameters(blueprint: Blueprint, sizes: dict[str, int]) -> dict[str, str]:
    stacks, stack, further = blueprint.stacks, blueprint.stacks[0], blueprint.further
    rows = "rows" if not sizes["V"] else "(V + rows)" if sizes["rows"] else "V"
    bias = " + (h + 2 × h_kv) × d_head + d_model" if stack.attention_bias else ""
    n_inward = 2 if stack.gated else 1
    inner_bias = f" + {_times(n_inward, 'd_ff')} + d_model" if stack.feed_forward_bias else ""
    n_norms, n_last = _n_attentions(*stacks) + len(stacks), sum(stack.final_norm for stack in stacks)
    n_last += further.get("norms", 0) // (stack.d_model * (1 if stack.rms else 2))
    norms = f"({_times(n_norms, 'N')} + {n_last})" if n_last else _times(n_norms, "N")
    found = {
        "embeddings": f"{rows} × d_model",
        "attention": f"{_times(_n_attentions(*stacks), 'N')} × (2 × d_model × (h + h_kv) × d_head{bias})",
        "feed-forward": f"{_times(len(stacks), 'N')} × ({n_inward + 1} × d_model × d_ff{inner_bias})",
        "norms": _times(norms, 1 if stack.rms else 2, "d_model"),
    }
    for projection in blueprint.projections:
        d_in, d_out = _widths(projection, blueprint)
        terms = [*([] if projection.is_tied else [f"{d_in} × {d_out}"]), *([d_out] if projection.bias else [])]
        if terms:
            before = [found[projection.part]] if projection.part in found else []
            found[projection.part] = " + ".join(before + terms)
    return found


def _widths(projection: Projection, blueprint: Blueprint) -> tuple[str, str]:
    """A projection's two widths as symbols."""
    if projection.part == "output projection":
        return "d_model", "classes" if blueprint.name == "ViT" else "V"
    return ("patch" if projection.part == "embeddings" else "d_model"), "d_model"


def _rows(projection: Projection) -> str:
    return {"every token": "T", "first token": "1", "later tokens": "(T − 1)"}[projection.acts_on]


def _operations(blueprint: Blueprint) -> dict[str, str]:
    stacks, n_attentions = blueprint.stacks, _n_attentions(*blueprint.stacks)
    found = {
        "attention projections": _times(n_attentions, "N", "B", "T", 4, "d_model", "(h + h_kv)", "d_head"),
        "scores and blend": _times(n_attentions, "N", "B", 4, _SQUARE, "h", "d_head"),
        "feed-forward": _times(len(stacks), "N", "B", "T", 6 if stacks[0].gated else 4, "d_model", "d_ff"),
    }
    for projection in blueprint.projections:
        rows = _rows(projection)
        found[projection.part] = _times(2, "B", 1 if rows == "1" else rows, *_widths(projection, blueprint))
    return found


def _running(stacks: tuple[Stack, ...]) -> dict[str, str]:
    n_cached = sum(_n_attentions(stack) for stack in stacks if stack.is_causal)
    cache = {"keys and values": _times(n_cached, 2, "N", "B", "T", "h_kv", "d_head", "bytes")}
    return {"weights": "parameters × bytes", **(cache if n_cached else {})}


def _training(blueprint: Blueprint) -> dict[str, str | tuple[str, str]]:
    stacks, stack = blueprint.stacks, blueprint.stacks[0]
    n_attentions, n_sublayers = _n_attentions(*stacks), _n_attentions(*stacks) + len(stacks)
    beside = "1 + d_model" if stack.rms else "2"
    vectors = 4 if stack.gated else 1 if stack.activation == "relu" else 2
    found: dict[str, str | tuple[str, str]] = {
        "weights": "parameters × bytes",
        "gradients": "parameters × bytes",
        "Adam's two means": "2 × parameters × bytes",
        "norms": _times(n_sublayers, "N", "B", "T", f"(d_model + {beside})", "bytes"),
        "inputs of the sublayers": _times(n_sublayers, "N", "B", "T", "d_model", "bytes"),
        "inside feed-forward": _times(len(stacks), vectors, "N", "B", "T", "d_ff", "bytes"),
    }
    if stack.dropout:
        found["dropout"] = _times(n_sublayers, "N", "B", "T", "d_model", "bytes")
    found["queries, keys, values, context"] = (
        _times(n_attentions, "N", "B", 4, "T", "h", "d_head", "bytes"),
        _times(n_attentions, "N", "B", 2, "T", "(h + h_kv)", "d_head", "bytes"),
    )
    copies = 2 if stack.is_masked else 1
    found["attention weights"] = (
        _times(n_attentions, copies, "N", "B", "h", _SQUARE, "bytes"),
        _times(n_attentions, "N", "B", "h", "T", 4),
    )
    if stack.is_masked:
        found["masks"] = (f"N × B × ({_masks(stacks)} + {_times(n_attentions, 'h', 'T')})", "0")
    found["around the layers"] = _around(blueprint, beside)
    return found


def _masks(stacks: tuple[Stack, ...]) -> str:
    """What the masks of one layer of each stack hold: a table where it is causal, a row elsewhere."""
    n_tables = sum(stack.is_causal for stack in stacks)
    n_rows = _n_attentions(*stacks) - n_tables
    return " + ".join(_times(n, what) for n, what in ((n_tables, _SQUARE), (n_rows, "T")) if n)


def _around(blueprint: Blueprint, beside: str) -> str:
    """Last norms, memory, the embeddings' dropout, and the inputs of the projections with the log-probabilities."""
    stacks = blueprint.stacks
    n_last, n_wide = sum(stack.final_norm for stack in stacks), sum(stack.cross_attention for stack in stacks)
    n_wide += sum(stack.dropout > 0 for stack in stacks)
    terms = [_times(n_last, "T", f"(d_model + {beside})")] if n_last else []
    terms += [_times(n_wide, "T", "d_model")] if n_wide else []
    for projection in blueprint.projections:
        d_in, d_out = _widths(projection, blueprint)
        is_output = projection.part == "output projection"
        rows = _rows(projection)
        terms.append(_times(1 if rows == "1" else rows, f"({d_in} + {d_out})" if is_output else d_in))
    return f"B × bytes × ({' + '.join(terms)})"


def activations(costs: Account, tiled: bool) -> dict[str, int]:
    """What a training step keeps, by what it is, over all layers; and around them."""
    policy = ActivationPolicy(dtype=costs.dtype, is_tiled=tiled)
    kept: dict[str, int] = {}
    for stack in costs.blueprint.stacks:
        layer = layer_activations(stack, costs.n_tokens, costs.n_memory, batch=costs.batch, policy=policy)
        for what, count in layer.items():
            kept[what] = kept.get(what, 0) + stack.n_layers * count
    everything = activation_bytes(
        costs.blueprint, costs.n_tokens, costs.n_memory, batch=costs.batch, policy=policy
    ).values()
    around = sum(everything) - sum(kept.values())
    named = {_KEPT.get(what, what): count for what, count in kept.items()}
    return {**named, "around the layers": around}


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
