"""What generation gives: whole sequences, or one token at a time."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """A generated sequence.

    Attributes:
        token_ids: the new tokens, without those that mark start and end; a stop sequence is kept.
        log_probability: natural logarithm of the sequence's probability under the model, unfiltered, the end mark's
            included if it came.
        is_finished: whether the end mark or a stop condition came; otherwise a limit cut the sequence off.
        score: what ranked it; the log probability, divided by the length penalty in beam search.
        ended_by: the name of what ended it: ``"eos_id"``, ``"stop"``, ``"max_new_tokens"``, or ``"max_len"`` when the
            model's positions were used up; empty where it is not told.
    """

    token_ids: tuple[int, ...]
    log_probability: float
    is_finished: bool
    score: float
    ended_by: str = ""


@dataclass(frozen=True)
class NewToken:
    """A token that a row of the batch just got.

    Attributes:
        row: which sequence of the batch.
        token_id: the token; an end mark is reported too.
        log_probability: natural logarithm of its probability under the model, unfiltered.
        ended_by: what ended the row with this token, as in `Hypothesis`; empty while it goes on.
    """

    row: int
    token_id: int
    log_probability: float
    ended_by: str = ""


def collect(new_tokens: Iterable[NewToken], n_rows: int) -> list[Hypothesis]:
    """Put the tokens of each row together.

    Example:
        >>> collect([NewToken(0, 7, -0.5), NewToken(0, 3, -0.25, "eos_id")], n_rows=1)
        [Hypothesis(token_ids=(7,), log_probability=-0.75, is_finished=True, score=-0.75, ended_by='eos_id')]
    """
    tokens: list[list[int]] = [[] for _ in range(n_rows)]
    totals, endings = [0.0] * n_rows, [""] * n_rows
    for new in new_tokens:
        totals[new.row] += new.log_probability
        endings[new.row] = new.ended_by
        if new.ended_by != "eos_id":
            tokens[new.row].append(new.token_id)
    return [
        Hypothesis(tuple(ids), total, ended_by in ("eos_id", "stop"), total, ended_by)
        for ids, total, ended_by in zip(tokens, totals, endings, strict=True)
    ]
