"""What PyTorch and transformers call otherwise, and where each name of ours stands.

Nothing here is an alias. A name of theirs raises the error that it would raise anyway, and the message says what it is
here; the table is `OURS`, which the book prints on its page "Coming from PyTorch".
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

__all__ = [
    "OURS",
    "Answering",
    "AnsweringLayer",
    "AnsweringModel",
    "answer",
    "answer_other_names",
    "answers_other_names",
    "hand_out",
]

Function = TypeVar("Function", bound=Callable[..., Any])

LAYERS = {
    "MultiheadAttention": "`ttutor.multihead.MultiHeadAttention`",
    "TransformerEncoderLayer": "`ttutor.encoder.EncoderLayer`",
    "TransformerEncoder": "`ttutor.encoder.Encoder`",
    "TransformerDecoderLayer": "`ttutor.decoder.DecoderLayer`",
    "TransformerDecoder": "`ttutor.decoder.Decoder`",
    "PositionalEncoding": "`ttutor.positions.SinusoidalPositions`",
    "RotaryEmbedding": "`ttutor.positions.RotaryPositions`",
    "SwiGLU": '`ttutor.layers.GatedFeedForward(..., activation="silu")`',
    "Embedding": "`ttutor.embeddings.TokenEmbedding`",
    "generate_square_subsequent_mask": "`ttutor.masks.causal_mask`, in which True means may attend",
}
"""Layers of torch and of many scripts."""

SIZES = {
    "embed_dim": "`d_model`",
    "hidden_size": "`d_model`",
    "hidden_dim": "`d_model`",
    "n_embd": "`d_model`",
    "embedding_dim": "`d_model`",
    "num_heads": "`n_heads`",
    "nhead": "`n_heads`",
    "n_head": "`n_heads`",
    "num_attention_heads": "`n_heads`",
    "num_key_value_heads": "`n_kv_heads`",
    "head_dim": "`d_head`",
    "num_layers": "`n_layers`",
    "n_layer": "`n_layers`",
    "num_hidden_layers": "`n_layers`",
    "num_encoder_layers": "`n_layers`, of the encoder and of the decoder alike",
    "num_decoder_layers": "`n_layers`, of the encoder and of the decoder alike",
    "dim_feedforward": "`d_ff`",
    "intermediate_size": "`d_ff`",
    "ffn_dim": "`d_ff`",
    "max_position_embeddings": "`max_len`",
    "n_positions": "`max_len`",
    "block_size": "`max_len`",
    "context_length": "`max_len`",
    "max_seq_len": "`max_len`",
    "num_embeddings": "`vocab_size`",
    "num_classes": "`n_classes`",
    "num_labels": "`n_classes`",
    "num_channels": "`n_channels`",
    "norm_first": '`norm="pre"` or `norm="post"`',
    "layer_norm_eps": "an argument of the norm: `make_norm=partial(LayerNorm, eps=...)`",
    "hidden_act": "`activation`",
    "hidden_dropout_prob": "`dropout`",
    "attn_dropout": "`dropout`",
    "batch_first": "always True: the axes are `batch tokens d_model`",
    "add_bias_kv": "left out, as in the paper",
    "kdim": "`d_model`: keys are as wide as queries",
    "vdim": "`d_model`: values are as wide as queries",
}
"""Arguments of constructors and fields of configs."""

CALLS = {
    "attn_mask": "`mask`, in which True means may attend: that of nn.MultiheadAttention turned round",
    "key_padding_mask": "`mask`, turned round: `mask=~key_padding_mask[:, None, None, :]`",
    "is_causal": "`causal=True`, or for a layer `mask=CAUSAL` of `ttutor.masks`",
    "need_weights": "`ttutor.inside.capture`, which gives the weights of every head",
    "average_attn_weights": "`ttutor.inside.capture`, which gives the weights of every head",
    "output_attentions": "`ttutor.inside.capture`, which gives the weights of every head",
    "output_hidden_states": "`ttutor.inside.capture`",
    "dropout_p": "`dropout`",
    "enable_gqa": "not needed: keys and values may have fewer heads",
    "src_key_padding_mask": "`mask`, turned round: `mask=~src_key_padding_mask[:, None, None, :]`",
    "src_mask": "`mask`, turned round: True means may attend",
    "src": "`hidden` for an encoder, `source_ids` for a whole model",
    "tgt": "`hidden` for a decoder, `target_ids` for a whole model",
    "tgt_mask": "`mask`; a decoder is causal by itself",
    "tgt_is_causal": "not needed: a decoder is causal by itself",
    "tgt_key_padding_mask": "`mask`, turned round: `mask=~tgt_key_padding_mask[:, None, None, :]`",
    "memory_key_padding_mask": "`memory_mask`, turned round: `memory_mask=~memory_key_padding_mask[:, None, None, :]`",
    "attention_mask": "`is_real` for a whole model, `mask` for a layer: bool, True means may attend",
    "input_ids": "`token_ids`, or `source_ids` of a model with two sides",
    "inputs_embeds": "`ttutor.inside.patch`, which changes the embeddings",
    "decoder_input_ids": "`target_ids`",
    "labels": "left to you: `torch.nn.functional.cross_entropy` of the logits",
    "past_key_values": "`cache`, a `ttutor.cache.DecoderCache`",
    "past_key_value": "`cache`, a `ttutor.cache.KeyValueCache`",
    "use_cache": "`cache=DecoderCache(n_layers)`",
    "pixel_values": "`images`",
    "diagonal": "not needed: `causal_mask(n)` lets each position see itself and what came before",
    "sz": "`n_queries`",
}
"""Arguments of calls."""

GENERATION = {
    "generate": "a function: `greedy_search`, `sample`, `beam_search` or `stream` of `ttutor.generation`",
    "num_beams": "`beam_size`",
    "beam_width": "`beam_size`",
    "length_penalty": "`alpha`, the exponent of Wu et al. (2016)",
    "no_repeat_ngram_size": "`ngram_size`",
    "do_sample": "the function `ttutor.generation.sample`",
    "num_return_sequences": "the prompt repeated: `sample(model, token_ids.repeat(n, 1), ...)`",
    "max_length": "`max_new_tokens`, which counts the new tokens alone; `max_len` in a config",
    "eos_token_id": "`eos_id`",
    "bos_token_id": "`bos_id`",
    "pad_token_id": "`pad_id` of the config",
    "repetition_penalty": "a filter: `filters=[partial(with_repetition_penalty, penalty=1.2)]`",
    "streamer": "the function `ttutor.generation.stream`",
    "stopping_criteria": "`stop`, functions such as `ends_with`",
    "seed": "`generator=torch.Generator().manual_seed(seed)`",
}
"""Writing text."""

TRAINING = {
    "lr": "`learning_rate`",
    "epochs": "`steps`: epochs times the number of batches",
    "num_epochs": "`steps`: epochs times the number of batches",
    "num_train_epochs": "`steps`: epochs times the number of batches",
    "max_steps": "`steps`",
    "optimizer": "always Adam; with another, write the loop, as chapter 8 does",
    "loss_fn": "`loss`, a function of model and batch",
    "criterion": "`loss`, a function of model and batch",
    "dataloader": "`batches`, any iterable that can be begun again",
    "train_loader": "`batches`, any iterable that can be begun again",
    "max_grad_norm": "`clip_norm`",
    "warmup_steps": "`warmup`",
    "src_file": "`source`",
    "tgt_file": "`target`",
}
"""Training."""

MODELS = {
    "from_pretrained": "`ttutor.interop.from_huggingface(folder or model)`",
    "save_pretrained": "`ttutor.interop.save_huggingface(model, folder)`",
    "push_to_hub": "`ttutor.interop.save_huggingface(model, folder)`, whose folder their tools upload",
    "num_parameters": "`sum(parameter.numel() for parameter in model.parameters())`",
    "GPT2": "`ttutor.variants.GPT`",
    "GPT2LMHeadModel": "`ttutor.variants.GPT`",
    "GPT2Config": "`ttutor.variants.GPTConfig`",
    "GPT2Model": "`ttutor.variants.GPT`",
    "BertModel": "`ttutor.variants.BERT`",
    "Bert": "`ttutor.variants.BERT`",
    "BertConfig": "`ttutor.variants.BERTConfig`",
    "BertForMaskedLM": "`ttutor.variants.BERTForMaskedLM`",
    "LlamaModel": "`ttutor.variants.Llama`",
    "LlamaForCausalLM": "`ttutor.variants.Llama`",
    "T5ForConditionalGeneration": "`ttutor.variants.T5`",
    "T5Model": "`ttutor.variants.T5`",
    "ViTModel": "`ttutor.variants.ViT`",
    "VisionTransformer": "`ttutor.variants.ViT`",
    "ViTForImageClassification": "`ttutor.variants.ViT`",
    "CLIPModel": "`ttutor.variants.CLIP`",
    "AutoModel": "`ttutor.interop.from_huggingface(folder or model)`",
    "AutoModelForCausalLM": "`ttutor.interop.from_huggingface(folder or model)`",
    "AutoTokenizer": "`ttutor.tokenization.SubwordTokenizer`, or what `ttutor.pretrained.load` gives with a model",
    "BPETokenizer": "`ttutor.tokenization.BytePairTokenizer`",
    "pipeline": "`ttutor.translation.load_default` for translation, `ttutor.pretrained.load` for a chat",
}
"""Whole models and their weights."""

OURS: Mapping[str, str] = {**LAYERS, **SIZES, **CALLS, **GENERATION, **TRAINING, **MODELS}
"""A name of theirs, and what it is here."""


def answer(place: str, name: str) -> str:
    """One sentence on a name of theirs.

    >>> answer("MultiHeadAttention", "num_heads")
    'MultiHeadAttention has no `num_heads`: here it is `n_heads`'
    """
    return f"{place} has no `{name}`: here it is {OURS[name]}"


def _unknown(function: Callable[..., Any], keywords: Mapping[str, Any], place: str) -> str:
    """What to say of keywords that a function does not have and the table knows; nothing if there are none."""
    foreign = [name for name in keywords if name in OURS]
    known = inspect.signature(function).parameters if foreign else {}
    sentences = [answer(place, name) for name in foreign if name not in known]
    return "; ".join([*sentences[:1], *(sentence.removeprefix(f"{place} has ") for sentence in sentences[1:])])


def answers_other_names(function: Function) -> Function:
    """Let a function answer keywords of theirs; it acts only when the call has failed.

    >>> @answers_other_names
    ... def fit(model, *, learning_rate=1e-3): ...
    >>> fit(None, lr=0.1)
    Traceback (most recent call last):
    ...
    TypeError: fit has no `lr`: here it is `learning_rate`
    """

    @wraps(function)
    def answering(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError:
            if message := _unknown(function, keywords, function.__name__):
                raise TypeError(message) from None
            raise

    return answering  # type: ignore[return-value]


class _Theirs:
    """An attribute of theirs: to ask for it raises the AttributeError that says what it is here."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(answer(owner.__name__, self.name))


