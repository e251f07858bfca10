"""A conversation with a model, whose history stays in the cache, so that no token is read twice."""

from collections.abc import Generator, Iterator
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from ttutor.cache import DecoderCache
from ttutor.errors import SettingError
from ttutor.generation import most_probable
from ttutor.generation.streaming import Choose
from ttutor.pretrained.loading import Pretrained
from ttutor.variants.modern_decoder.one_text import OneText, has_eight_bits, prepared

CHUNK = 256
"""How many tokens of a question are read at a time; between two of them one may stop."""


class Conversation:
    """Questions and answers in turn.

    The template writes the whole conversation as one text. What the model has read of it stays in the cache; only what
    is new is read, the next question. When the model's positions run out, the oldest questions are forgotten with their
    answers, and the rest is read once more.

    Args:
        chat: a model that has a template.
        system: what the model is told before the first question; the template's own text when left out.
        choose: picks each token; a `ttutor.generation.Sampler` draws them.
        longest_answer: after so many tokens an answer is cut.
        eight_bits: whether weights are rounded to eight bits for writing, where that can be
            (`ttutor.variants.modern_decoder.one_text`): it takes less time, and now and then another word.

    Attributes:
        messages: all that was said and is not forgotten.
        n_read: how many tokens the model has read so far, those of forgotten questions included.
        n_forgotten: how many questions were forgotten.
        ended_by: what ended the last answer: ``"end"``, ``"longest_answer"``, ``"window"``, or ``"stopped"``.
    """

    def __init__(
        self,
        chat: Pretrained,
        *,
        system: str | None = None,
        choose: Choose = most_probable,
        longest_answer: int = 512,
        eight_bits: bool = False,
    ) -> None:
        if chat.template is None:
            raise SettingError(
                f"{chat.name} has no chat template: it was taught to continue texts, not to converse; "
                "ttutor.generation.sample continues a text"
            )
        if longest_answer < 1:
            raise SettingError(f"an answer needs at least one token, but longest_answer is {longest_answer}")
        self.chat, self.template, self.choose, self.longest_answer = chat, chat.template, choose, longest_answer
        self.model: Any = chat.model
        self.eight_bits = eight_bits and has_eight_bits()
        self._fast: OneText | None = None
        config: Any = chat.model.config
        self.window: int = config.max_len
        self.messages: list[dict[str, str]] = [] if system is None else [{"role": "system", "content": system}]
        self.n_read = self.n_forgotten = 0
        self.ended_by = ""
        self._start_anew()

    def _start_anew(self) -> None:
        self.cache = DecoderCache(self.model.config.n_layers)
        self._text = ""  # what the cache and the pending tokens say
        self._pending: list[int] = []  # written, but not read

    def written(self) -> str:
        """The conversation as the model reads it."""
        return self.template.render(self.messages)

    def answer(self, question: str) -> Generator[str, None, None]:
        """Answer a question, piece by piece; a piece is empty while a character or the reading is not complete.

        Whoever stops asking for pieces stops the answer: what was said so far then stands in the conversation.

        Raises:
            SettingError: the question alone is longer than the model's positions.
        """
        self.messages.append({"role": "user", "content": question})
        new_ids = self._make_room()
        self.ended_by = "stopped"
        self._fast = prepared(self.model, eight_bits=self.eight_bits)
        try:
            yield from self._pieces(new_ids)
        finally:
            if self.messages[-1]["role"] == "user":  # stopped while it was read: as if it had never been asked
                self.messages.pop()
                self._start_anew()

    def _make_room(self) -> list[int]:
        """The tokens to read now, once so many old questions are forgotten that they and an answer fit."""
        room = min(self.longest_answer, self.window // 4)
        while True:
            text = self.written()
            if not text.startswith(self._text):  # the template changed what it had written, or something is forgotten
                self._start_anew()
            ids = self._pending + self.chat.tokenizer.encode(text[len(self._text) :], add_special_tokens=False).ids
            if self.cache.n_tokens + len(ids) + room <= self.window:
                self._text, self._pending = text, []
                return ids
            oldest = next(place for place, one in enumerate(self.messages) if one["role"] == "user")
            if oldest == len(self.messages) - 1:
                self.messages.pop()
                raise SettingError(
                    f"the question takes {len(ids)} tokens, and with room for an answer the model has "
                    f"{self.window - room}: ask a shorter one"
                )
            del self.messages[oldest : oldest + 2]
            self.n_forgotten += 1

    def _pieces(self, new_ids: list[int]) -> Iterator[str]:
        """Read the tokens, then write."""
        for chunk in torch.tensor([new_ids]).split(CHUNK, dim=1):
            last = self._read(chunk)
            yield ""
        said: list[int] = []
        shown, reply = "", {"role": "assistant", "content": ""}
        self.messages.append(reply)
        while True:
            token_id = int(self.choose(last, [0]))
            if token_id in self.chat.end_ids:
                self.ended_by = "end"
                return
            said.append(token_id)
            self._pending = [token_id]
            reply["content"] = self.chat.tokenizer.decode(said)
            self._text = self._text[: len(self._text) - len(shown)] + reply["content"]
            complete = reply["content"].removesuffix("\ufffd")
            piece, shown = complete[len(shown.removesuffix("\ufffd")) :], reply["content"]
            if len(said) == self.longest_answer or self.cache.n_tokens == self.window:
                self.ended_by = "window" if self.cache.n_tokens == self.window else "longest_answer"
                yield piece
                return
            yield piece
            last = self._read(torch.tensor([[token_id]]))
            self._pending = []

    @torch.inference_mode()
    def _read(self, token_ids: Int[Tensor, "1 tokens"]) -> Tensor:
        """Let the model read; give the logarithms of the next token's probabilities."""
        self.n_read += token_ids.shape[1]
        if self._fast is not None and token_ids.shape[1] == 1:
            return self._fast.step(int(token_ids), self.cache).log_softmax(dim=-1)
        hidden = self.model.decode(token_ids, None, self.cache)[:, -1]
        return self.model.project(hidden).float().log_softmax(dim=-1)
