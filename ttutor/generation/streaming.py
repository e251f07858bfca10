"""The loop: feed a token of each sequence, choose the next ones, hand them out as they come."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.evaluating import evaluating
from ttutor.generation.hypothesis import NewToken
from ttutor.generation.next_token import new_token_limits, next_log_probabilities
from ttutor.generation.ranking import most_probable
from ttutor.generation.stopping import Endings, Stop, as_end_ids
from ttutor.generation.writer import Prompt, check_writes
from ttutor.names import answers_other_names

Choose = Callable[[Tensor, list[int]], Tensor]
"""Picks a token of each distribution; it is told which sequences of the batch they belong to."""

Filter = Callable[[Tensor, Tensor], Tensor]
"""Makes other log probabilities, in view of the history: ``partial(with_repetition_penalty, penalty=1.2)``, say."""


@answers_other_names
def stream(
    model: nn.Module,
    token_ids: Int[Tensor, "batch tokens"],
    *,
    max_new_tokens: int,
    is_real: Bool[Tensor, "batch tokens"] | None = None,
    bos_id: int | None = None,
    eos_id: int | Iterable[int] | None = None,
    stop: Sequence[Stop] = (),
    filters: Sequence[Filter] = (),
    choose: Choose = most_probable,
    prefix: Prompt | None = None,
) -> Iterator[NewToken]:
    """Generate token by token: in every step, one `NewToken` for each sequence that is not over yet.

    Sequences that are over leave the batch. The model is in evaluation mode from the first token asked for until the
    last one, or until the iterator is closed, as a loop that is left early does.

    Args:
        model: an encoder-decoder or a decoder-only model.
        token_ids: the sentences to read or the prompts to continue.
        max_new_tokens: at most this many tokens each, the end mark included; also no more than the model has positions
            for.
        is_real: which tokens of the prompts count; all when left out. An encoder-decoder knows by its ``pad_id``.
        bos_id: the token that starts every target, for an encoder-decoder.
        eos_id: the token that ends a sequence, or several such tokens.
        stop: conditions on the new tokens of one sequence; any of them ends it, as `ends_with` does.
        filters: functions of the log probabilities and the history, applied in turn before the choice.
        choose: picks the tokens; a `Sampler` draws them.
        prefix: what all prompts go on from, read once by `read_prompt`.

    Example:
        >>> from ttutor.variants.gpt import GPT, GPTConfig
        >>> model = GPT(GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> [(new.row, new.ended_by) for new in stream(model, torch.tensor([[7, 8, 9]]), max_new_tokens=2)]
        [(0, ''), (0, 'max_new_tokens')]
    """
    check_max_new_tokens(max_new_tokens)
    endings = Endings(as_end_ids(eos_id, check_writes(model).config.vocab_size), tuple(stop), max_new_tokens)
    return _stream(model, token_ids, is_real, bos_id, endings, tuple(filters), choose, prefix)


def _stream(
    model: nn.Module,
    token_ids: Int[Tensor, "batch tokens"],
    is_real: Bool[Tensor, "batch tokens"] | None,
    bos_id: int | None,
    endings: Endings,
    filters: tuple[Filter, ...],
    choose: Choose,
    prefix: Prompt | None,
) -> Iterator[NewToken]:
    writer = check_writes(model)
    with evaluating(model):
        with torch.inference_mode():
            state, last = writer.start(token_ids, is_real=is_real, bos_id=bos_id, prefix=prefix)
        limits = new_token_limits(writer, state, endings.max_new_tokens)
        tokens: list[list[int]] = [[] for _ in limits]
        rows = list(range(len(limits)))  # the sequences that are still in the batch
        while rows:
            chosen, gains, going_on = [], [], []
            with torch.inference_mode():
                for part, log_probabilities in next_log_probabilities(writer, state, last):
                    filtered = _filtered(log_probabilities, filters, state.history[part], rows[part])
                    chosen.append(choose(filtered, rows[part]))
                    gains += log_probabilities.gather(1, rearrange(chosen[-1], "rows -> rows 1")).flatten().tolist()
                last = torch.cat(chosen)
            for place, (row, token, gain) in enumerate(zip(rows, last.tolist(), gains, strict=True)):
                tokens[row].append(token)
                ended_by = endings.reason(tokens[row], limits[row])
                yield NewToken(row, token, gain, ended_by)
                if not ended_by:
                    going_on.append(place)
            if 0 < len(going_on) < len(rows):
                with torch.inference_mode():
                    kept = torch.tensor(going_on, device=last.device)
                    state.select(kept)
                    last = last[kept]
            rows = [rows[place] for place in going_on]


def _filtered(
    log_probabilities: Float[Tensor, "rows vocab_size"],
    filters: tuple[Filter, ...],
    history: Int[Tensor, "rows tokens"],
    rows: list[int],
) -> Float[Tensor, "rows vocab_size"]:
    if not filters:
        return log_probabilities
    for change in filters:
        log_probabilities = change(log_probabilities, history)
    is_one = (log_probabilities > float("-inf")).any(dim=-1) & ~log_probabilities.isnan().any(dim=-1)
    has_token = is_one.tolist()  # where a NaN is, there is no distribution
    if not all(has_token):
        row = rows[has_token.index(False)]
        raise ValueError(f"the filters left no token for sequence {row}: forbid less, or generate less")
    return log_probabilities


def check_max_new_tokens(max_new_tokens: int) -> None:
    """Refuse to generate nothing."""
    if type(max_new_tokens) is not int or max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be a whole number of at least 1, but is {max_new_tokens!r}")
