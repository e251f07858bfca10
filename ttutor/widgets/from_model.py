"""Read attention out of a model that runs on a text, ours or Hugging Face's, for the explorers' ``from_model``.

Our models are read by `ttutor.inside.capture`; those of Hugging Face are turned into ours first.
"""

import operator
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
from ttutor.names import AnsweringTokenizer
from ttutor.tokenization import BOS_ID, EOS_ID
from ttutor.variants.t5 import T5

PARTS = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "cross-attention"}
"""The attention layers of a model by what they look at, with their names for readers."""
LONGEST_ANSWER = 40
"""New tokens that an encoder-decoder may write when no target is given."""


@dataclass(frozen=True, eq=False)
class RecordedAttention:
    """What all heads of one part of a model looked at, and what they wrote, on one text.

    Attributes:
        tokens: the queries' tokens. In cross-attention a row belongs to the token that it helped to write, elsewhere
            to the token that was read.
        key_tokens: the keys' tokens.
        weights: where each query's weight fell; rows add up to one.
        writes: what each head adds to the layer's output through its part of the output projection.
        rest: what the output has besides, the projection's bias.
        part: a key of `PARTS`.
    """

    tokens: list[str]
    key_tokens: list[str]
    weights: Float[Tensor, "layers heads queries keys"]
    writes: Float[Tensor, "layers heads queries d_model"]
    rest: Float[Tensor, "layers queries d_model"]
    part: str


def recorded_attention(
    model: Any, text: Any, tokenizer: Any = None, *, part: str | None = None, target: Any = None
) -> RecordedAttention:
    """Run a model on one text and give the attention of one of its parts, all layers and heads.

    Args:
        model: a `Translator`, one of our models of text (`Transformer`, `GPT`, `BERT`, `Llama`, `T5`), or a model of
            Hugging Face that `ttutor.interop.from_huggingface` knows.
        text: a string, or its token ids as they enter the model.
        tokenizer: turns strings into ids and ids into words: Hugging Face's, one of ours, or one of the package
            `tokenizers`. A `Translator` has its own, and ids can do without.
        part: ``"encoder"``, ``"decoder"`` or ``"cross"``; the first that the model has when left out.
        target: what an encoder-decoder is made to write, a string or ids without the start; when left out, what it
            writes by greedy search.

    Example:
        >>> from ttutor.variants.gpt import GPT, GPTConfig
        >>> model = GPT(GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> seen = recorded_attention(model, [7, 8, 9, 8])
        >>> seen.part, seen.tokens, tuple(seen.weights.shape)
        ('decoder', ['7', '8', '9', '8'], (2, 3, 4, 4))
    """
    name, style = type(model).__name__, getattr(model, "style", None)
    if isinstance(getattr(model, "model", None), nn.Module) and hasattr(model, "translate"):
        model, tokenizer = model.model, tokenizer or model.tokenizer
    reader = _Reader(model)
    if part is not None and part not in reader.parts:
        raise ValueError(f"{name} has no part {part!r}; it has {', '.join(map(repr, reader.parts))}")
    is_pair = "cross" in reader.parts
    part = part or reader.parts[0]
    texts = _Texts(tokenizer, style, is_pair)
    source, written, inputs = texts.ids("text", text), [], []
    if target is not None and not is_pair:
        raise ValueError(f"{name} reads one text only; put what target holds at the end of the text")
    with torch.no_grad(), evaluating(reader.model):
        if is_pair and part != "encoder":
            start, end = _marks(model, tokenizer)
            written = texts.ids("target", target) if target is not None else reader.answer(source, start, end)
            inputs = [start, *written[:-1]]
        found = reader.read(part, source, inputs)
    queries = {"cross": written, "decoder": inputs or source}.get(part, source)
    tokens = texts.labels(queries)
    return RecordedAttention(tokens, texts.labels(source) if part == "cross" else tokens, *found, part)


def _is_theirs(tokenizer: Any) -> bool:
    """Whether a tokenizer is called, as Hugging Face's are; ours answer a call with what to write instead."""
    return callable(tokenizer) and not isinstance(tokenizer, AnsweringTokenizer)


