"""Which step waits for which: a recurrent net and a Transformer run on the same sentence, and looked at.

Nothing here is a formula. ``ttutor``'s own cells and decoder layers are run, the autograd graph tells which of their
calls needed the result of which others, and ``count_operations`` counts the multiply-adds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor, nn

from ttutor.cache import DecoderCache
from ttutor.decoder import Decoder, DecoderLayer
from ttutor.efficient import attention_operations, count_operations, decoding_cost, efficient_attention
from ttutor.recurrence import RNNCell

Place = tuple[int, int]  # layer (-1: the tokens themselves), token


@dataclass
class Lane:
    """What one of the two did with a sentence.

    Attributes:
        waits_for: for each call of a cell or a layer (layer, token), the calls and tokens whose results it needed. A
            call for all tokens at once stands under each of its tokens.
        multiply_adds: all of them.
        between_tokens: those that bring tokens together: the recurrent product; scores (masked ones too) and sums of
            values.
        kept: numbers that have to be at hand for the next token when the last one is written; 0 in training.
    """

    waits_for: dict[Place, set[Place]]
    multiply_adds: int
    between_tokens: int = 0
    kept: int = 0

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
def measure(n_tokens: int, n_layers: int, d_model: int, generating: bool) -> dict[str, Lane]:
    """Run both on a sentence, layers stacked, and look at what happened. Tensors on the ``meta`` device: no numbers.

    Args:
        n_tokens, n_layers, d_model: sizes; the Transformer's feed-forward network is four times as wide.
        generating: whether each token is made from what stands above the one before it, or all are known.
    """
    with torch.device("meta"):
        cells = nn.ModuleList(RNNCell(d_model, d_model) for _ in range(n_layers))
        make_layer = partial(DecoderLayer, attend=efficient_attention)
        decoder = Decoder(d_model, 1, 4 * d_model, n_layers, cross_attention=False, make_layer=make_layer)
        state = torch.zeros(1, d_model)
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

    rnn, transformer = (_watch(*lane, n_tokens, d_model) for lane in ((read, cells), (decode, decoder.layers)))
    rnn.between_tokens = n_tokens * n_layers * count_operations(cells[0].from_hidden, state).multiply_adds
    if generating:
        attention = decoding_cost(n_tokens, with_cache=True, attend=efficient_attention, d_head=d_model)
        rnn.kept = n_layers * state.numel()
        transformer.kept = sum(part.numel() for layer in memory.layers for part in layer.self_attention.read())
    else:
        attention = attention_operations(efficient_attention, n_tokens, d_head=d_model)
    transformer.between_tokens = n_layers * attention.multiply_adds
    return {"rnn": rnn, "transformer": transformer}


def _watch(run: Callable[[list[Tensor]], None], layers: nn.ModuleList, n_tokens: int, d_model: int) -> Lane:
    """Run with a hook on every layer: which call needed which, and all multiply-adds."""
    tokens = [torch.zeros(1, d_model, device="meta", requires_grad=True) for _ in range(n_tokens)]
    sources = {id(token): (-1, position) for position, token in enumerate(tokens)}
    calls: dict[Any, list[Place]] = {}
    n_done = [0] * len(layers)

    def note(layer: int, _: nn.Module, __: Any, output: Any) -> None:
        made = output[0] if isinstance(output, tuple) else output.flatten(0, 1)  # a state, or one row a token
        node = made.grad_fn if isinstance(output, tuple) else output.grad_fn
        calls[node] = [(layer, n_done[layer] + i) for i in range(len(made))]
        n_done[layer] += len(made)

    handles = [module.register_forward_hook(partial(note, layer)) for layer, module in enumerate(layers)]
    multiply_adds = count_operations(run, tokens).multiply_adds
    for handle in handles:
        handle.remove()
    needed = {node: _needed(node, calls, sources) for node in calls}
    return Lane({place: needed[node] for node, places in calls.items() for place in places}, multiply_adds)


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
