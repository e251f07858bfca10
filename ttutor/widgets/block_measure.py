"""Shapes and parameters of every part of a Transformer, measured on the model itself by hooks.

A model on the device ``meta`` has shapes and no numbers, so the base model of 2017 costs no memory.
"""

from functools import cache

import torch

from ttutor.attention import attention_weights
from ttutor.inside import capture
from ttutor.shapes import check_shapes
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.widgets.block_parts import PARTS

__all__ = ["axis_sizes", "build", "count_parameters", "measure_shapes"]

NORMS = ("post", "pre")


@cache
def build(config: TransformerConfig) -> Transformer:
    """A model that has shapes and no numbers."""
    with torch.device("meta"):
        return Transformer(config)


def axis_sizes(config: TransformerConfig) -> dict[str, int]:
    """The sizes that a config fixes, by the names of axes."""
    return {
        "d_model": config.d_model,
        "heads": config.n_heads,
        "d_head": config.d_model // config.n_heads,
        "d_ff": config.d_ff,
        "vocab_size": config.vocab_size,
        "max_len": config.max_len,
    }


@torch.no_grad()
def measure_shapes(model: Transformer, batch: int, source: int, target: int) -> dict[str, tuple[int, ...]]:
    """Run a model once, and give the shape of every part's output; its own parts for each attention.

    Raises:
        ShapeError: a shape has not the axes that `PARTS` says.
    """
    sites = {name: _site(part.site, model) for name, part in PARTS.items()}
    sizes = axis_sizes(model.config) | {"batch": batch, "source": source, "target": target}
    tensors = _run(model, set(sites.values()), (batch, source), (batch, target))
    shapes = {}
    for name, site in sites.items():
        # The embedding table is one module with two uses: the source's comes first.
        tensor = tensors[site][0 if name.startswith("source") else -1]
        check_shapes(sizes, **{name: (tensor, PARTS[name].axes)})
        shapes[name] = tuple(tensor.shape)
    return shapes


def count_parameters(model: Transformer) -> dict[str, int]:
    """Parameters of every part; a table that is used again counts with the part that uses it first."""
    counts: dict[str, int] = {"model": model.n_parameters()}
    embeddings = {id(parameter) for parameter in model.source_embeddings.parameters()}
    for name, part in PARTS.items():
        shared = set() if name.startswith("source") else embeddings
        parameters = model.get_submodule(part.owner).parameters() if part.owner else ()
        counts[name] = sum(parameter.numel() for parameter in parameters if id(parameter) not in shared)
    return counts


def _site(site: str | tuple[str, str], model: Transformer) -> str:
    return site if isinstance(site, str) else site[NORMS.index(model.config.norm)]


def _run(model: Transformer, names: set[str], source: tuple[int, int], target: tuple[int, int]) -> dict[str, list]:
    """What was seen at these places in one forward pass; the model is left as it was."""
    device = model.to_logits.weight.device
    ids = [torch.full(shape, (model.config.pad_id + 1) % model.config.vocab_size, device=device)
           for shape in (source, target)]  # fmt: skip
    modes = {module: module.training for module in model.modules()}
    weights = {name for name in names if name.endswith(".weights")}
    queries_and_keys = {name.removesuffix("weights") + letter for name in weights for letter in "qk"}
    try:
        with capture(model.eval(), *sorted(names - weights - {"softmax"} | queries_and_keys)) as seen:
            logits = model(*ids)
    finally:
        for module, mode in modes.items():
            module.training = mode
    tensors = {name: seen.calls(name) for name in seen} | {"softmax": [logits.softmax(dim=-1)]}
    for name in weights:  # capture would compare their numbers with the context's, and on `meta` there are none
        q, k = (tensors[name.removesuffix("weights") + letter][-1] for letter in "qk")
        tensors[name] = [attention_weights(q, k)]
    return tensors
