"""The dependency map: which outputs move when one input is nudged, and by how much."""

import html
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import traitlets as t
from torch import Tensor, nn

from ttutor.widgets.base import Explorer, number_array, rounded_array, table_html, token_list


def influence(function: Callable[[Any], Any], inputs: Any) -> np.ndarray:
    r"""How much each output moves when each input is nudged, ``outputs inputs``: $\|\partial y_i/\partial x_j\|$.

    The number is the root mean square over all directions of a nudge of length 1 (the Frobenius norm over the root of
    the input's width), at this one point, by autograd. A zero is exact: the output did not move at all.

    Args:
        function: maps a tensor ``tokens features`` to one of as many tokens.
        inputs: ``tokens features``. A tensor keeps its dtype; a module is asked in the dtype of its parameters.

    >>> influence(lambda hidden: hidden.cumsum(dim=0), torch.zeros(3, 2)).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    parameter = next(function.parameters(), None) if isinstance(function, nn.Module) else None
    own = inputs.dtype if isinstance(inputs, Tensor) and inputs.is_floating_point() else torch.get_default_dtype()
    point = torch.tensor(number_array("inputs", inputs), dtype=own if parameter is None else parameter.dtype)
    if point.ndim != 2 or not point.numel() or not torch.isfinite(point).all():
        raise ValueError(f"inputs have to be finite numbers, tokens features, but have shape {tuple(point.shape)}")
    point.requires_grad_()
    first, again = function(point), function(point)
    if first.shape[:1] != point.shape[:1] or first.ndim != 2:
        raise ValueError(
            f"the function made {tuple(first.shape)} of inputs {tuple(point.shape)}; expected tokens features, as many "
            "tokens as came in. For a layer with a batch axis write lambda hidden: layer(hidden[None])[0]"
        )
    if not torch.equal(first, again):
        raise ValueError("the function gives other outputs for the same inputs; switch dropout off: model.eval()")
    if not first.requires_grad:
        raise ValueError("the outputs are cut off from the inputs: they have no gradient")
    blocks = torch.autograd.functional.jacobian(function, point.detach())
    if not torch.isfinite(blocks).all():
        raise ValueError("a derivative of the function is NaN or infinite; look at its outputs at these inputs")
    return (blocks.double().square().sum(dim=(1, 3)) / point.shape[1]).sqrt().numpy()


MAX_TOKENS = 16
MAX_MAPS = 8
_DIGITS = 3


class DependencyExplorer(Explorer):
    """Nudge an input token and see which outputs move.

    Above each word stands a disc as large as its output moves; dashed, it never moves. Lines go from word to word where
    the function's name says that it is recurrent, and straight from the nudged word in all others. Several functions
    can be compared. `of` measures; this constructor takes numbers that were
    measured before.

    Args:
        tokens: the labels of inputs and outputs.
        maps: for each function's name ``outputs inputs``, how much each output moves; kept to three digits.
        shown: the name of the map to begin with; the first when left out.

    >>> functions = {"running sum": lambda x: x.cumsum(0), "twice": lambda x: 2 * x}
    >>> explorer = DependencyExplorer.of(functions, [[1.0, 2.0]] * 3)
    >>> explorer
    DependencyExplorer(3 tokens, running sum of 2 maps)
    >>> explorer.moves.astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """

    _module = "dependencies"
    _title = "Dependency map"

    tokens = t.List(t.Unicode()).tag(sync=True)
    names = t.List(t.Unicode()).tag(sync=True)
    maps = t.List(t.List(t.List(t.Float()))).tag(sync=True)
    shown = t.Unicode().tag(sync=True)
    selected = t.List(t.Int()).tag(sync=True)
    total = t.Int(0).tag(sync=True)

    def __init__(self, tokens: Any, maps: Any, *, shown: str | None = None) -> None:
        words = token_list("tokens", tokens)
        if not isinstance(maps, Mapping) or not maps:
            raise ValueError('maps has to be a dict of names and tables, such as {"attention": table}')
        tables = {str(name): _checked(name, table, len(words)) for name, table in maps.items()}
        if len(words) > MAX_TOKENS:
            warnings.warn(f"{len(words)} tokens do not fit a screen; showing the first {MAX_TOKENS}", stacklevel=2)
        super().__init__(
            tokens=words[:MAX_TOKENS],
            names=list(tables),
            maps=[[row[:MAX_TOKENS] for row in table[:MAX_TOKENS]] for table in tables.values()],
            shown=next(iter(tables)) if shown is None else shown,
            total=len(words),
        )

    @classmethod
    def of(
        cls,
        functions: Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]],
        inputs: Any,
        tokens: Any = None,
        *,
        shown: str | None = None,
    ) -> "DependencyExplorer":
        """Measure functions at these inputs, see `influence`, and draw what was found.

        Args:
            functions: one function, or several by name; each maps ``tokens features`` to ``tokens features``.
            inputs: ``tokens features``; of more than 16 tokens only the first 16 are put in, with a warning.
            tokens: the labels; numbers when left out.
            shown: the name to begin with.
        """
        named = functions if isinstance(functions, Mapping) else {getattr(functions, "__name__", "function"): functions}
        n_tokens = len(inputs)
        labels = [str(i + 1) for i in range(n_tokens)] if tokens is None else token_list("tokens", tokens)
        if len(labels) != n_tokens:
            raise ValueError(f"there are {len(labels)} tokens for {n_tokens} inputs; give one label for each")
        if n_tokens > MAX_TOKENS:
            warnings.warn(f"{n_tokens} tokens do not fit a screen; the first {MAX_TOKENS} are put in", stacklevel=2)
        made = cls(
            labels[:MAX_TOKENS],
            {name: _measured(name, f, inputs[:MAX_TOKENS]) for name, f in named.items()},
            shown=shown,
        )
        made.total = n_tokens
        return made

    @property
    def strengths(self) -> np.ndarray:
        """The map that is shown, ``outputs inputs``."""
        return np.array(self.maps[self.names.index(self.shown)])

    @property
    def moves(self) -> np.ndarray:
        """Which outputs move at all, ``outputs inputs``, bool."""
        return self.strengths > 0

    def describe(self) -> str:
        return f"{len(self.tokens)} tokens, {self.shown} of {len(self.names)} map{'s' if len(self.names) > 1 else ''}"

    def fallback_html(self) -> str:
        """The map that is shown, as a table; of the others, how many pairs depend on one another."""
        rows = [
            [token, *(f"{value:.2g}" if value else "–" for value in line)]
            for token, line in zip(self.tokens, self.strengths, strict=True)
        ]
        cut = f" Only the first {len(self.tokens)} of {self.total} tokens." if self.total > len(self.tokens) else ""
        caption = (
            f"{self.shown}: how much each output (row) moves when an input (column) is nudged; – means never.{cut}"
        )
        pairs = "".join(
            f"<li>{html.escape(name)}: {int((np.array(table) > 0).sum())} of {len(self.tokens) ** 2} pairs</li>"
            for name, table in zip(self.names, self.maps, strict=True)
        )
        table = table_html(caption, ["", *self.tokens], rows)
        return f"{table}<p>Pairs in which the output moves at all:</p><ul>{pairs}</ul>"

    @t.validate("names")
    def _check_names(self, proposal: dict) -> list[str]:
        names = proposal["value"]
        if not 0 < len(names) <= MAX_MAPS or len(set(names)) < len(names):
            raise ValueError(f"there have to be 1 to {MAX_MAPS} maps with different names, not {len(names)}: {names}")
        return names

    @t.validate("shown")
    def _check_shown(self, proposal: dict) -> str:
        if proposal["value"] not in self.names:
            raise ValueError(f"no map is called {proposal['value']!r}; there are {', '.join(self.names)}")
        return proposal["value"]

    @t.validate("selected")
    def _check_selected(self, proposal: dict) -> list[int]:
        value, n = proposal["value"], len(self.tokens)
        if value and (len(value) != 2 or value[0] != -1 or not 0 <= value[1] < n):
            raise ValueError(f"selected has to be [-1, input], the input below {n}, not {value}")
        return value


def _measured(name: str, function: Callable[[Any], Any], inputs: Any) -> np.ndarray:
    """`influence`, with the function's name in what it complains of."""
    try:
        return influence(function, inputs)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _checked(name: str, table: Any, size: int) -> list[list[float]]:
    """A table of the right size without negative numbers, each kept to three digits, however small it is."""
    rounded_array(name, table, (size, size), _DIGITS, axes="outputs, inputs")
    values = number_array(name, table)
    if (values < 0).any():
        raise ValueError(f"{name} has negative numbers; expected how far an output moves, 0 or more")
    return [[_short(value) for value in row] for row in values.tolist()]


def _short(value: float) -> float:
    """Three digits that count: 0.012345 gives 0.0123."""
    return round(value, _DIGITS - 1 - math.floor(math.log10(value))) if value > 0 else 0.0
