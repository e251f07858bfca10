"""A translation with parts of the model switched off, or with a beginning that the reader chose.

What can be switched off is named by a word: ``"cross.2.1"`` is head 1 of layer 2 of cross-attention (``encoder`` and
``decoder`` are the two self-attentions), ``"encoder.0"`` and ``"decoder.0"`` are whole layers, ``"positions"``,
``"causal"`` and ``"scale"`` are the position vectors, the causal mask and the division of the scores by
$\\sqrt{d_\\mathrm{head}}$. Layers and heads are counted from 0.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ttutor.inside import ablate, capture, patch
from ttutor.tokenization import BOS_ID, EOS_ID
from ttutor.transformer import Transformer
from ttutor.translation.packed import PARTS
from ttutor.translation.translator import Translator

__all__ = ["Step", "WhatIf", "switch_names", "switched_off", "what_if"]

STACKS = ("encoder", "decoder")
GLOBAL = ("positions", "causal", "scale")
RUNNERS_UP = 5
"""So many tokens of each place are told."""
LONGEST = 40
"""Tokens of a translation that does not end by itself."""


@dataclass(frozen=True)
class Step:
    """One token of a translation: its id, its probability, and the most probable tokens in its place, best first."""

    token_id: int
    probability: float
    runners_up: tuple[tuple[int, float], ...]


@dataclass(frozen=True, eq=False)
class WhatIf:
    """A greedy translation and how it came about.

    Attributes:
        source: the token ids that were read, with the end mark.
        steps: what was written, with the end mark if it came.
        logits: of each step.
        weights: for each part of `PARTS` where it looked; a row of ``cross`` and ``decoder`` belongs to the token that
            it helped to write, and is as it was then.
    """

    source: tuple[int, ...]
    steps: tuple[Step, ...]
    logits: Float[Tensor, "steps vocab_size"]
    weights: Mapping[str, Float[Tensor, "layers heads queries keys"]]


def switch_names(model: Transformer) -> list[str]:
    """All that can be switched off in a model.

    Example:
        >>> from ttutor.transformer import TransformerConfig
        >>> model = Transformer(TransformerConfig(vocab_size=9, d_model=4, n_heads=1, n_layers=1, d_ff=8, norm="pre"))
        >>> switch_names(model)
        ['encoder.0.0', 'decoder.0.0', 'cross.0.0', 'encoder.0', 'decoder.0', 'positions', 'causal', 'scale']
    """
    layers, heads = range(model.config.n_layers), range(model.config.n_heads)
    return [
        *(f"{part}.{layer}.{head}" for part in PARTS for layer in layers for head in heads),
        *(f"{stack}.{layer}" for stack in STACKS for layer in layers),
        *GLOBAL,
    ]


@contextmanager
def switched_off(
    model: Transformer, names: Collection[str], means: Mapping[str, Float[Tensor, "layers heads d_head"]] | None = None
) -> Iterator[None]:
    """Switch parts of a model off while the context is open.

    Args:
        model: one with its norms before the sublayers, where a layer that adds nothing is a layer that is not there.
        names: what, as the module says.
        means: what stands for a head that is off; zeros when left out.

    Raises:
        ValueError: the model has no such part, or its norms stand behind the sublayers.
    """
    known = switch_names(model)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is nothing called {unknown[0]!r} to switch off; there are {', '.join(known)}")
    if model.config.norm != "pre":
        raise ValueError('parts can be switched off in models with norm="pre" alone, where a layer adds to the stream')
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(_without(model, name, means))
        yield


def _without(
    model: Transformer, name: str, means: Mapping[str, Float[Tensor, "layers heads d_head"]] | None
) -> Any:  # a context
    part, *numbers = name.split(".")
    if len(numbers) == 2:
        layer, head = map(int, numbers)
        by: Any = "zero" if means is None else means[part][layer][None, :, None]
        return ablate(model, PARTS[part].format(layer) + ".context", heads=[head], by=by)
    if numbers:
        sublayers = [f"{part}.layers.{numbers[0]}.{kind}" for kind in ("self_attention", "feed_forward")]
        sublayers += [f"decoder.layers.{numbers[0]}.cross_attention"] * (part == "decoder")
        return ablate(model, *sublayers)
    if name == "positions":
        return patch(model, {f"{side}_embeddings.position": torch.zeros_like for side in ("source", "target")})
    if name == "scale":
        return patch(model, {"**.q": lambda query: query * math.sqrt(query.shape[-1])})
    return _unmasked(model)


@contextmanager
def _unmasked(model: Transformer) -> Iterator[None]:
    """Let every written token look at all that is written."""

    def without_mask(module: nn.Module, args: tuple, options: dict) -> tuple[tuple, dict]:
        return args, options | {"mask": None}

    layers: Any = model.decoder.layers
    handles = [layer.self_attention.register_forward_pre_hook(without_mask, with_kwargs=True) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def what_if(
    translator: Translator,
    sentence: str,
    *,
    off: Collection[str] = (),
    means: Mapping[str, Float[Tensor, "layers heads d_head"]] | None = None,
    beginning: Sequence[int] = (),
    longest: int = LONGEST,
) -> WhatIf:
    """Translate by greedy search with parts of the model off and a given beginning.

    Args:
        translator: whose model.
        sentence: what to translate.
        off, means: as for `switched_off`.
        beginning: the first token ids of the translation.
        longest: where a translation that does not end by itself is cut off.
    """
    model = translator.model
    prepared = translator.style.prepare(sentence)
    ids = translator.tokenizer.encode(prepared)[: model.config.max_len - 1] if prepared else []
    source = torch.tensor([[*ids, EOS_ID]])
    sites = {part: where.format("*") + ".weights" for part, where in PARTS.items()}
    written, logits = [BOS_ID], []
    steps: list[Step] = []
    rows: dict[str, list[Tensor]] = {"decoder": [], "cross": []}
    with torch.no_grad(), switched_off(model, off, means):
        with capture(model, sites["encoder"]) as read:
            memory = model.encode(source)
        while written[-1] != EOS_ID and len(steps) < min(longest, model.config.max_len):
            with capture(model, sites["decoder"], sites["cross"]) as seen:
                hidden = model.decode(torch.tensor([written]), memory, is_real=torch.ones(1, len(written)).bool())
            for name, looked in seen.items():
                rows["cross" if "cross_attention" in name else "decoder"].append(looked[0, :, -1])
            logits.append(model.project(hidden[0, -1]))
            probabilities = logits[-1].softmax(dim=-1)
            best, tokens = probabilities.topk(RUNNERS_UP)
            chosen = beginning[len(steps)] if len(steps) < len(beginning) else int(tokens[0])
            ranked = tuple(zip(tokens.tolist(), best.tolist(), strict=True))
            steps.append(Step(chosen, float(probabilities[chosen]), ranked))
            written.append(chosen)
    weights = {"encoder": read.stack()[:, 0]} | {part: _by_layer(of_part, len(steps)) for part, of_part in rows.items()}
    return WhatIf(tuple(source[0].tolist()), tuple(steps), torch.stack(logits), weights)


def _by_layer(rows: Sequence[Tensor], n_steps: int) -> Float[Tensor, "layers heads steps keys"]:
    """The rows of all steps, each of which has one of every layer; earlier rows have fewer keys, as far as they go."""
    n_keys = rows[-1].shape[-1]
    padded = [functional.pad(row, (0, n_keys - row.shape[-1])) for row in rows]
    return rearrange(padded, "(steps layers) heads keys -> layers heads steps keys", steps=n_steps)
