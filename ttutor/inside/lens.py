"""Read the residual stream: as logits after every layer, and as a sum to which every sublayer has added its part."""

from collections.abc import Callable
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.inside.capture import capture
from ttutor.layers import OutputNorm, PreNorm

Project = Callable[[Tensor], Tensor]


def stack_of(model: nn.Module) -> str:
    """The name of the stack of layers whose result a model projects: its last part that has a final norm."""
    stacks = [name for name, part in model.named_modules() if hasattr(part, "layers") and hasattr(part, "final_norm")]
    if not stacks:
        raise ValueError(f"{type(model).__name__} has no part with `layers` and `final_norm`, so no stream to read")
    return stacks[-1]


def residual_stream(
    model: nn.Module, *inputs: object, **options: object
) -> Float[Tensor, "streams batch tokens d_model"]:
    """The stream that enters the first layer, then the stream after each layer: one more than there are layers.

    Args:
        model: a model of ours.
        inputs, options: what the model is called with.
    """
    prefix = _prefix(model)
    with capture(model, f"{prefix}layers.0.input", f"{prefix}layers.*") as seen:
        model(*inputs, **options)
    return seen.stack()


def read_out(
    model: nn.Module,
    hidden: Float[Tensor, "... d_model"],
    *,
    project: Project | None = None,
) -> Float[Tensor, "... vocab_size"]:
    """What the model would say if this were its last stream: final norm, then projection.

    Args:
        model: a model of ours.
        hidden: streams, of any layer and token.
        project: from hidden vectors to logits, such as ``model.head`` of a masked language model or
            ``model.classifier`` of a ViT; the method ``model.project`` when left out.
    """
    return _project(model, project)(model.get_submodule(f"{_prefix(model)}final_norm")(hidden))


def logit_lens(
    model: nn.Module, *inputs: object, project: Project | None = None, **options: object
) -> Float[Tensor, "streams batch tokens vocab_size"]:
    """What the model would predict after no layer, after the first, the second, ...: the last are its own logits.

    nostalgebraist (2020), "interpreting GPT: the logit lens". The final norm and the projection were trained for the
    last stream only, so that early readings are what they happen to say about another space, not what the layer
    "thinks"; Belrose et al. (2023) train a translation for each layer instead.

    Args:
        model: a model of ours, in evaluation mode.
        inputs, options: what the model is called with.
        project: as for `read_out`.

    Example:
        >>> from ttutor.transformer import Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.tiny(vocab_size=50, n_layers=2)).eval()
        >>> inputs = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 8, 9, 7]])
        >>> readings = logit_lens(model, *inputs)
        >>> readings.shape, torch.equal(readings[-1], model(*inputs))
        (torch.Size([3, 1, 4, 50]), True)
    """
    streams = residual_stream(model, *inputs, **options)
    return torch.stack([read_out(model, stream, project=project) for stream in streams])


def residual_writes(
    model: nn.Module, *inputs: object, **options: object
) -> dict[str, Float[Tensor, "batch tokens d_model"]]:
    """What each part adds to the stream of a pre-norm model: the embeddings, then every sublayer, in order.

    They add up to the stream after the last layer: the stream is a shared memory that every sublayer reads and adds to
    (Elhage et al. 2021). A sublayer goes by the name of its residual connection.

    Raises:
        ValueError: they do not add up, since the stack has a `ttutor.layers.PostNorm`: where a norm follows the sum,
            the stream is rescaled at every sublayer and is no sum of writes.
    """
    prefix = _prefix(model)
    layers = cast(nn.ModuleList, model.get_submodule(f"{prefix}layers"))
    arounds = [
        f"{prefix}layers.{name}" for name, part in layers.named_modules() if isinstance(part, PreNorm | OutputNorm)
    ]
    first, last = f"{prefix}layers.0.input", f"{prefix}layers.{len(layers) - 1}"
    with capture(model, first, last, *(f"{name}.dropout" for name in arounds)) as seen:
        model(*inputs, **options)
    writes = {"embeddings": seen[first], **{name: seen[f"{name}.dropout"] for name in arounds}}
    if not _add_up(writes, seen[last]):
        raise ValueError(
            f"the stream of {type(model).__name__} is no sum of writes: not all residual connections are pre-norm"
        )
    return writes


def _prefix(model: nn.Module) -> str:
    """What names of parts of the stack begin with."""
    name = stack_of(model)
    return f"{name}." if name else ""


def _project(model: nn.Module, project: Project | None) -> Project:
    if project is None and not hasattr(model, "project"):
        raise ValueError(f"{type(model).__name__} has no method `project`: give what maps hidden vectors to logits")
    return cast(Project, model.project) if project is None else project


def _add_up(parts: dict[str, Tensor], whole: Tensor) -> bool:
    """Whether parts sum to the whole, to half the digits: what is asked is whether they should, not how exactly."""
    tolerance = torch.finfo(whole.dtype).eps ** 0.5 * (1 + whole.abs().max())
    return bool((torch.stack(list(parts.values())).sum(dim=0) - whole).abs().max() <= tolerance)
