"""What one sentence is at every station of a translator: the numbers that `BlocksExplorer.translating` shows."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from ttutor.evaluating import evaluating
from ttutor.inside import capture
from ttutor.tokenization import BOS_ID
from ttutor.translation.translator import Translator
from ttutor.translation.what_if import what_if
from ttutor.widgets.base import within

COMPONENTS = 8
"""So many numbers of a vector are shown."""
MAX_READ, MAX_WRITTEN = 9, 4
"""Tokens of the two sentences, at most."""
BEST = 3
"""So many tokens are named with their logits."""


def stations(translator: Translator, sentence: str, n_target: int) -> dict[str, Any]:
    """Run a translator on a sentence, with the beginning of its own translation, and note what stands where.

    The run is in float64, so that the numbers are the same on every machine. Attention is that of the last layer, the
    mean of its heads; a vector is told by its first numbers and its length.

    Args:
        translator: whose model runs.
        sentence: what it reads.
        n_target: how many tokens the decoder reads, the start among them.

    Raises:
        ValueError: more tokens than have room.

    Returns:
        ``tokens``, ``target`` and ``next``: what is read, what is written so far, and the best token after each;
        ``ids``: those of the first two. By the parts of `ttutor.widgets.block_parts.PARTS`: ``vectors``, for each token
        its first numbers, ``lengths``, and ``weights``, ``queries keys``. ``best``: after each target token the most
        probable ones, with logit and probability. ``norm``: where the model has its norms.
    """
    within("n_target", n_target, 1, MAX_WRITTEN, "the words stand side by side")
    model, names = deepcopy(translator.model).double(), translator.tokenizer.tokens
    found = what_if(translator, sentence)
    source, target = list(found.source), [BOS_ID, *(step.token_id for step in found.steps)][:n_target]
    within("the number of tokens that are read", len(source), 1, MAX_READ, "they stand side by side")
    last = model.config.n_layers - 1
    sums = {
        "source_add": "source_embeddings",
        "memory": "encoder",
        "decoder.feed_forward": f"decoder.layers.{last}.around_feed_forward",
    }
    looks = {
        "encoder.self_attention": f"encoder.layers.{last}.self_attention.weights",
        "decoder.self_attention": f"decoder.layers.{last}.self_attention.weights",
        "decoder.cross_attention": f"decoder.layers.{last}.cross_attention.weights",
    }
    with torch.no_grad(), evaluating(model), capture(model, *sums.values(), *looks.values()) as seen:
        logits = model(torch.tensor([source]), torch.tensor([target]))[0]
    vectors = {part: seen[name][0] for part, name in sums.items()}
    best = logits.topk(BEST, dim=-1).indices
    chances = logits.softmax(dim=-1)
    return {
        "tokens": _shown(names(source)),
        "target": _shown(names(target)),
        "next": _shown(names(best[:, 0].tolist())),
        "ids": [source, target],
        "vectors": {part: _rounded(one[:, :COMPONENTS], 2) for part, one in vectors.items()},
        "lengths": {part: _rounded(one.norm(dim=-1), 1) for part, one in vectors.items()},
        "weights": {part: _rounded(seen[name][0].mean(dim=0), 3) for part, name in looks.items()},
        "best": [
            [
                [name, round(float(logits[i, token]), 2), round(float(chances[i, token]), 3)]
                for name, token in zip(_shown(names(row.tolist())), row.tolist(), strict=True)
            ]
            for i, row in enumerate(best)
        ],
        "norm": model.config.norm,
    }


def _shown(tokens: list[str]) -> list[str]:
    """Tokens as the picture writes them: without the mark of a word's beginning, and never empty."""
    return [token.removeprefix("▁") or "▁" for token in tokens]


def _rounded(values: Tensor, decimals: int) -> list:
    return (torch.round(values, decimals=decimals) + 0.0).tolist()
