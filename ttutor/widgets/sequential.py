"""Sequential or parallel: how many steps have to wait for one another in a recurrent net and in a Transformer, and who
hears whom in any network.

Ticks and hops are not formulas. ``ttutor``'s own cells and decoder layers are run, and the autograd graph tells which
of their calls needed the result of which others.
"""

import html
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import torch
import traitlets as t
from einops import rearrange
from torch import Tensor, nn

from ttutor.cache import DecoderCache
from ttutor.decoder import Decoder, DecoderLayer
from ttutor.efficient import efficient_attention
from ttutor.recurrence import RNNCell
from ttutor.widgets.base import Explorer, table_html, token_list, within
from ttutor.widgets.dependencies import MAX_TOKENS, checked_maps, measured_maps

_WIDTH = 4
Place = tuple[int, int]  # layer (-1: the tokens themselves), token


@dataclass
class Lane:
    """What one of the two did with a sentence.

    Attributes:
        waits_for: for each call of a cell or a layer (layer, token), the calls and tokens whose results it needed. A
            call for all tokens at once stands under each of its tokens.
    """

    waits_for: dict[Place, set[Place]]

    @cached_property
    def ticks(self) -> np.ndarray:
        """``layers tokens``: the step in which each call can run at the earliest, counted from 1."""
        tick: dict[Place, int] = {}
        for place, needed in self.waits_for.items():  # in the order of the calls: what is needed has run before
            tick[place] = 1 + max((tick.get(one, 0) for one in needed), default=0)
        n_layers, n_tokens = (1 + max(axis) for axis in zip(*tick, strict=True))
        return np.array([[tick[layer, token] for token in range(n_tokens)] for layer in range(n_layers)])

    @property
    def n_ticks(self) -> int:
        """Steps that have to wait for one another, from the first to the last."""
        return int(self.ticks.max())

    @property
    def at_once(self) -> int:
        """Calls in the busiest step."""
        return int(np.bincount(self.ticks.ravel()).max())

    @property
    def hops(self) -> int:
        """From token to token, on the shortest way from the first token to what stands above the last one."""
        hops: dict[Place, int] = {(-1, 0): 0}
        for place, needed in self.waits_for.items():
            ways = [hops[one] + (one[1] != place[1]) for one in needed if one in hops]
            if ways:
                hops[place] = min(ways)
        return hops[max(self.waits_for)]


@cache
def measure(n_tokens: int, n_layers: int, generating: bool) -> dict[str, Lane]:
    """Run both on a sentence, layers stacked, and look at what happened. Tensors on the ``meta`` device: no numbers.

    Args:
        n_tokens, n_layers: sizes; the width does not matter to who waits for whom.
        generating: whether each token is made from what stands above the one before it, or all are known.
    """
    with torch.device("meta"):
        cells = nn.ModuleList(RNNCell(_WIDTH, _WIDTH) for _ in range(n_layers))
        make_layer = partial(DecoderLayer, attend=efficient_attention)
        decoder = Decoder(_WIDTH, 1, _WIDTH, n_layers, cross_attention=False, make_layer=make_layer)
        state = torch.zeros(1, _WIDTH)
    memory = DecoderCache(n_layers)

    def read(tokens: list[Tensor]) -> None:
        states, above = [(state,)] * n_layers, tokens[0]
        for position, known in enumerate(tokens):
            above = above if generating and position else known
            for layer, cell in enumerate(cells):
                states[layer] = cell(above, states[layer])
                (above,) = states[layer]

    def decode(tokens: list[Tensor]) -> None:
        known = tokens[:1] if generating else tokens
        above = rearrange(known, "tokens batch features -> batch tokens features")
        for _ in tokens if generating else [None]:
            above = decoder(above, cache=memory if generating else None)

    return {
        "rnn": Lane(_watch(read, cells, n_tokens)),
        "transformer": Lane(_watch(decode, decoder.layers, n_tokens)),
    }


def _watch(run: Callable[[list[Tensor]], None], layers: nn.ModuleList, n_tokens: int) -> dict[Place, set[Place]]:
    """Run with a hook on every layer: which call needed which."""
    tokens = [torch.zeros(1, _WIDTH, device="meta", requires_grad=True) for _ in range(n_tokens)]
    sources = {id(token): (-1, position) for position, token in enumerate(tokens)}
    calls: dict[Any, list[Place]] = {}
    n_done = [0] * len(layers)

    def note(layer: int, _: nn.Module, __: Any, output: Any) -> None:
        made = output[0] if isinstance(output, tuple) else output.flatten(0, 1)  # a state, or one row a token
        node = made.grad_fn if isinstance(output, tuple) else output.grad_fn
        calls[node] = [(layer, n_done[layer] + i) for i in range(len(made))]
        n_done[layer] += len(made)

    handles = [module.register_forward_hook(partial(note, layer)) for layer, module in enumerate(layers)]
    run(tokens)
    for handle in handles:
        handle.remove()
    needed = {node: _needed(node, calls, sources) for node in calls}
    return {place: needed[node] for node, places in calls.items() for place in places}