def _made(cls: type[Any], *args: Any, **keywords: Any) -> Any:
    """An object, before its constructor runs, unless that would fail at a keyword of theirs."""
    if message := _unknown(cls.__init__, keywords, cls.__name__):
        raise TypeError(message)
    return object.__new__(cls)


def _made_of_config(cls: type[Any], *args: Any, **keywords: Any) -> Any:
    """The same for a model whose sizes stand in a config."""
    known = inspect.signature(cls.__init__).parameters
    if "config" in known and (sizes := [name for name in keywords if name not in known]):
        config = getattr(known["config"].annotation, "__name__", known["config"].annotation)
        theirs = "".join(f"; its `{name}` is here {OURS[name]}" for name in sizes if name in OURS)
        raise TypeError(f"{cls.__name__} takes its sizes in a config: {cls.__name__}({config}(...)){theirs}")
    return _made(cls, *args, **keywords)


def _unshown(constructor: Callable) -> partial:
    """A constructor whose signature no documentation shows: that of the class itself stands there.

    Signatures of partial functions in a class are not looked at by Python, and Sphinx passes over the one of this name.
    """
    made: Any = partial(constructor)
    made.__module__, made.__qualname__ = "typing", "Generic.__new__"
    return made


class Answering:
    """A class that answers keywords of theirs, in its constructor and, where it can be called, in a call.

    Type checkers see an empty class, and signatures are those of the class itself.
    """

    if not TYPE_CHECKING:
        __new__ = _unshown(_made)


