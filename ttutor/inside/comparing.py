"""Where two models that should be equal begin to differ: the first place, by how much, and the usual reasons there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ttutor.errors import InputError
from ttutor.inside.taps import find_sites, intermediates, open_taps
from ttutor.multihead import MultiHeadAttention

REASONS = {
    "input": (
        "a start token on one side only",
        "positions counted otherwise, or padding on the other side",
        "embeddings times √d_model on one side only",
    ),
    "attention": (
        "the layout of rotary halves, or their base",
        "a mask turned round, or padding that is hidden on one side only",
        "heads split or merged in another order",
    ),
    "norm": ("the norm's epsilon", "the norm before the sublayer on one side, after it on the other"),
    "feed": ("the activation: GELU is computed exactly or by a tanh",),
    "output": ("weights that are tied on one side only", "the last norm", "a factor or a cap on the logits"),
}
"""The usual reasons, by a word in the name of the place."""
WORDS = {"input": "embed wte wpe position", "attention": "attn attention", "norm": "norm ln_", "feed": "feed mlp ffn"}


@dataclass(frozen=True)
class Place:
    """One place of the first model, and the same of the second.

    Args:
        first, second: what the place is called on either side.
        difference: the largest between two numbers there; infinite where the shapes differ.
        size: the largest number there, on the first side; 0 where the shapes differ.
        shapes: of the two.
    """

    first: str
    second: str
    difference: float
    size: float
    shapes: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Args:
        places: all places that were compared, in the order in which the first model came to them.
        tolerance: the share of a place's largest number up to which a difference counts as rounding.
        reasons: the usual reasons for the first difference, those that were seen in the models first.
    """

    places: tuple[Place, ...]
    tolerance: float
    reasons: tuple[str, ...]

    @property
    def first(self) -> Place | None:
        """The first place that differs, or None."""
        return next((place for place in self.places if not is_rounding(place, self.tolerance)), None)

    def __str__(self) -> str:
        first = self.first
        if first is None:
            worst = max((place.difference / max(place.size, 1e-30) for place in self.places), default=0.0)
            return f"No difference in {len(self.places)} places: at most {worst:.1e} of the largest number there."
        before = self.places.index(first)
        name = first.first if first.first == first.second else f"{first.first} (there: {first.second})"
        shapes = f": the shapes are {first.shapes[0]} and {first.shapes[1]}"
        by = (
            shapes
            if first.difference == math.inf
            else f", by {first.difference:.2g} where the largest is {first.size:.2g}"
        )
        agree = "1 place agrees" if before == 1 else f"{before} places agree"
        lines = [f"{agree}. The first that differs is {name}{by}.", "Usual reasons there:"]
        return "\n".join([*lines, *(f"- {reason}" for reason in self.reasons)])


def is_rounding(place: Place, tolerance: float) -> bool:
    """Whether two numbers differ by no more than rounding makes them."""
    return place.difference <= tolerance * max(place.size, 1e-30)


def compare(
    first: nn.Module, second: nn.Module, *inputs: Any, tolerance: float | None = None, **named: Any
) -> Comparison:
    r"""Find the first place where two models that should be equal differ, when both read the same.

    Models with the same names of parts are compared at the output of every part, and at the queries, keys, values and
    contexts of attention. Others, such as one of `transformers` beside ours, at what goes into their first layer, at
    the output of each layer, and at the end.

    Args:
        first: a model.
        second: the model that should be equal to it.
        *inputs: what both are called with, most often ``token_ids``.
        **named: what both are called with by name.
        tolerance: the share of a place's largest number up to which a difference counts as rounding; left out,
            $\epsilon^{0.6}$ of the coarser number format, which is 7e-5 for float32.

    Raises:
        InputError: the models have no places in common, and their stacks are not equally deep.

    Example:
        >>> from copy import deepcopy
        >>> from ttutor.encoder import Encoder
        >>> encoder = Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=3).eval()
        >>> other = deepcopy(encoder)
        >>> other.layers[1].around_feed_forward.norm.eps = 0.1
        >>> print(compare(encoder, other, torch.randn(1, 5, 8)).first.first)
        layers.1.around_feed_forward.norm
    """
    one, other = _recorded(first, inputs, named), _recorded(second, inputs, named)
    pairs = list(_pairs(one, other, first, second))
    if tolerance is None:
        formats = [tensor.dtype for tensor in (*one.values(), *other.values()) if tensor.is_floating_point()]
        tolerance = max((torch.finfo(dtype).eps for dtype in formats), default=0.0) ** 0.6
    places = tuple(_place(a, b, one[a], other[b]) for a, b in pairs)
    different = Comparison(places, tolerance, ()).first
    reasons = () if different is None else tuple(_reasons(first, second, different))
    return Comparison(places, tolerance, reasons)