class _Texts:
    """Turns texts into ids for a model, with the marks that it was trained with, and ids into words."""

    def __init__(self, tokenizer: Any, style: Any, is_pair: bool) -> None:
        self.tokenizer, self.style, self.is_pair = tokenizer, style, is_pair

    def ids(self, name: str, text: Any) -> list[int]:
        """The ids of a ``text`` that is read, or of a ``target``: with the end mark and without the start."""
        found = self._encoded(name, text) if isinstance(text, str) else _plain_ids(name, text)
        if not found:
            raise ValueError(f"{name} is empty; there has to be at least one token")
        return found

    def labels(self, token_ids: Sequence[int]) -> list[str]:
        """The tokens as text that can be shown, a leading blank as "▁"; without a tokenizer the ids themselves."""
        tokenizer = self.tokenizer
        if tokenizer is None:
            return [str(token_id) for token_id in token_ids]
        for name in ("pieces", "tokens"):
            if hasattr(tokenizer, name):
                return list(getattr(tokenizer, name)(token_ids))
        return [_shown(tokenizer, token_id) for token_id in token_ids]

    def _encoded(self, name: str, text: str) -> list[int]:
        if self.tokenizer is None:
            raise TypeError(f"{name} is a string, so give the model's tokenizer too; or give {name} as token ids")
        if not text.strip():
            return []
        if _is_theirs(self.tokenizer):  # Hugging Face's sets the marks itself
            return list(self.tokenizer(**{"text_target" if name == "target" else "text": text})["input_ids"])
        if self.style is not None:
            text = self.style.prepare_answer(text) if name == "target" else self.style.prepare(text)
        encoded = self.tokenizer.encode(text)
        ids = list(getattr(encoded, "ids", encoded))
        return [*ids, EOS_ID] if self.is_pair else ids


def texts_of(tokenizer: Any) -> _Texts:
    """What a decoder's tokenizer makes of texts and ids."""
    return _Texts(tokenizer, None, is_pair=False)


def _plain_ids(name: str, text: Any) -> list[int]:
    """Token ids that came as a list, a tensor or an array of one axis, or of one row."""
    listed = list(text.tolist() if hasattr(text, "tolist") else text)
    if len(listed) == 1 and isinstance(listed[0], list):
        listed = listed[0]
    try:
        return [operator.index(token_id) for token_id in listed]
    except TypeError:
        raise TypeError(f"{name} has to be one string or the token ids of one text, not {text!r}") from None


def _shown(tokenizer: Any, token_id: int) -> str:
    """One token as text: as the vocabulary has it, unless it is written in bytes."""
    by_id = getattr(tokenizer, "convert_ids_to_tokens", None) or getattr(tokenizer, "id_to_token", None)
    piece = by_id(token_id) if by_id else None
    if piece and ("▁" in piece or piece.isascii()):
        return piece
    return tokenizer.decode([token_id]).replace(" ", "▁") or str(piece or token_id)


def _marks(model: Any, tokenizer: Any) -> tuple[int, int]:
    """The ids that start and end a target."""
    config = model.config
    if hasattr(config, "model_type"):
        return config.decoder_start_token_id, config.eos_token_id
    start = config.pad_id if isinstance(model, T5) or _is_theirs(tokenizer) else BOS_ID
    return start, tokenizer.eos_token_id if _is_theirs(tokenizer) else EOS_ID


class _Reader:
    """Reads models that are built of `MultiHeadAttention`, or can be."""

    def __init__(self, model: Any) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(f"expected a model, which is a torch module or a Translator, not {type(model).__name__}")
        if hasattr(getattr(model, "config", None), "model_type"):
            from ttutor.interop import from_huggingface

            model = from_huggingface(model)
        found = [name for name, one in model.named_modules() if isinstance(one, MultiHeadAttention)]
        if not found or not any(isinstance(one, TokenEmbedding) for one in model.modules()):
            raise TypeError(f"{type(model).__name__} is no model of texts that is built of our attention layers")
        self.model = model
        self.layers = {part: [name for name in found if _part_of(name) == part] for part in PARTS}
        self.parts = [part for part, names in self.layers.items() if names]

    def answer(self, source: list[int], start: int, end: int) -> list[int]:
        """What the model writes, with its end mark if it came."""
        ids = self._batch(source)
        best = greedy_search(self.model, ids, bos_id=start, eos_id=end, max_new_tokens=LONGEST_ANSWER)[0]
        return [*best.token_ids, *([end] if best.is_finished else [])]

    def read(self, part: str, source: list[int], inputs: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Weights, writes and biases of one part."""
        names = self.layers[part]
        layers = [self.model.get_submodule(name) for name in names]
        with capture(self.model, *(f"{name}.{what}" for name in names for what in ("weights", "context"))) as seen:
            self._run(source, inputs)
        weights = torch.stack([seen[f"{name}.weights"][0] for name in names])
        pairs = zip(names, layers, strict=True)
        writes = torch.stack([head_writes(layer, seen[f"{name}.context"])[0] for name, layer in pairs])
        none = writes.new_zeros(writes.shape[-1])
        biases = torch.stack([none if (bias := layer.to_output.bias) is None else bias for layer in layers])
        return _plain(weights), _plain(writes), _plain(biases)[:, None].expand(-1, writes.shape[2], -1)

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


def _plain(tensor: Tensor) -> Tensor:
    """The same numbers on the CPU, in at least 32 bits."""
    return tensor.detach().cpu().to(torch.promote_types(tensor.dtype, torch.float32))


def _part_of(name: str) -> str:
    """Which of the parts an attention layer belongs to; a model that is one stack of layers is a decoder."""
    if name.endswith("cross_attention"):
        return "cross"
    return "encoder" if "encoder." in name else "decoder"
