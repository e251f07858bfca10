"""Where an intermediate is born: its name, and the tap through which it can be seen or changed.

No model knows of any of this. A module's input and output are reached by PyTorch's hooks; what happens inside an
attention layer is reached by standing in for its attention function, the attribute ``attend``, for a while.

| name | what it is |
|---|---|
| ``decoder.layers.0.feed_forward`` | output of that submodule |
| ``decoder.layers.0.feed_forward.input`` | its first argument |
| ``decoder.layers.0.self_attention.weights`` | inside any `MultiHeadAttention`: ``q k v weights context`` by head |
| ``input``, ``output`` | those of the model itself |

In a name ``*`` stands for one part between dots and ``**`` for any number of them: ``**.weights``.
"""

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.attention import attention_weights
from ttutor.multihead import MultiHeadAttention

ATTENTION_PARTS = ("q", "k", "v", "weights", "context")

Tap = Callable[[Any], Any]


class Site(NamedTuple):
    """A module and which of its intermediates is meant: ``input``, ``output`` or one of `ATTENTION_PARTS`."""

    module: Any  # an nn.Module, whose attributes no type checker knows
    part: str


def intermediates(model: nn.Module) -> list[str]:
    """The names of all intermediates of a model.

    Example:
        >>> from ttutor.multihead import MultiHeadAttention
        >>> intermediates(MultiHeadAttention(d_model=8, n_heads=2))[:7]
        ['output', 'input', 'q', 'k', 'v', 'weights', 'context']
    """
    return list(_all_sites(model))


def find_sites(model: nn.Module, *patterns: str) -> dict[str, Site]:
    """The sites that match any of the patterns, by name, in the order of the patterns and then of the model."""
    sites = _all_sites(model)
    found: dict[str, Site] = {}
    for pattern in patterns:
        matches = _matcher(pattern)
        here = {name: site for name, site in sites.items() if matches(name)}
        if not here:
            similar = difflib.get_close_matches(pattern, sites, n=6, cutoff=0.3)
            raise ValueError(
                f"{type(model).__name__} has no intermediate {pattern!r}; "
                f"similar names: {', '.join(similar) or 'none'} "
                f"(ttutor.inside.intermediates lists all {len(sites)})"
            )
        found.update(here)
    return found


def _all_sites(model: nn.Module) -> dict[str, Site]:
    """Every site of a model; containers never run and have none, shared modules have one under each of their names."""
    sites: dict[str, Site] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, nn.ModuleList | nn.ModuleDict):
            continue
        prefix = f"{name}." if name else ""
        sites[name or "output"] = Site(module, "output")
        parts = ("input", *ATTENTION_PARTS) if isinstance(module, MultiHeadAttention) else ("input",)
        sites |= {prefix + part: Site(module, part) for part in parts}
    return sites


def _matcher(pattern: str) -> Callable[[str], re.Match[str] | None]:
    pieces = {"**.": r"(?:.*\.)?", "**": ".*", "*": r"[^.]*"}
    parts = re.split(r"(\*\*\.|\*\*|\*)", pattern)
    return re.compile("".join(pieces.get(part, re.escape(part)) for part in parts)).fullmatch


@contextmanager
def open_taps(taps: Iterable[tuple[Site, Tap]], *, edit: bool) -> Iterator[None]:
    """Send the intermediates at these sites through functions while the context is open.

    Edits give back what the model goes on with; they run in the order in which they were opened. Records run after all
    edits, so they see what the model goes on with, whichever context was opened first. Contexts may be nested and be
    closed in any order, by an exception too; after the last one the model is what it was.
    """
    with ExitStack() as stack:
        for site, function in taps:
            tapped = _TAPPED.get(site.module)
            if tapped is None:
                tapped = _TAPPED[site.module] = _TappedModule(site.module)
            functions = (tapped.edits if edit else tapped.records)[site.part]
            functions.append(function)
            stack.callback(tapped.remove, functions, function)
        yield


class _TappedModule:
    """One module with all the functions that its intermediates are sent through."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.edits: defaultdict[str, list[Tap]] = defaultdict(list)
        self.records: defaultdict[str, list[Tap]] = defaultdict(list)
        self.handles = [
            module.register_forward_pre_hook(self.on_input, with_kwargs=True),
            module.register_forward_hook(self.on_output),
        ]
        # By the module's own dictionary, so that an attention function which is itself a module can be stood in for.
        self.own = {name: value for name, value in vars(module).items() if name == "attend"}
        if isinstance(module, MultiHeadAttention):
            self.attend = module.attend
            vars(module)["attend"] = self.on_attend

    def remove(self, functions: list[Tap], function: Tap) -> None:
        """Take one function away, and with the last one everything that was put in place."""
        functions.remove(function)
        if any(self.edits.values()) or any(self.records.values()):
            return
        for handle in self.handles:
            handle.remove()
        vars(self.module).pop("attend", None)
        vars(self.module).update(self.own)
        del _TAPPED[self.module]

    def send(self, part: str, value: Any) -> Any:
        """Let all edits change a value, then show all records what came of it."""
        for edit in self.edits[part]:
            value = edit(value)
        for record in self.records[part]:
            record(value)
        return value

    def on_input(self, module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Tap the first argument of a call, named or not."""
        if args:
            return (self.send("input", args[0]), *args[1:]), kwargs
        first = next(iter(kwargs), None)
        return args, kwargs if first is None else {**kwargs, first: self.send("input", kwargs[first])}

    def on_output(self, module: nn.Module, args: tuple, output: Any) -> Any:
        return self.send("output", output)

    def on_attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Any = None, **options: Any) -> Tensor:
        """What the layer calls instead of its attention function."""
        q, k, v = self.send("q", q), self.send("k", k), self.send("v", v)
        if not (self.edits["weights"] or self.records["weights"]):
            return self.send("context", self.attend(q, k, v, mask, **options))
        dropout = options.get("dropout", 0.0)
        weights = attention_weights(q, k, mask, **{name: x for name, x in options.items() if name != "dropout"})
        context = self.attend(q, k, v, mask, **options)
        if dropout == 0.0:
            _check_that_they_are_used(weights, v, context)
        sent = self.send("weights", weights)
        return self.send("context", context if sent is weights else blend(sent, v))


_TAPPED: WeakKeyDictionary[nn.Module, _TappedModule] = WeakKeyDictionary()


def blend(
    weights: Float[Tensor, "batch heads queries keys"], v: Float[Tensor, "batch kv_heads keys d_head"]
) -> Float[Tensor, "batch heads queries d_head"]:
    """What each head takes from the values by these weights; fewer value heads serve groups of consecutive heads."""
    grouped = rearrange(
        weights, "batch (kv_heads group) queries keys -> batch kv_heads group queries keys", kv_heads=v.shape[1]
    )
    pattern = "batch kv_heads group queries keys, batch kv_heads keys d_head -> batch kv_heads group queries d_head"
    return rearrange(
        einsum(grouped, v, pattern),
        "batch kv_heads group queries d_head -> batch (kv_heads group) queries d_head",
    )


@torch.no_grad()
def _check_that_they_are_used(weights: Tensor, v: Tensor, context: Tensor) -> None:
    """Refuse weights that do not explain the context: the layer's attention function is no softmax of scores."""
    deviation = (blend(weights, v) - context).abs().max()
    allowed = torch.finfo(context.dtype).eps ** 0.5 * v.abs().max()  # half the digits: another function, not rounding
    if deviation > allowed:
        raise ValueError(
            "this layer's attention function does not use softmax weights: weights times values differ from its "
            f"context by {deviation.item():.2g}; capture q, k, v and context instead"
        )
