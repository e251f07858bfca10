"""When a sequence is over: an end mark, a stop condition, or a limit."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

Stop = Callable[[tuple[int, ...]], bool]
"""Says of the new tokens of one sequence, the prompt left out, whether they are enough."""


def ends_with(*sequence: int) -> Stop:
    """The condition that the last tokens are these, in this order.

    Only new tokens count: a sequence that begins in the prompt is not found.

    Example:
        >>> is_over = ends_with(7, 8)
        >>> is_over((5, 7, 8)), is_over((7, 8, 5))
        (True, False)
    """
    if not sequence:
        raise ValueError("a stop sequence needs at least one token, but none was given")
    others = [token for token in sequence if not isinstance(token, SupportsIndex)]
    if others:
        raise TypeError(f"a stop sequence is given token by token, ends_with(7, 8), but {others[0]!r} is no token id")
    return lambda token_ids: tuple(token_ids[-len(sequence) :]) == sequence


@dataclass(frozen=True)
class Endings:
    """All that may end a sequence; the first that holds, in this order, is named.

    Args:
        eos_ids: the tokens that mark an end.
        stop: conditions on the new tokens, any of which is enough.
        max_new_tokens: the limit that the caller set.
    """

    eos_ids: tuple[int, ...]
    stop: tuple[Stop, ...]
    max_new_tokens: int

    def reason(self, token_ids: Sequence[int], limit: int) -> str:
        """What ends the sequence after these tokens; empty if nothing does.

        Args:
            token_ids: its new tokens.
            limit: how many it may have; less than ``max_new_tokens`` where the model's positions end earlier.
        """
        if token_ids[-1] in self.eos_ids:
            return "eos_id"
        if self.stop and any(is_over(tuple(token_ids)) for is_over in self.stop):
            return "stop"
        return self.cut(limit) if len(token_ids) >= limit else ""

    def cut(self, limit: int) -> str:
        """The name of a limit: the caller's, or else the model's."""
        return "max_new_tokens" if limit == self.max_new_tokens else "max_len"


def as_end_ids(eos_id: int | Iterable[int] | None, vocab_size: int) -> tuple[int, ...]:
    """One end mark, several or none, as a tuple without repetitions.

    Example:
        >>> as_end_ids(3, vocab_size=10), as_end_ids([5, 3, 5], vocab_size=10), as_end_ids(None, vocab_size=10)
        ((3,), (3, 5), ())
    """
    ids = () if eos_id is None else tuple(eos_id) if isinstance(eos_id, Iterable) else (eos_id,)
    for one in ids:
        check_token_id("eos_id", one, vocab_size)
    return tuple(sorted({int(one) for one in ids}))


def check_token_id(name: str, token_id: int, vocab_size: int) -> None:
    """Refuse an id that the model has no token for."""
    if not isinstance(token_id, SupportsIndex) or not 0 <= token_id < vocab_size:
        raise ValueError(
            f"{name} must be a token id of the model's vocabulary, from 0 to {vocab_size - 1}, but is {token_id}"
        )
