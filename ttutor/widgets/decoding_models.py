"""Who can be recorded while decoding: our translators, and encoder-decoders of Hugging Face as models of ours."""

from typing import Any

from torch import nn

from ttutor.corpora.tokenizer import BOS_ID, EOS_ID
from ttutor.interop import from_huggingface
from ttutor.translation.translator import Translator
from ttutor.widgets.decoding_trace import Speaker

__all__ = ["speaker_of"]


def speaker_of(model: Any, tokenizer: Any = None) -> Speaker:
    """The model with its words.

    Raises:
        TypeError: it is neither a translator nor an encoder-decoder of Hugging Face with its tokenizer.
    """
    if isinstance(model, Translator):
        return _translator(model)
    config = getattr(model, "config", None)
    if not getattr(config, "is_encoder_decoder", False):
        raise TypeError(
            f"model has to be a Translator, or an encoder-decoder of Hugging Face, not {type(model).__name__}; a model "
            f"of ours goes into Translator(model, tokenizer)"
        )
    if tokenizer is None:
        raise TypeError(f"a {type(model).__name__} needs its tokenizer: from_model(model, text, tokenizer=...)")
    return _hugging_face(model, tokenizer)


def _translator(translator: Translator) -> Speaker:
    def read(text: str) -> tuple[list[int], list[str]]:
        longest = translator.model.config.max_len - 1
        ids = [*translator.tokenizer.encode(translator.style.prepare(text))[:longest], EOS_ID]
        return (ids, translator.tokenizer.pieces(ids)) if text.strip() else ([], [])

    return Speaker(translator.model, BOS_ID, EOS_ID, read, lambda token_id: translator.tokenizer.tokens([token_id])[0])


def _hugging_face(model: nn.Module, tokenizer: Any) -> Speaker:
    def read(text: str) -> tuple[list[int], list[str]]:
        ids = list(tokenizer(text)["input_ids"])
        return (ids, tokenizer.convert_ids_to_tokens(ids)) if text.strip() else ([], [])

    def written(token_id: int) -> str:
        return str(tokenizer.convert_ids_to_tokens([token_id])[0])

    config = model.config
    return Speaker(from_huggingface(model), config.decoder_start_token_id, config.eos_token_id, read, written)
