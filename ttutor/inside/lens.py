"""Read the residual stream: as logits after every layer, and as a sum to which every sublayer has added its part."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.inside.capture import capture
from ttutor.layers import LayerNorm, PreNorm, RMSNorm
from ttutor.shapes import check_shapes

__all__ = ["logit_attribution", "logit_lens", "read_out", "residual_stream", "residual_writes", "stack_of"]

Project = Callable[[Tensor], Tensor]


def stack_of(model: nn.Module) -> str:
    """The name of the stack of layers whose result a model projects: its last part that has a final norm.

    Example:
        >>> from ttutor.transformer import Transformer, TransformerConfig
        >>> stack_of(Transformer(TransformerConfig.tiny(vocab_size=50)))
        'decoder'
    """
    stacks = [name for name, part in model.named_modules() if hasattr(part, "layers") and hasattr(part, "final_norm")]
    if not stacks:
        raise ValueError(f"{type(model).__name__} has no part with `layers` and `final_norm`, so no stream to read")
    return stacks[-1]


def residual_stream(
    model: nn.Module, *inputs: object, stack: str | None = None, **options: object
) -> Float[Tensor, "streams batch tokens d_model"]:
    """The stream that enters the first layer, then the stream after each layer: one more than there are layers.

    Args:
        model: a model of ours.
        inputs, options: what the model is called with.
        stack: name of the stack, such as ``"encoder"``; found by `stack_of` when left out.
    """
    prefix = _prefix(model, stack)
    with capture(model, f"{prefix}layers.0.input", f"{prefix}layers.*") as seen:
        model(*inputs, **options)
    return seen.stack()


def read_out(
    model: nn.Module,
    hidden: Float[Tensor, "... d_model"],
    *,
    stack: str | None = None,
    project: Project | None = None,
) -> Float[Tensor, "... vocab_size"]:
    """What the model would say if this were its last stream: final norm, then projection.

    Args:
        model: a model of ours.
        hidden: streams, of any layer and token.
        stack: name of the stack; found by `stack_of` when left out.
        project: from hidden vectors to logits, such as ``model.head`` of a masked language model or
            ``model.classifier`` of a ViT; the method ``model.project`` when left out.
    """
    return _project(model, project)(model.get_submodule(f"{_prefix(model, stack)}final_norm")(hidden))


def logit_lens(
    model: nn.Module, *inputs: object, stack: str | None = None, project: Project | None = None, **options: object
) -> Float[Tensor, "streams batch tokens vocab_size"]:
    """What the model would predict after no layer, after the first, the second, ...: the last are its own logits.

    nostalgebraist (2020), "interpreting GPT: the logit lens". The final norm and the projection were trained for the
    last stream only, so that early readings are what they happen to say about another space, not what the layer
    "thinks"; Belrose et al. (2023) train a translation for each layer instead.

    Args:
        model: a model of ours, in evaluation mode.
        inputs, options: what the model is called with.
        stack, project: as for `read_out`.

    Example:
        >>> from ttutor.transformer import Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.tiny(vocab_size=50, n_layers=2)).eval()
        >>> inputs = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 8, 9, 7]])
        >>> readings = logit_lens(model, *inputs)
        >>> readings.shape, torch.equal(readings[-1], model(*inputs))
        (torch.Size([3, 1, 4, 50]), True)
    """
    streams = residual_stream(model, *inputs, stack=stack, **options)
    return torch.stack([read_out(model, stream, stack=stack, project=project) for stream in streams])


def residual_writes(
    model: nn.Module, *inputs: object, stack: str | None = None, **options: object
) -> dict[str, Float[Tensor, "batch tokens d_model"]]:
    """What each part adds to the stream of a pre-norm model: the embeddings, then every sublayer, in order.

    They add up to the stream after the last layer: the stream is a shared memory that every sublayer reads and adds to
    (Elhage et al. 2021). A sublayer goes by the name of its residual connection.

    Raises:
        ValueError: they do not add up, since the stack has other residual connections than `PreNorm`: where a norm
            follows the sum, the stream is rescaled at every sublayer and is no sum of writes.
    """
    prefix = _prefix(model, stack)
    layers = cast(nn.ModuleList, model.get_submodule(f"{prefix}layers"))
    arounds = [f"{prefix}layers.{name}" for name, part in layers.named_modules() if isinstance(part, PreNorm)]
    first, last = f"{prefix}layers.0.input", f"{prefix}layers.{len(layers) - 1}"
    with capture(model, first, last, *(f"{name}.dropout" for name in arounds)) as seen:
        model(*inputs, **options)
    writes = {"embeddings": seen[first], **{name: seen[f"{name}.dropout"] for name in arounds}}
    if not _add_up(writes, seen[last]):
        raise ValueError(
            f"the stream of {type(model).__name__} is no sum of writes: not all residual connections are pre-norm"
        )
    return writes


def logit_attribution(
    model: nn.Module,
    writes: dict[str, Float[Tensor, "batch tokens d_model"]],
    token_ids: Int[Tensor, "batch tokens"],
    *,
    stack: str | None = None,
    project: Project | None = None,
) -> dict[str, Float[Tensor, "batch tokens"]]:
    """How much each part of a pre-norm model adds to the logit of one token, at each position.

    The final norm divides by the spread of the whole stream; with that one number held fixed, the logit is a sum over
    the writes and a constant (``"bias"``) for the biases of norm and projection. The sum is exact; the reading "without
    this part the logit would be lower by so much" is not, since later parts would react.

    Args:
        model: a pre-norm language model of ours, in evaluation mode.
        writes: what `residual_writes` gave; a sublayer's may be split, such as by `head_writes`, but all must be there.
        token_ids: whose logit, at each position; say, the right next tokens.
        stack, project: as for `read_out`.

    Raises:
        ShapeError: ids and writes do not fit together.
        ValueError: the projection is not affine in the hidden vector, as in BERT's head.

    Example:
        >>> from ttutor.transformer import Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.tiny(vocab_size=50, n_layers=1)).eval()
        >>> inputs = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 8, 9]])
        >>> parts = logit_attribution(model, residual_writes(model, *inputs), torch.tensor([[8, 9, 3]]))
        >>> torch.allclose(sum(parts.values())[0, 0], model(*inputs)[0, 0, 8], atol=1e-5)
        True
    """
    for name, write in writes.items():
        check_shapes(token_ids=(token_ids, "batch tokens"), **{name: (write, "batch tokens d_model")})
    stream = torch.stack(list(writes.values())).sum(dim=0)
    norm: Any = model.get_submodule(f"{_prefix(model, stack)}final_norm")
    normalise, to_logits = _frozen(norm, stream), _project(model, project)

    def logit(hidden: Tensor) -> Tensor:
        return to_logits(hidden).gather(-1, rearrange(token_ids, "batch tokens -> batch tokens 1"))[..., 0]

    nothing = logit(torch.zeros_like(stream))
    added = {name: logit(normalise(write)) - nothing for name, write in writes.items()}
    added["bias"] = logit(norm(torch.zeros_like(stream)))  # a norm makes its own bias of zeros
    if not _add_up(added, logit(norm(stream))):
        raise ValueError(f"the projection of {type(model).__name__} is not affine, so its logits are no sum of parts")
    return added


def _prefix(model: nn.Module, stack: str | None) -> str:
    """What names of parts of the stack begin with."""
    name = stack_of(model) if stack is None else stack
    if name not in {name for name, _ in model.named_modules()}:
        raise ValueError(f"{type(model).__name__} has no part called {name!r}")
    return f"{name}." if name else ""


def _project(model: nn.Module, project: Project | None) -> Project:
    if project is None and not hasattr(model, "project"):
        raise ValueError(f"{type(model).__name__} has no method `project`: give what maps hidden vectors to logits")
    return cast(Project, model.project) if project is None else project


def _add_up(parts: dict[str, Tensor], whole: Tensor) -> bool:
    """Whether parts sum to the whole, to half the digits: what is asked is whether they should, not how exactly."""
    tolerance = torch.finfo(whole.dtype).eps ** 0.5 * (1 + whole.abs().max())
    return bool((torch.stack(list(parts.values())).sum(dim=0) - whole).abs().max() <= tolerance)


def _frozen(norm: LayerNorm | RMSNorm | nn.Identity, stream: Tensor) -> Callable[[Tensor], Tensor]:
    """The norm as a linear map: as it acts on this stream, with its divisor held fixed."""
    if isinstance(norm, nn.Identity):
        return norm
    return partial(_scaled, norm, torch.rsqrt(_centred(norm, stream).square().mean(dim=-1, keepdim=True) + norm.eps))


def _scaled(norm: LayerNorm | RMSNorm, factor: Tensor, write: Tensor) -> Tensor:
    return norm.gain * _centred(norm, write) * factor


def _centred(norm: nn.Module, hidden: Tensor) -> Tensor:
    return hidden - hidden.mean(dim=-1, keepdim=True) if isinstance(norm, LayerNorm) else hidden
