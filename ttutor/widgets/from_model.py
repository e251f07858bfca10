"""Read attention out of a model that runs on a text, ours or Hugging Face's, for the explorers' ``from_model``.

Our models are read by `ttutor.inside.capture`. Those of Hugging Face answer ``output_attentions=True`` only with their
plain attention, called "eager", which is switched on for the run. Afterwards every model is what it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.embeddings import TokenEmbedding
from ttutor.evaluating import evaluating
from ttutor.generation import greedy_search
from ttutor.inside import capture, head_writes
from ttutor.multihead import MultiHeadAttention
from ttutor.widgets.from_huggingface import LONGEST_ANSWER, PARTS, HuggingFaceReader, Read, biases, plain
from ttutor.widgets.text_ids import TextIds

__all__ = ["PARTS", "RecordedAttention", "log_weights", "recorded_attention"]


@dataclass(frozen=True, eq=False)
class RecordedAttention:
    """What all heads of one part of a model looked at, and what they wrote, on one text.

    Attributes:
        tokens: the queries' tokens. In cross-attention a row belongs to the token that it helped to write, elsewhere
            to the token that was read.
        key_tokens: the keys' tokens.
        weights: where each query's weight fell; rows add up to one.
        writes: what each head adds to the layer's output through its part of the output projection; None where the
            projection of a Hugging Face model was not found.
        rest: what the output has besides, the projection's bias.
        part: a key of `PARTS`.
    """

    tokens: list[str]
    key_tokens: list[str]
    weights: Float[Tensor, "layers heads queries keys"]
    writes: Float[Tensor, "layers heads queries d_model"] | None
    rest: Float[Tensor, "layers queries d_model"] | None
    part: str


def recorded_attention(
    model: Any, text: Any, tokenizer: Any = None, *, part: str | None = None, target: Any = None
) -> RecordedAttention:
    """Run a model on one text and give the attention of one of its parts, all layers and heads.

    Args:
        model: a `Translator`, one of our models of text (`Transformer`, `GPT`, `BERT`, `Llama`, `T5`), or a model of
            Hugging Face.
        text: a string, or its token ids as they enter the model.
        tokenizer: turns strings into ids and ids into words; a `Translator` has its own. Ids can do without.
        part: ``"encoder"``, ``"decoder"`` or ``"cross"``; the first that the model has when left out.
        target: what an encoder-decoder is made to write, a string or ids without the start; when left out, what it
            writes by greedy search.

    Raises:
        TypeError: it is no such model, or a string came without a tokenizer.
        ValueError: the model has no such part, the text is empty, or no weights came.

    Example:
        >>> from ttutor.variants.gpt import GPT, GPTConfig
        >>> model = GPT(GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> seen = recorded_attention(model, [7, 8, 9, 8])
        >>> seen.part, seen.tokens, tuple(seen.weights.shape)
        ('decoder', ['7', '8', '9', '8'], (2, 3, 4, 4))
    """
    style = getattr(model, "style", None)
    if isinstance(getattr(model, "model", None), nn.Module) and hasattr(model, "translate"):
        model, tokenizer = model.model, tokenizer or model.tokenizer
    reader = _reader(model)
    if part is not None and part not in reader.parts:
        known = ", ".join(map(repr, reader.parts))
        raise ValueError(f"{type(model).__name__} has no part {part!r}; it has {known}")
    is_pair = "cross" in reader.parts
    part = part or reader.parts[0]
    texts = TextIds(model, tokenizer, style, is_pair)
    source, written, inputs = texts.source(text), [], []
    if target is not None and not is_pair:
        raise ValueError(f"{type(model).__name__} reads one text only; put what target holds at the end of the text")
    with torch.no_grad(), evaluating(model):
        if is_pair and part != "encoder":
            written = texts.target(target) if target is not None else reader.answer(source, texts)
            inputs = [texts.start, *written[:-1]]
        weights, writes, rest = reader.read(part, source, inputs)
    queries = {"cross": written, "decoder": inputs or source}.get(part, source)
    tokens = texts.labels(queries)
    return RecordedAttention(tokens, texts.labels(source) if part == "cross" else tokens, weights, writes, rest, part)


def log_weights(
    weights: Float[Tensor, "layers heads queries keys"], layer: int, head: int
) -> Float[Tensor, "queries keys"]:
    """One head's weights as scores that a softmax turns into them again; minus infinity where a weight is 0.

    Raises:
        IndexError: there is no such layer or head.

    Example:
        >>> log_weights(torch.tensor([[[[1.0, 0.0], [0.4, 0.6]]]]), layer=-1, head=0).softmax(dim=-1)
        tensor([[1.0000, 0.0000],
                [0.4000, 0.6000]])
    """
    for name, number, count in (("layer", layer, weights.shape[0]), ("head", head, weights.shape[1])):
        if not -count <= number < count:
            raise IndexError(f"there is no {name} {number}; this part of the model has {count}, from 0 to {count - 1}")
    return weights[layer, head].log()


def _reader(model: Any) -> "_Ours | HuggingFaceReader":
    """Who can read this model.

    Raises:
        TypeError: nobody can.
    """
    name = type(model).__name__
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a model, which is a torch module or a Translator, not {name}")
    if hasattr(getattr(model, "config", None), "model_type"):
        if getattr(model, "main_input_name", "input_ids") != "input_ids":
            raise TypeError(
                f"{name} reads {model.main_input_name}, not text; give its weights to the explorer yourself"
            )
        return HuggingFaceReader(model)
    if not any(isinstance(one, MultiHeadAttention) for one in model.modules()):
        raise TypeError(f"{name} has none of our attention layers, and it is no model of Hugging Face")
    if not any(isinstance(one, TokenEmbedding) for one in model.modules()):
        raise TypeError(
            f"{name} does not read tokens; capture its weights with ttutor.inside.capture and give them to the explorer"
        )
    return _Ours(model)


class _Ours:
    """Reads models that are built of `MultiHeadAttention`."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        found = [name for name, one in model.named_modules() if isinstance(one, MultiHeadAttention)]
        self.layers = {part: [name for name in found if _our_part(name) == part] for part in PARTS}
        self.parts = [part for part, names in self.layers.items() if names]

    def answer(self, source: list[int], texts: TextIds) -> list[int]:
        """What the model writes, with its end mark."""
        limits = {"bos_id": texts.start, "eos_id": texts.end, "max_new_tokens": LONGEST_ANSWER}
        best = greedy_search(self.model, self._batch(source), **limits)[0]
        return [*best.token_ids, *([texts.end] if best.is_finished else [])]

    def read(self, part: str, source: list[int], inputs: list[int]) -> Read:
        """Weights, writes and biases of one part."""
        names = self.layers[part]
        layers = [self.model.get_submodule(name) for name in names]
        with capture(self.model, *(f"{name}.{what}" for name in names for what in ("weights", "context"))) as seen:
            self._run(source, inputs)
        weights = torch.stack([seen[f"{name}.weights"][0] for name in names])
        writes = [head_writes(layer, seen[f"{name}.context"])[0] for layer, name in zip(layers, names, strict=True)]
        return plain(weights), plain(torch.stack(writes)), biases([one.to_output for one in layers], writes[0])

    def _run(self, source: list[int], inputs: list[int]) -> None:
        if "cross" not in self.parts:
            self.model(self._batch(source))
            return
        memory = self.model.encode(self._batch(source))
        if inputs:
            ids = self._batch(inputs)
            self.model.decode(ids, memory, is_real=torch.ones_like(ids, dtype=torch.bool))

    def _batch(self, ids: Sequence[int]) -> Tensor:
        return torch.tensor([ids], device=next(self.model.parameters()).device)


def _our_part(name: str) -> str:
    """Which of the parts an attention layer of ours belongs to; a model that is one stack of layers is a decoder."""
    if name.endswith("cross_attention"):
        return "cross"
    return "encoder" if "encoder." in name else "decoder"