def _recorded(model: nn.Module, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Tensor]:
    """Every place of a run that gave a tensor, in the order in which the model came to it."""
    seen: dict[str, Tensor] = {}

    def record(name: str, value: Any) -> None:
        tensor = _tensor(value)
        if tensor is not None:
            seen.pop(name, None)  # of several calls the latest
            seen[name] = tensor.detach()

    attention = {name for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}
    names = [
        name
        for name in intermediates(model)
        if not name.endswith((".input", ".weights")) or name.endswith(".0.input")
        if not (name.rpartition(".")[2] in ("q", "k", "v", "context") and name.rpartition(".")[0] not in attention)
    ]
    sites = find_sites(model, *names)
    with torch.no_grad(), open_taps([(site, partial(record, name)) for name, site in sites.items()], edit=False):
        model(*inputs, **named)
    return seen


def _tensor(value: Any) -> Tensor | None:
    """The one tensor that matters in what a part gives: its logits, or its first tensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Mapping):
        value = [value["logits"]] if "logits" in value else list(value.values())
    if isinstance(value, (tuple, list)):
        return next((tensor for tensor in map(_tensor, value) if tensor is not None), None)
    return None


def _pairs(
    one: Mapping[str, Tensor], other: Mapping[str, Tensor], first: nn.Module, second: nn.Module
) -> Iterator[tuple[str, str]]:
    """The places that say the same: those of the same name, or the layers in their order."""
    common = [name for name in one if name in other]
    if 2 * len(common) >= min(len(one), len(other)):
        yield from ((name, name) for name in common)
        return
    ours, theirs = (_stages(model, seen) for model, seen in ((first, one), (second, other)))
    if len(ours) != len(theirs) or len(ours) < 2:
        raise InputError(
            "the models cannot be laid beside each other: their parts have other names, and the first has "
            f"{len(ours)} layers and ends, the second {len(theirs)}"
        )
    yield from zip(ours, theirs, strict=True)


def _stages(model: nn.Module, seen: Mapping[str, Tensor]) -> list[str]:
    """What goes into each stack of layers, the output of every layer, and that of the model, as far as they ran."""
    stacks = [name for name, module in model.named_modules() if isinstance(module, nn.ModuleList)]
    outer = [name for name in stacks if not any(name.startswith(f"{above}.") for above in stacks)]
    wanted = {f"{stack}.0.input" for stack in outer}
    wanted |= {f"{stack}.{index}" for stack in outer for index in range(len(model.get_submodule(stack)))}  # type: ignore[arg-type]
    return [name for name in seen if name in wanted or name == "output"]


def _place(first: str, second: str, one: Tensor, other: Tensor) -> Place:
    """Measure one place."""
    shapes = (tuple(one.shape), tuple(other.shape))
    if shapes[0] != shapes[1]:
        return Place(first, second, math.inf, 0.0, shapes)
    a, b = (tensor.to("cpu", torch.float64) for tensor in (one, other))
    if not a.numel():
        return Place(first, second, 0.0, 0.0, shapes)
    difference = float((a - b).abs().max())
    return Place(first, second, math.inf if math.isnan(difference) else difference, float(a.abs().max()), shapes)


def _reasons(first: nn.Module, second: nn.Module, place: Place) -> Iterator[str]:
    """What was seen in the models, and then what is usual at such a place."""
    if place.shapes[0] != place.shapes[1]:
        yield "one side read more tokens: a start token, or padding"
    if any(_is_dropping(module) for model in (first, second) for module in model.modules()):
        yield "a model is in training mode, so that dropout is on: call eval()"
    formats = [{parameter.dtype for parameter in model.parameters()} for model in (first, second)]
    if formats[0] != formats[1]:
        yield f"the number format: {_listed(formats[0])} and {_listed(formats[1])}"
    weights = [dict(model.named_parameters()) for model in (first, second)]
    common = [name for name in weights[0] if name in weights[1]]
    changed = [name for name in common if not _equal(weights[0][name], weights[1][name])]
    if changed:
        yield f"the weights themselves: {changed[0]}{f' and {len(changed) - 1} more' * (len(changed) > 1)}"
    epsilons = [set(_epsilons(model)) for model in (first, second)]
    if epsilons[0] != epsilons[1]:
        yield f"the norms' epsilon: {_listed(epsilons[0])} and {_listed(epsilons[1])}"
    name = place.first.lower()
    if name == "output":
        kinds = ["output"]
    elif name.endswith("input"):
        kinds = ["input"]
    else:
        kinds = [kind for kind, words in WORDS.items() if any(word in name for word in words.split())]
    for kind in kinds[-1:] or ["attention", "norm", "feed"]:
        yield from REASONS[kind]


def _is_dropping(module: nn.Module) -> bool:
    return module.training and isinstance(module, nn.Dropout) and module.p > 0


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one.detach().cpu() == other.detach().cpu()).all())


def _epsilons(model: nn.Module) -> Iterator[float]:
    """The epsilon of every norm, whatever its class calls it."""
    for module in model.modules():
        for name in ("eps", "variance_epsilon"):
            if isinstance(value := getattr(module, name, None), float):
                yield value


def _listed(things: set[Any]) -> str:
    return ", ".join(sorted(map(str, things))) or "none"
