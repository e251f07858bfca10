"""What a longer text costs a model: the shares of its work, and a table of all costs, each with its formula.

The formulas are those by which `ttutor.transformer.account` counts, with the symbols of the book put in for a model's
sizes (`ttutor.transformer.formula`).
"""

import html
from collections import Counter
from collections.abc import Callable
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
VIEWS = {
    "operations": "one forward pass",
    "parameters": "parameters",
    "running": "memory to run",
    "training": "memory to train",
}
"""What is counted, in the order of the table."""
SHORTEST, LONGEST = 16, 131_072
Family = TransformerConfig | BERTConfig | GPTConfig | LlamaConfig | ViTConfig
_CONFIG_FIELDS = {"N": "n_layers", "d_model": "d_model", "h": "n_heads", "d_ff": "d_ff"}
_UNITS = {
    "operations": "floating-point operations",
    "parameters": "parameters",
    "running": "bytes",
    "training": "bytes",
}
_KEPT = {"weights": "attention weights", "feed-forward": "inside feed-forward"}


def costs_by_view(blueprint: Blueprint, n_tokens: int, bytes_of_number: int) -> dict[str, dict[str, int]]:
    """What one sequence costs a model, by view and row, by `ttutor.transformer.account`; of formulas it makes formulas.

    Args:
        blueprint: the model.
        n_tokens: the length of the sequence, and of its source if there is one.
        bytes_of_number: how many bytes a number takes.
    """
    costs = account(blueprint, n_tokens=n_tokens, batch=1, dtype=torch.int8)  # a byte a number
    parameters: int = costs.n_parameters
    if isinstance(parameters, Formula):
        parameters = Formula.named(parameters, "parameters")
    weights = parameters * bytes_of_number
    lengths: dict[str, Any] = {"n_memory": costs.n_memory, "batch": 1, "policy": ActivationPolicy(dtype=torch.int8)}
    kept: Counter[str] = Counter()
    for stack in blueprint.stacks:
        for what, count in stack_activations(stack, costs.n_tokens, **lengths).items():
            kept[_KEPT.get(what, what)] += count if what == "masks" else count * bytes_of_number
    around = sum(activations_around(blueprint, costs.n_tokens, **lengths).values()) * bytes_of_number
    training = {"weights": weights, "gradients": weights, "Adam's two means": 2 * weights, **kept}
    return {
        "operations": costs.flops,
        "parameters": costs.parameters,
        "running": {"weights": weights, "keys and values": costs.cache_bytes * bytes_of_number},
        "training": {**training, "around the layers": around},
    }


def formulas(config: "Family") -> dict[str, dict[str, str]]:
    """The rows of each view with their formulas, in the symbols of the book; rows that are always 0 are left out."""
    named = {name: Formula.named(value, name) for name, value in _sizes(config).items()}
    counted = costs_by_view(_in_names(config.blueprint(), named), named["T"], Formula.named(4, "bytes"))
    return {
        view: {name: count.text if isinstance(count, Formula) else str(count) for name, count in rows.items() if count}
        for view, rows in counted.items()
    }


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


def growth(config: "Family", bytes_of_number: int) -> dict[str, list[list[int]]]:
    """Of each row three whole numbers c, b, a: at length T it is c + b T + a T²."""
    blueprint = config.blueprint()
    found: dict[str, list[list[int]]] = {}
    at = [costs_by_view(blueprint, n_tokens, bytes_of_number) for n_tokens in (1, 2, 3)]
    for view, rows in formulas(config).items():
        found[view] = []
        for name in rows:
            one, two, three = (costs[view].get(name, 0) for costs in at)
            square = (three - 2 * two + one) // 2
            found[view].append([one - (two - one) + 2 * square, two - one - 3 * square, square])
    return found