def _needed(node: Any, calls: dict[Any, list[Place]], sources: dict[int, Place]) -> set[Place]:
    """Walk the graph back from one call's result to the results of other calls, and to the tokens."""
    found: set[Place] = set()
    seen, open_ = set(), [before for before, _ in node.next_functions]
    while open_:
        here = open_.pop()
        if here is None or here in seen:
            continue
        seen.add(here)
        if here in calls:
            found.update(calls[here])
        elif id(getattr(here, "variable", None)) in sources:
            found.add(sources[id(here.variable)])
        else:
            open_.extend(before for before, _ in here.next_functions)
    return found


LONGEST = 64
_SHOWN_IN_FALLBACK = 10


class SequentialExplorer(Explorer):
    """An RNN and a Transformer read, or write, the same sentence: what can run at once, and what has to wait.

    With ``maps`` there is a third view, hearing: nudge a word and see which words move. Above each word stands a disc
    as large as its output moves; dashed, it never moves. Lines go from word to word where the function's name says that
    it is recurrent, and straight from the nudged word in all others. `hearing_of` measures the maps.

    Args:
        tokens: the sentence, up to 64 tokens.
        n_layers: layers of either, 1 to 6.
        n_tokens: how long the sentence is made, 2 to 64: repeated or cut; as it is when left out.
        generating: whether each token has to be written before the next, or all are known, as in training.
        tick: how many steps have been made.
        maps: for each function's name ``outputs inputs``, how much each output moves; kept to three digits.
        shown: the name of the map to begin with; the first when left out.
        hearing: whether it begins with who hears whom.

    >>> explorer = SequentialExplorer("the cat sat on the mat".split(), n_layers=2)
    >>> explorer
    SequentialExplorer(6 tokens, 2 layers, training)
    >>> {name: lane.n_ticks for name, lane in explorer.measured().items()}
    {'rnn': 7, 'transformer': 2}
    >>> functions = {"running sum": lambda x: x.cumsum(0), "twice": lambda x: 2 * x}
    >>> explorer = SequentialExplorer.hearing_of(functions, [[1.0, 2.0]] * 3)
    >>> explorer
    SequentialExplorer(3 tokens, hearing, running sum of 2 maps)
    >>> explorer.moves.astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """

    _module = "sequential"
    _title = "Sequential or parallel"

    tokens = t.List(t.Unicode(), read_only=True).tag(sync=True)
    n_layers = t.Int(2, min=1, max=6, read_only=True).tag(sync=True)
    generating = t.Bool(False).tag(sync=True)
    tick = t.Int(0, min=0).tag(sync=True)
    guesses = t.List(t.Int(), [0, 0], help="how many steps the reader thinks each needs; 0: no guess").tag(sync=True)
    hearing = t.Bool(False).tag(sync=True)
    names = t.List(t.Unicode(), read_only=True).tag(sync=True)
    maps = t.List(t.List(t.List(t.Float())), read_only=True).tag(sync=True)
    shown = t.Unicode("").tag(sync=True)
    selected = t.Int(0, help="the word that is nudged").tag(sync=True)
    total = t.Int(0, read_only=True).tag(sync=True)

    def __init__(
        self,
        tokens: Any,
        *,
        n_layers: int = 2,
        n_tokens: int | None = None,
        generating: bool = False,
        tick: int = 0,
        maps: Any = None,
        shown: str | None = None,
        hearing: bool = False,
    ) -> None:
        words = token_list("tokens", tokens)
        self.set_trait("total", len(words))
        if maps is not None:
            if n_tokens not in (None, len(words)):
                raise ValueError(f"with maps n_tokens is the number of tokens, {len(words)}, not {n_tokens}")
            tables = checked_maps(maps, len(words))
            if len(words) > MAX_TOKENS:
                warnings.warn(f"{len(words)} tokens do not fit a screen; showing the first {MAX_TOKENS}", stacklevel=2)
                words = words[:MAX_TOKENS]
            self.set_trait("names", list(tables))
            self.set_trait("maps", [[row[:MAX_TOKENS] for row in table[:MAX_TOKENS]] for table in tables.values()])
            shown = self.names[0] if shown is None else shown
        length = max(len(words), 2) if n_tokens is None else n_tokens
        within("the number of tokens", length, 2, LONGEST)
        self.set_trait("tokens", [words[i % len(words)] for i in range(length)])
        self.set_trait("n_layers", n_layers)
        super().__init__(generating=generating, tick=tick, shown=shown or "", hearing=hearing)

    @classmethod
    def hearing_of(
        cls,
        functions: Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]],
        inputs: Any,
        tokens: Any = None,
        **options: Any,
    ) -> "SequentialExplorer":
        """Measure who hears whom in functions, see `ttutor.widgets.dependencies.influence`, and draw what was found.

        Args:
            functions: one function, or several by name; each maps ``tokens features`` to ``tokens features``.
            inputs: ``tokens features``; of more than 16 tokens only the first 16 are put in, with a warning.
            tokens: the labels; numbers when left out.
            **options: as for the class.
        """
        n_tokens = len(inputs)
        labels = [str(i + 1) for i in range(n_tokens)] if tokens is None else token_list("tokens", tokens)
        if len(labels) != n_tokens:
            raise ValueError(f"there are {len(labels)} tokens for {n_tokens} inputs; give one label for each")
        if n_tokens > MAX_TOKENS:
            warnings.warn(f"{n_tokens} tokens do not fit a screen; the first {MAX_TOKENS} are put in", stacklevel=2)
        maps = measured_maps(functions, inputs[:MAX_TOKENS])
        options.setdefault("hearing", True)
        made = cls(labels[:MAX_TOKENS], maps=maps, **options)
        made.set_trait("total", n_tokens)
        return made

    @property
    def strengths(self) -> np.ndarray:
        """The map that is shown, ``outputs inputs``."""
        return np.array(self.maps[self.names.index(self.shown)])

    @property
    def moves(self) -> np.ndarray:
        """Which outputs move at all, ``outputs inputs``, bool."""
        return self.strengths > 0

    def measured(self, generating: bool | None = None) -> dict[str, Lane]:
        """What the two did with a sentence of this length: ``rnn`` and ``transformer``, now or in the named mode."""
        mode = self.generating if generating is None else generating
        return measure(len(self.tokens), self.n_layers, mode)

    def describe(self) -> str:
        if self.hearing:
            maps = f"{len(self.names)} map{'s' if len(self.names) > 1 else ''}"
            return f"{len(self.tokens)} tokens, hearing, {self.shown} of {maps}"
        layers = f"{self.n_layers} layer{'s' if self.n_layers > 1 else ''}"
        return f"{len(self.tokens)} tokens, {layers}, {'generating' if self.generating else 'training'}"

    def fallback_html(self) -> str:
        """The steps in training and in generating, and the tick of each token (the first ones of many)."""
        lanes = [self.measured(mode)[name] for mode in (False, True) for name in ("rnn", "transformer")]
        rows = [
            ["Ticks in all", *(lane.n_ticks for lane in lanes)],
            ["Calls at once", *(lane.at_once for lane in lanes)],
        ]
        caption = f"An RNN and a Transformer: {len(self.tokens)} tokens, {self.n_layers} layers."
        heads = ["", "RNN, training", "Transformer, training", "RNN, generating", "Transformer, generating"]
        return table_html(caption, heads, rows) + self._schedule() + self._heard()

    def _heard(self) -> str:
        """The map that is shown, as a table; of the others, how many pairs depend on one another."""
        if not self.names:
            return ""
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

    def _schedule(self) -> str:
        """The tick of every cell, upper layers first."""
        n = min(len(self.tokens), _SHOWN_IN_FALLBACK)
        rows = [
            [f"{title}, layer {layer + 1}", *self.measured()[name].ticks[layer, :n].tolist()]
            for name, title in (("rnn", "RNN"), ("transformer", "Transformer"))
            for layer in reversed(range(self.n_layers))
        ]
        cut = f" The first {n} of {len(self.tokens)} tokens." if n < len(self.tokens) else ""
        mode = "generating" if self.generating else "training"
        return table_html(f"The tick in which each token is worked out, {mode}.{cut}", ["", *self.tokens[:n]], rows)

    @t.validate("shown")
    def _check_shown(self, proposal: dict) -> str:
        if proposal["value"] not in (self.names or [""]):
            raise ValueError(f"no map is called {proposal['value']!r}; there are {', '.join(self.names) or 'none'}")
        return proposal["value"]

    @t.validate("guesses")
    def _check_guesses(self, proposal: dict) -> list[int]:
        guesses, most = proposal["value"], self.n_layers * len(self.tokens) + 2
        if len(guesses) != 2:
            raise ValueError(f"guesses holds {len(guesses)} numbers, expected 2: of the RNN and of the Transformer")
        return [within("a guess", guess, 0, most, "the bars have no room for more") for guess in guesses]

    @t.validate("hearing")
    def _check_hearing(self, proposal: dict) -> bool:
        if proposal["value"] and not self.names:
            raise ValueError("hearing needs maps, which SequentialExplorer.hearing_of measures")
        return proposal["value"]

    @t.validate("selected")
    def _check_selected(self, proposal: dict) -> int:
        return within("selected", proposal["value"], 0, len(self.tokens) - 1, "it counts the words")
