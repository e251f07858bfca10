"""The formulas behind the bars of `SizesExplorer`, written from a model's blueprint in the symbols of the book.

What they give is held equal to `ttutor.transformer.account` by the tests; here they are for the reader to see. They
know whole numbers, names, `+`, `−`, `×` and brackets.
"""

from ttutor.transformer import Account
from ttutor.transformer.activations import ActivationPolicy, activation_bytes, layer_activations
from ttutor.transformer.blueprint import Blueprint, Projection, Stack

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


def formulas(blueprint: Blueprint, sizes: dict[str, int]) -> dict[str, object]:
    """The rows of each view: name, formula, what it is, and another formula for tiled attention where it differs.

    Args:
        blueprint: of a model whose stacks have the same sizes.
        sizes: the names that formulas may use, as `SizesExplorer` has them; which of them are 0 decides the form.
    """
    stacks = blueprint.stacks
    views = {
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
