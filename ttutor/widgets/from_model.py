"""Read attention out of a model that runs on a text, ours or Hugging Face's, for the explorers' ``from_model``.

Our models are read by `ttutor.inside.capture`. Those of Hugging Face answer ``output_attentions=True`` only with their
plain attention, called "eager", which is switched on for the run. Afterwards every model is what it was.
"""

import operator
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.corpora.tokenizer import BOS_ID, EOS_ID
from ttutor.embeddings import TokenEmbedding
from ttutor.evaluating import evaluating
from ttutor.generation import greedy_search
from ttutor.inside import capture, head_writes
from ttutor.multihead import MultiHeadAttention
from ttutor.variants.t5 import T5

MAX_READ = 512
"""Tokens of a text that a model is run on: attention maps are squares, and an explorer shows far fewer."""


class TextIds:
    """Turns texts into ids for one model, with the marks that it was trained with.

    Args:
        model: the model that is to read them.
        tokenizer: Hugging Face's (called with the text, it sets the marks itself), one of ours, or one of the package
            `tokenizers`; None when texts come as ids.
        style: how the training text wrote its sentences, of a `Translator`.
        is_pair: whether the model reads one text and writes another.
    """

    def __init__(self, model: nn.Module, tokenizer: Any, style: Any, is_pair: bool) -> None:
        self.model: Any = model
        self.tokenizer, self.style, self.is_pair = tokenizer, style, is_pair

    def source(self, text: Any) -> list[int]:
        """The ids of what is read."""
        return self._ids("text", text)

    def target(self, text: Any) -> list[int]:
        """The ids of what is written, with the end mark and without the start; it complains as `source` does."""
        return self._ids("target", text)

    @property
    def start(self) -> int:
        """The id that starts a target."""
        config = self.model.config
        if hasattr(config, "model_type"):
            found = getattr(config, "decoder_start_token_id", None)
            if found is None:
                raise ValueError(f"{type(self.model).__name__} has no config.decoder_start_token_id; set it")
            return found
        return config.pad_id if isinstance(self.model, T5) or callable(self.tokenizer) else BOS_ID

    @property
    def end(self) -> int | None:
        """The id that ends a target, where it is known."""
        return getattr(self.tokenizer, "eos_token_id", None) if callable(self.tokenizer) else EOS_ID

    def labels(self, token_ids: Sequence[int]) -> list[str]:
        """The tokens as text that can be shown, a leading blank as "▁"; without a tokenizer the ids themselves."""
        tokenizer = self.tokenizer
        if tokenizer is None:
            return [str(token_id) for token_id in token_ids]
        for name in ("pieces", "tokens"):
            if hasattr(tokenizer, name):
                return list(getattr(tokenizer, name)(token_ids))
        return [_shown(tokenizer, token_id) for token_id in token_ids]

    def _ids(self, name: str, text: Any) -> list[int]:
        found = self._encoded(name, text) if isinstance(text, str) else _plain_ids(name, text)
        if not found:
            raise ValueError(f"{name} is empty; there has to be at least one token")
        return self._cut(name, found)

    def _encoded(self, name: str, text: str) -> list[int]:
        if self.tokenizer is None:
            raise TypeError(f"{name} is a string, so give the model's tokenizer too; or give {name} as token ids")
        if not text.strip():
            raise ValueError(f"{name} is empty; there has to be at least one token")
        if callable(self.tokenizer):
            given = {"text_target": text} if name == "target" else {"text": text}
            return list(self.tokenizer(**given)["input_ids"])
        if not hasattr(self.tokenizer, "encode"):
            raise TypeError(f"tokenizer has no method `encode`: {type(self.tokenizer).__name__}")
        prepared = text if self.style is None else self.style.prepare(text)
        encoded = self.tokenizer.encode(prepared)
        ids = list(getattr(encoded, "ids", encoded))
        return [*ids, EOS_ID] if self.is_pair else ids

    def _cut(self, name: str, ids: list[int]) -> list[int]:
        """No more than the model has positions for."""
        config = next((one.config for one in self.model.modules() if hasattr(one, "config")), None)
        limits = (getattr(config, known, None) for known in ("max_len", "max_position_embeddings", "n_positions"))
        limit = min([MAX_READ, *(one for one in limits if isinstance(one, int) and one > 0)])
        if len(ids) > limit:
            warnings.warn(
                f"{name} has {len(ids)} tokens; {type(self.model).__name__} is run on the first {limit} of them",
                stacklevel=6,
            )
        return ids[:limit]


def _plain_ids(name: str, text: Any) -> list[int]:
    """Token ids that came as a list, a tensor or an array of one axis, or of one row."""
    listed = text.tolist() if hasattr(text, "tolist") else text
    try:
        listed = list(listed)
        if len(listed) == 1 and isinstance(listed[0], list):
            listed = listed[0]
        return [operator.index(token_id) for token_id in listed]
    except TypeError:
        raise TypeError(
            f"{name} has to be one string or the token ids of one text, not {type(text).__name__} "
            f"of {type(listed[0]).__name__ if isinstance(listed, list) and listed else 'something else'}"
        ) from None


def _shown(tokenizer: Any, token_id: int) -> str:
    """One token as text: as the vocabulary has it, unless it is written in bytes."""
    by_id = getattr(tokenizer, "convert_ids_to_tokens", None) or getattr(tokenizer, "id_to_token", None)
    piece = by_id(token_id) if by_id else None
    if piece and ("▁" in piece or piece.isascii()):
        return piece
    return tokenizer.decode([token_id]).replace(" ", "▁") or str(piece or token_id)


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

    def __init__(self, model: Any) -> None:
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


def biases(projections: Sequence[Any], write: Tensor) -> Float[Tensor, "layers queries d_model"]:
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
def _eager(model: Any) -> Iterator[None]:
    """Let the model compute its attention in the plain way that has weights, for a while."""
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
    """Who can read this model."""
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

    def __init__(self, model: Any) -> None:
        self.model = model
        found = [name for name, one in model.named_modules() if isinstance(one, MultiHeadAttention)]
        self.layers = {part: [name for name in found if _our_part(name) == part] for part in PARTS}
        self.parts = [part for part, names in self.layers.items() if names]

    def answer(self, source: list[int], texts: TextIds) -> list[int]:
        """What the model writes, with its end mark."""
        best = greedy_search(
            self.model, self._batch(source), bos_id=texts.start, eos_id=texts.end, max_new_tokens=LONGEST_ANSWER
        )[0]
        return [*best.token_ids, *([texts.end] if best.is_finished and texts.end is not None else [])]

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
