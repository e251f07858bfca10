"""A step of every search: feed a token of each row, get the distribution of the token after it."""

from collections.abc import Iterator

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache
from ttutor.errors import SYMPTOMS_PAGE
from ttutor.evaluating import evaluating
from ttutor.generation.writer import Prompt, Writer, WritingState, check_writes, max_len
from ttutor.shapes import check_shapes

LOGITS_PER_CHUNK = 2**19
"""How many logits a CPU makes at a time, so that they are ranked while they are in its cache."""


def next_log_probabilities(
    model: Writer, state: WritingState, token_ids: Int[Tensor, " rows"], *, group_size: int = 1
) -> Iterator[tuple[slice, Float[Tensor, "chunk vocab_size"]]]:
    """Append a token to each row; give the distribution of the token after it, some rows at a time.

    Args:
        model: what predicts.
        state: what it remembers of the rows; it is extended.
        token_ids: the token of each row.
        group_size: how many neighbouring rows always come together, as those of a beam.

    Yields:
        Which rows they are, and their natural logarithms of probabilities.
    """
    hidden = model.step(state, rearrange(token_ids, "rows -> rows 1"))[:, -1]
    n_groups = max(1, LOGITS_PER_CHUNK // (group_size * model.config.vocab_size)) if hidden.is_cpu else len(hidden)
    for start in range(0, len(hidden), n_groups * group_size):
        logits = model.project(hidden[start : start + n_groups * group_size])
        precise = torch.promote_types(logits.dtype, torch.float32)  # bfloat16 cannot sum over a vocabulary
        log_probabilities = logits.to(precise).log_softmax(dim=-1)
        if log_probabilities[:, 0].isnan().any():  # a single NaN among the logits makes its whole row NaN
            raise FloatingPointError(
                f"the model's probabilities are NaN: its weights are damaged, or training diverged; {SYMPTOMS_PAGE}"
            )
        yield slice(start, start + len(logits)), log_probabilities


def new_token_limits(model: Writer, state: WritingState, max_new_tokens: int) -> list[int]:
    """How many tokens each row may get: ``max_new_tokens``, or as many as the model has positions left for.

    The last token needs no position, since nothing is asked after it.
    """
    n_read = (state.history >= 0).sum(dim=-1).tolist()
    return [int(min(max_new_tokens, max_len(model.config) - n)) for n in n_read]


@torch.inference_mode()
def read_prompt(model: nn.Module, token_ids: Int[Tensor, "1 tokens"], *, chunk_size: int = 512) -> Prompt:
    """Let a decoder-only model read a text once, to generate from that ``prefix`` as often as one likes.

    It is read in chunks, each looking at those before it in the cache, so that the table of scores is no larger than
    ``chunk_size`` times the text: chunked prefill, Agrawal et al. (2023).

    Args:
        model: the model.
        token_ids: the text.
        chunk_size: how many tokens are read at a time.

    Example:
        >>> from ttutor.generation import greedy_search
        >>> from ttutor.variants.gpt import GPT, GPTConfig
        >>> model = GPT(GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> rules = read_prompt(model, torch.tensor([[3, 1, 4, 1, 5]]), chunk_size=2)
        >>> questions = torch.tensor([[7, 8], [9, 2]])
        >>> len(greedy_search(model, questions, max_new_tokens=4, prefix=rules))
        2
    """
    check_shapes(token_ids=(token_ids, "1 tokens"))
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, but is {chunk_size}")
    writer = check_writes(model)
    state = WritingState(token_ids[:, :0], DecoderCache(writer.config.n_layers))
    with evaluating(model):
        for chunk in token_ids.split(chunk_size, dim=1):
            writer.step(state, chunk)
    return Prompt(token_ids, state.cache)
