"""A text as the ids that a model reads, and ids as tokens that can be shown, whoever made the tokenizer."""

import operator
import warnings
from collections.abc import Sequence
from typing import Any

from torch import nn

from ttutor.corpora.tokenizer import BOS_ID, EOS_ID
from ttutor.variants.t5 import T5

__all__ = ["MAX_READ", "TextIds"]

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
        self.model, self.tokenizer, self.style, self.is_pair = model, tokenizer, style, is_pair

    def source(self, text: Any) -> list[int]:
        """The ids of what is read.

        Raises:
            TypeError: a string came without a tokenizer, or what came is neither a string nor ids.
            ValueError: there is nothing in it.
        """
        return self._ids("text", text)

    def target(self, text: Any) -> list[int]:
        """The ids of what is written, with the end mark and without the start; it complains as `source` does."""
        return self._ids("target", text)

    @property
    def start(self) -> int:
        """The id that starts a target.

        Raises:
            ValueError: the model does not say.
        """
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