class AnsweringLayer(Answering):
    """The same for a module of torch."""

    if not TYPE_CHECKING:
        from_pretrained = _Theirs()

        def __call__(self, *args, **keywords):
            try:
                return super().__call__(*args, **keywords)
            except TypeError:
                if message := _unknown(self.forward, keywords, type(self).__name__):
                    raise TypeError(message) from None
                raise


class AnsweringModel(AnsweringLayer):
    """The same for a whole model, whose methods are asked for, too, and whose sizes stand in a config."""

    if not TYPE_CHECKING:
        __new__ = _unshown(_made_of_config)

        def __getattr__(self, name):
            if name in MODELS or name == "generate":
                raise AttributeError(answer(type(self).__name__, name))
            return super().__getattr__(name)


def answer_other_names(room: str) -> None:
    """Let a room that is one module, or imports all its names, answer those that it does not have."""
    vars(sys.modules[room])["__getattr__"] = lambda name: hand_out(room, name, {})


def hand_out(room: str, name: str, homes: Mapping[str, str]) -> Any:
    """Load a name of a room when it is first asked for, from the module of the room that `homes` gives.

    Raises:
        ImportError: a name of theirs, or of another room of ours: of an AttributeError, `from room import name` would
            show nothing.
        AttributeError: there is no such name.
    """
    if name in homes:
        return getattr(import_module(f"{room}.{homes[name]}"), name)
    if not name.startswith("_") and not _is_module(room, name):
        _refuse(room, name)
    has = f"; it has {', '.join(homes)}" if homes else ""
    raise AttributeError(f"module {room!r} has no attribute {name!r}{has}")


def _is_module(room: str, name: str) -> bool:
    """Whether a room has a module of this name, which Python loads when it hears that there is no such attribute."""
    return "__path__" in vars(sys.modules[room]) and find_spec(f"{room}.{name}") is not None


def _refuse(room: str, name: str) -> None:
    if name in OURS:
        raise ImportError(answer(room, name), name=room)
    wanted = re.compile(rf'^(?:    |__all__ = \[.*)"{re.escape(name)}"', re.M)
    for path in sorted(Path(__file__).parent.glob("*/__init__.py")) + sorted(Path(__file__).parent.glob("*.py")):
        if wanted.search(path.read_text(encoding="utf-8")):
            other = path.parent.name if path.stem == "__init__" else path.stem
            raise ImportError(f"{name} stands in another room: from ttutor.{other} import {name}", name=room)
