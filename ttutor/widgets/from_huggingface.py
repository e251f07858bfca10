"""Read attention out of a model of Hugging Face's `transformers`; `ttutor.widgets.from_model` is the way in."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.widgets.text_ids import TextIds

__all__ = ["LONGEST_ANSWER", "PARTS", "HuggingFaceReader", "Read", "biases", "plain"]

PARTS = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "cross-attention"}
"""The attention layers of a model by what they look at, with their names for readers."""

LONGEST_ANSWER = 40
"""New tokens that an encoder-decoder may write when no target is given."""

Read = tuple[Tensor, Tensor | None, Tensor | None]
"""Weights by layer and head, what the heads write, and what the layer's output has besides."""

_PROJECTIONS = re.compile(
    r"(attn\.c_proj|self_attn\.(o_proj|out_proj|dense)|encoder_attn\.out_proj|SelfAttention\.o|EncDecAttention\.o"
    r"|attention\.(output\.dense|out_lin|o_proj|dense))$"
)
"""How Hugging Face's models call the output projection of an attention layer."""


class HuggingFaceReader:
    """Reads models of the package `transformers`."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.parts = list(PARTS) if getattr(model.config, "is_encoder_decoder", False) else [self._only_part()]

    def answer(self, source: list[int], texts: TextIds) -> list[int]:
        """What the model writes, with its end mark if it came."""
        if not hasattr(self.model, "generate"):
            raise ValueError(f"{type(self.model).__name__} cannot write by itself: give target= what it shall write")
        ids = self._batch(source)
        limits = {"max_new_tokens": LONGEST_ANSWER, "do_sample": False, "num_beams": 1}
        return self.model.generate(ids, attention_mask=torch.ones_like(ids), **limits)[0, 1:].tolist()

    def read(self, part: str, source: list[int], inputs: list[int]) -> Read:
        """Weights, and writes and biases where the output projections are found."""
        projections = [one for name, one in self.model.named_modules() if self._is_projection(name, part)]
        with _eager(self.model), _watching(projections) as contexts:
            if part == "encoder" and "cross" in self.parts:
                attentions = self.model.get_encoder()(self._batch(source), output_attentions=True).get("attentions")
            else:
                more = {"decoder_input_ids": self._batch(inputs)} if inputs else {}
                output = self.model(self._batch(source), output_attentions=True, **more)
                attentions = output.get(f"{part}_attentions" if more else "attentions")
        found = [one for one in attentions or () if one is not None]
        if not found:
            raise ValueError(
                f"{type(self.model).__name__} gave no attention weights, although its attention is set to 'eager'; "
                "perhaps its layers use no softmax attention"
            )
        weights = torch.stack([one[0] for one in found])
        are_found = len(projections) == len(contexts) == len(found) == len(attentions)
        if not are_found or any(one.shape[:-1] != weights.shape[2:3] for one in contexts):
            return plain(weights), None, None
        writes = [_by_head(*pair, weights.shape[1]) for pair in zip(projections, contexts, strict=True)]
        return plain(weights), plain(torch.stack(writes)), biases(projections, writes[0])

    def _only_part(self) -> str:
        """What the single stack of layers is: a causal model is a decoder."""
        return "decoder" if any(getattr(one, "is_causal", False) for one in self.model.modules()) else "encoder"

    def _is_projection(self, name: str, part: str) -> bool:
        if not _PROJECTIONS.search(name):
            return False
        if "cross" not in self.parts:
            return True
        is_cross = re.search(r"encoder_attn|EncDecAttention|crossattention", name)
        return part == ("cross" if is_cross else "decoder" if re.search(r"(^|\.)decoder\.", name) else "encoder")

    def _batch(self, ids: Sequence[int]) -> Tensor:
        return torch.tensor([ids], device=self.model.device)


def plain(tensor: Tensor) -> Tensor:
    """The same numbers on the CPU, in at least 32 bits."""
    return tensor.detach().cpu().to(torch.promote_types(tensor.dtype, torch.float32))


def biases(projections: Sequence[nn.Module], write: Tensor) -> Float[Tensor, "layers queries d_model"]:
    """The constant that each output projection adds, for every query of a write."""
    none = write.new_zeros(write.shape[-1])
    found = torch.stack([none if one.bias is None else one.bias for one in projections])
    return plain(found)[:, None].expand(-1, write.shape[1], -1)


def _by_head(
    projection: nn.Module, context: Float[Tensor, "queries merged"], n_heads: int
) -> Float[Tensor, "heads queries d_model"]:
    """What each head adds: the projection of its part of the merged heads alone, less the constant."""
    width = context.shape[-1] // n_heads
    alone = torch.zeros(n_heads, *context.shape, dtype=context.dtype, device=context.device)
    for head in range(n_heads):
        part = slice(head * width, (head + 1) * width)
        alone[head, :, part] = context[:, part]
    return projection(alone) - projection(torch.zeros_like(context))


@contextmanager
def _watching(projections: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """Record what goes into these modules, for the first text of the batch, in the order of the calls."""
    seen: list[Tensor] = []
    with ExitStack() as stack:
        for one in projections:
            handle = one.register_forward_pre_hook(lambda module, args: seen.append(args[0][0]))
            stack.callback(handle.remove)
        yield seen


@contextmanager
def _eager(model: nn.Module) -> Iterator[None]:
    """Let the model compute its attention in the plain way that has weights, for a while.

    Raises:
        ValueError: it cannot be switched.
    """
    before = getattr(model.config, "_attn_implementation", "eager")
    if before == "eager":
        yield
        return
    try:
        model.set_attn_implementation("eager")
    except (AttributeError, ValueError) as error:
        raise ValueError(
            f"{type(model).__name__} keeps no attention weights with its {before!r} attention; "
            'load it with from_pretrained(..., attn_implementation="eager")'
        ) from error
    try:
        yield
    finally:
        model.set_attn_implementation(before)