class SizesExplorer(Explorer):
    """What a longer text costs: the share of each part in a forward pass at every length, and all costs at one.

    In the picture the parts of a forward pass share the height, and what compares every word with every word takes more
    and more of it. The table has the operations, the parameters and the memory at the chosen length and at twice that,
    part by part with formulas. In Jupyter the traits follow what the reader does.

    Args:
        model: the name of one of ``PRESETS``, or a config of a Transformer, BERT, GPT, Llama or ViT.
        n_tokens: length of the sequence, and of its source if the model has an encoder and a decoder; the longest that
            the model was made for when left out.
        precision: what a number is stored in: ``"fp32"``, ``"bf16"`` or ``"int8"``.

    >>> explorer = SizesExplorer("GPT-2 small")
    >>> explorer
    SizesExplorer(GPT-2 small, 1,024 tokens, fp32)
    >>> explorer.numbers["parameters"]["attention"]
    28348416
    """

    _module = "sizes"
    _title = "Sizes"

    models = t.List(t.Dict()).tag(sync=True)
    forms = t.Dict().tag(sync=True)
    model = t.Unicode().tag(sync=True)
    n_tokens = t.Int(SHORTEST).tag(sync=True)
    precision = t.Enum(tuple(PRECISIONS), "fp32", read_only=True).tag(sync=True)

    def __init__(self, model: Any = "GPT-2 small", *, n_tokens: int | None = None, precision: str = "fp32") -> None:
        configs = {name: make() for name, make in PRESETS.items()}
        name, configs[name] = _chosen(model, configs)
        self._configs = configs
        size = PRECISIONS[one_of("precision", precision, PRECISIONS)].itemsize
        super().__init__(
            models=[_facts(name, config, size) for name, config in configs.items()],
            # Lists, since a page's state does not keep the order of a dict.
            forms={
                _form(config): [[view, [list(row) for row in rows.items()]] for view, rows in formulas(config).items()]
                for config in configs.values()
            },
            model=name,
            n_tokens=_sizes(configs[name])["T"] if n_tokens is None else n_tokens,
        )
        self.set_trait("precision", precision)

    @property
    def config(self) -> Family:
        """The settings of the model that is shown."""
        return self._configs[self.model]

    @property
    def account(self) -> Account:
        """What it costs by `ttutor.transformer.account`."""
        return account(self.config, n_tokens=self.n_tokens, dtype=PRECISIONS[self.precision])

    @property
    def numbers(self) -> dict[str, dict[str, int]]:
        """Every number that the table shows now, by view and row, out of ttutor's own accounting."""
        counted = costs_by_view(self.config.blueprint(), self.n_tokens, PRECISIONS[self.precision].itemsize)
        return {view: {name: counted[view].get(name, 0) for name in rows} for view, rows in self._formulas().items()}

    def _formulas(self) -> dict[str, dict[str, str]]:
        return {view: dict(rows) for view, rows in self.forms[_form(self.config)]}

    def describe(self) -> str:
        return f"{self.model}, {self.n_tokens:,} tokens, {self.precision}"

    def fallback_html(self) -> str:
        """All numbers of the chosen model as a table, each with its formula."""
        rows = []
        for view, numbers in self.numbers.items():
            heading = f"{VIEWS[view]}: {sum(numbers.values()):,} {_UNITS[view]}"
            rows.append(f'<tr><th scope="rowgroup" colspan="3">{heading}</th></tr>')
            rows += [
                f'<tr><th scope="row">{html.escape(row)}</th><td>{self._formulas()[view][row]}</td><td>{n:,}</td></tr>'
                for row, n in numbers.items()
            ]
        sizes = {**_sizes(self.config), "T": self.n_tokens}
        caption = f"{html.escape(self.describe())}. " + ", ".join(f"{key} = {n:,}" for key, n in sizes.items() if n)
        head = '<tr><th scope="col">part</th><th scope="col">formula</th><th scope="col">number</th></tr>'
        return f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"

    @t.validate("n_tokens")
    def _check_length(self, proposal: dict) -> int:
        return within("n_tokens", proposal["value"], 1, LONGEST)

    @t.validate("model")
    def _check_model(self, proposal: dict) -> str:
        return one_of("model", proposal["value"], self._configs)


def _facts(name: str, config: Family, bytes_of_number: int) -> dict[str, Any]:
    """What the page knows of a model; ``longest`` is 0 where no table of positions ends."""
    sizes = _sizes(config)
    return {
        "name": name,
        "form": _form(config),
        "word": "patch" if sizes["patch"] else "word",
        "longest": sizes["T"] if sizes["rows"] else 0,
        "causal": not isinstance(config, BERTConfig | ViTConfig),
        "sizes": [[symbol, value] for symbol, value in sizes.items() if value and symbol != "T"],
        "growth": list(growth(config, bytes_of_number).values()),
    }


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
    sizes = {**own, "h_kv": stack.n_kv_heads, "d_head": stack.d_head, "T": blueprint.n_tokens, "rows": rows}
    if isinstance(config, ViTConfig):
        return sizes | {"V": 0, "classes": config.n_classes, "patch": config.n_channels * config.patch_size**2}
    return sizes | {"V": vocab_size, "classes": 0, "patch": 0}
