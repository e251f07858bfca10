"""Sequence to sequence before the Transformer: read into a state, write from it, with or without a look back."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.configs import Config
from ttutor.recurrence.additive import AdditiveAttention
from ttutor.recurrence.cells import GRUCell, LSTMCell, RNNCell, State
from ttutor.recurrence.unrolling import RecurrentEncoder, hidden_of, keep_where
from ttutor.shapes import check_shapes

CELLS: dict[str, type[RNNCell | LSTMCell | GRUCell]] = {"rnn": RNNCell, "lstm": LSTMCell, "gru": GRUCell}


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(Config):
    """The sizes and choices of a `Seq2Seq`. Source and target share one vocabulary.

    Args:
        vocab_size: number of tokens.
        d_model: width of embeddings and hidden vectors.
        cell: ``"rnn"``, ``"lstm"`` or ``"gru"``.
        attention: whether the decoder looks back at the encoder's hidden vectors.
        bidirectional: whether the source is read from both ends, by two encoders half as wide each.
        pad_id: the token id that means "nothing here".

    Example:
        >>> Seq2SeqConfig(vocab_size=10, cell="cnn")
        Traceback (most recent call last):
        ...
        ValueError: Seq2SeqConfig: cell must be one of ['gru', 'lstm', 'rnn'] (cell='cnn')
    """

    vocab_size: int
    d_model: int = 64
    cell: str = "gru"
    attention: bool = False
    bidirectional: bool = False
    pad_id: int = 0

    def errors(self) -> Iterable[str]:
        """What is wrong with these values."""
        yield from self.require_positive_int("vocab_size", "d_model")
        yield from self.require_one_of("cell", CELLS)
        yield from self.require_bool("attention", "bidirectional")
        if self.bidirectional is True and type(self.d_model) is int and self.d_model % 2:
            yield f"d_model must be even to be read into from both ends (d_model={self.d_model})"
        if type(self.pad_id) is not int or (type(self.vocab_size) is int and not 0 <= self.pad_id < self.vocab_size):
            yield f"pad_id must be a token id (pad_id={self.pad_id!r}, vocab_size={self.vocab_size})"


class Source(NamedTuple):
    """What a decoder may look back at: the memory, which of it is real, and its keys if there is attention."""

    memory: Float[Tensor, "batch source d_model"]
    is_real: Bool[Tensor, "batch source"]
    k: Float[Tensor, "batch source d_head"] | None


class Seq2Seq(nn.Module):
    r"""An encoder reads the source; a decoder starts in the encoder's last state and writes the target.

    Without attention that state, of fixed width, is all the decoder ever learns of the source (Sutskever et al. 2014,
    section 2). With attention it receives at each step, beside the previous token, a context made for that step
    (Bahdanau et al. 2015, section 3.1):

    $$s_i = \mathrm{cell}\big([y_{i-1}; c_i],\, s_{i-1}\big), \qquad c_i = \sum_j \alpha_{ij} h_j, \qquad
      \alpha_i = \mathrm{softmax}_j\big(v^\top \tanh(s_{i-1}W + h_jU)\big)$$

    Differs from the papers: one layer (the first has four); the logits come from $s_i$ alone and the decoder starts in
    the encoder's last state as it is (the second uses $y_{i-1}$ and $c_i$ for the logits too and maps the state first).

    Args:
        config: sizes and choices.

    Example:
        >>> model = Seq2Seq(Seq2SeqConfig(vocab_size=10, d_model=8, attention=True))
        >>> source_ids, target_ids = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])
        >>> model(source_ids, target_ids).shape, model.attention_weights(source_ids, target_ids).shape
        (torch.Size([1, 3, 10]), torch.Size([1, 3, 4]))
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        cell, d_model = CELLS[config.cell], config.d_model
        self.source_embedding = nn.Embedding(config.vocab_size, d_model)
        self.target_embedding = nn.Embedding(config.vocab_size, d_model)
        if config.bidirectional:
            self.encoder = RecurrentEncoder(cell(d_model, d_model // 2), cell(d_model, d_model // 2))
        else:
            self.encoder = RecurrentEncoder(cell(d_model, d_model))
        self.attention = AdditiveAttention(d_model, d_model, d_model) if config.attention else None
        self.decoder_cell = cell(2 * d_model if config.attention else d_model, d_model)
        self.to_logits = nn.Linear(d_model, config.vocab_size)

    def forward(
        self, source_ids: Int[Tensor, "batch source"], target_ids: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocab_size"]:
        """Logits of the next token at every position of the target, each given the true tokens before it.

        This is teacher forcing: the decoder reads the target, not its own guesses. It is still one step after another.

        Args:
            source_ids: the sentence to read, padded with ``pad_id`` anywhere.
            target_ids: the sentence to continue, beginning with the start token, padded anywhere.
        """
        return self.to_logits(hidden_of(self._teacher_forced(source_ids, target_ids)))

    def attention_weights(
        self, source_ids: Int[Tensor, "batch source"], target_ids: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target source"]:
        """How much the decoder looks at each source token, at each step of reading this target."""
        if self.attention is None:
            raise ValueError("this model has no attention: build it with Seq2SeqConfig(..., attention=True)")
        states = self._teacher_forced(source_ids, target_ids)
        source, _ = self.read(source_ids)
        query = hidden_of(states[:1] + states[:-1])  # step i looks from the state before it
        return self.attention.weights(query, *source)

    @torch.no_grad()
    def greedy(
        self, source_ids: Int[Tensor, "batch source"], *, bos_id: int, eos_id: int, max_new_tokens: int
    ) -> Int[Tensor, "batch target"]:
        """Write the most probable token at every step; a row ends with ``eos_id``, ``pad_id`` fills it up after that.

        Args:
            source_ids: the sentences to read, padded with ``pad_id`` anywhere.
            bos_id: the token that starts every target; the result does not repeat it.
            eos_id: the token that ends it.
            max_new_tokens: rows that have not ended by then are cut off.
        """
        if not (0 <= bos_id < self.config.vocab_size and 0 <= eos_id < self.config.vocab_size):
            raise ValueError(f"{bos_id=} and {eos_id=} must lie below the vocab_size of {self.config.vocab_size}")
        if eos_id == self.config.pad_id or max_new_tokens < 1:
            raise ValueError(f"{eos_id=} must not be the padding, and {max_new_tokens=} must be at least 1")
        source, state = self.read(source_ids)
        last = torch.full(source_ids.shape[:1], bos_id, device=source_ids.device)
        is_open = torch.ones_like(last, dtype=torch.bool)
        written: list[Tensor] = []
        while len(written) < max_new_tokens and is_open.any():
            state = self.step(last, state, source)
            logits = self.to_logits(state[0])
            logits[:, self.config.pad_id] = -math.inf  # padding is no word that could be written
            last = logits.argmax(dim=-1).masked_fill(~is_open, self.config.pad_id)
            is_open = is_open & (last != eos_id)
            written.append(last)
        return torch.stack(written, dim=1) if written else source_ids[:, :0]  # a batch without rows

    def read(self, source_ids: Int[Tensor, "batch source"]) -> tuple[Source, State]:
        """Run the encoder: what attention may look back at, and the state in which the decoder begins."""
        check_shapes(source_ids=(source_ids, "batch source"))
        is_real = source_ids != self.config.pad_id
        memory, state = self.encoder(self.source_embedding(source_ids), is_real)
        return Source(memory, is_real, None if self.attention is None else self.attention.to_key(memory)), state

    def step(self, token_ids: Int[Tensor, " batch"], state: State, source: Source) -> State:
        """Read the previous token of each row, after a look back where there is attention; give the new state."""
        inputs = self.target_embedding(token_ids)
        if self.attention is not None:
            query = rearrange(state[0], "batch d_model -> batch 1 d_model")
            context = rearrange(self.attention(query, *source), "batch 1 d_model -> batch d_model")
            inputs = torch.cat([inputs, context], dim=-1)
        return self.decoder_cell(inputs, state)

    def _teacher_forced(self, source_ids: Tensor, target_ids: Tensor) -> list[State]:
        """The decoder's states, that in which it begins first; padding is passed over."""
        check_shapes(source_ids=(source_ids, "batch source"), target_ids=(target_ids, "batch target"))
        source, state = self.read(source_ids)
        states, is_real = [state], target_ids != self.config.pad_id
        for t in range(target_ids.shape[1]):
            states.append(keep_where(is_real[:, t], self.step(target_ids[:, t], states[-1], source), states[-1]))
        return states
