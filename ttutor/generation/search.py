"""Greedy search and sampling: one sequence for each row of the batch."""

from collections.abc import Iterable, Sequence

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.generation.filters import top_k_only, top_p_only, with_temperature
from ttutor.generation.hypothesis import Hypothesis, collect
from ttutor.generation.stopping import Stop
from ttutor.generation.streaming import Filter, stream
from ttutor.generation.writer import Prompt
from ttutor.names import answers_other_names


@answers_other_names
def greedy_search(
    model: nn.Module,
    token_ids: Int[Tensor, "batch tokens"],
    *,
    max_new_tokens: int,
    is_real: Bool[Tensor, "batch tokens"] | None = None,
    bos_id: int | None = None,
    eos_id: int | Iterable[int] | None = None,
    stop: Sequence[Stop] = (),
    filters: Sequence[Filter] = (),
    prefix: Prompt | None = None,
) -> list[Hypothesis]:
    r"""Take the most probable token at every step, until the end mark, a stop condition or the limit.

    $$y_t = \arg\max_y\, p(y \mid y_{<t})$$

    What comes out need not be the most probable sequence: a good token now may lead to bad ones later.

    Args:
        model: an encoder-decoder or a decoder-only model; it is put into evaluation mode for the call and back
            afterwards.
        token_ids: the sentences to read, padded anywhere, or the prompts to continue.
        max_new_tokens, is_real, bos_id, eos_id, stop, filters, prefix: as for `stream`.

    Example:
        >>> from ttutor.variants.gpt import GPT, GPTConfig
        >>> model = GPT(GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> (hypothesis,) = greedy_search(model, torch.tensor([[7, 8, 9]]), max_new_tokens=4)
        >>> len(hypothesis.token_ids), hypothesis.ended_by
        (4, 'max_new_tokens')
    """
    new_tokens = stream(
        model,
        token_ids,
        max_new_tokens=max_new_tokens,
        is_real=is_real,
        bos_id=bos_id,
        eos_id=eos_id,
        stop=stop,
        filters=filters,
        prefix=prefix,
    )
    return collect(new_tokens, len(token_ids))


@answers_other_names
def sample(
    model: nn.Module,
    token_ids: Int[Tensor, "batch tokens"],
    *,
    max_new_tokens: int,
    generator: torch.Generator | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    is_real: Bool[Tensor, "batch tokens"] | None = None,
    bos_id: int | None = None,
    eos_id: int | Iterable[int] | None = None,
    stop: Sequence[Stop] = (),
    filters: Sequence[Filter] = (),
    prefix: Prompt | None = None,
) -> list[Hypothesis]:
    r"""Draw every token at random, by its probability: $y_t \sim p(y \mid y_{<t})$.

    For several samples of one prompt, repeat it in the batch.
    What a row gets depends on the generator, on which row it is and on what it holds, never on the other rows.

    Args:
        model, token_ids: as for `greedy_search`.
        generator, temperature, top_k, top_p: as for `Sampler`.
        max_new_tokens, is_real, bos_id, eos_id, stop, filters, prefix: as for `stream`; filters come first.

    Example:
        >>> from ttutor.variants.gpt import GPT, GPTConfig
        >>> model = GPT(GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> prompts, generator = torch.tensor([[7, 8, 9], [7, 8, 9]]), torch.Generator().manual_seed(0)
        >>> first, second = sample(model, prompts, generator=generator, max_new_tokens=4, top_k=20)
        >>> len(first.token_ids), len(second.token_ids)
        (4, 4)
    """
    new_tokens = stream(
        model,
        token_ids,
        max_new_tokens=max_new_tokens,
        is_real=is_real,
        bos_id=bos_id,
        eos_id=eos_id,
        stop=stop,
        filters=filters,
        choose=Sampler(generator, temperature=temperature, top_k=top_k, top_p=top_p),
        prefix=prefix,
    )
    return collect(new_tokens, len(token_ids))


class Sampler:
    """Draws a token from each distribution, after temperature, then top-k, then top-p.

    Every sequence has a random generator of its own, seeded from the given one when the sequence first comes, so that
    how long one sequence grows does not change what another gets. Make a new sampler for another batch.

    Args:
        generator: the source of randomness, on the model's device; torch's own, which ``torch.manual_seed`` seeds, when
            left out.
        temperature: as for `ttutor.generation.with_temperature`.
        top_k: as for `ttutor.generation.top_k_only`; no such limit when left out.
        top_p: as for `ttutor.generation.top_p_only`; no such limit when left out.

    Example:
        >>> draw = Sampler(torch.Generator().manual_seed(0), top_k=2)
        >>> p = torch.tensor([[0.5, 0.1, 0.4], [0.0, 0.0, 1.0]])
        >>> draw.distribution(p.log()).exp()
        tensor([[0.5556, 0.0000, 0.4444],
                [0.0000, 0.0000, 1.0000]])
        >>> int(draw(p.log(), rows=[0, 1])[1])
        2
    """

    def __init__(
        self,
        generator: torch.Generator | None = None,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> None:
        self.generator = generator
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p
        self.generator_of: dict[int, torch.Generator] = {}
        self.distribution(torch.zeros(1, 2))  # refuses what is out of range before a model runs

    def distribution(self, log_probabilities: Float[Tensor, "... vocab_size"]) -> Float[Tensor, "... vocab_size"]:
        """The log probabilities that tokens are drawn by."""
        changed = with_temperature(log_probabilities, self.temperature)
        changed = changed if self.top_k is None else top_k_only(changed, self.top_k)
        return changed if self.top_p is None else top_p_only(changed, self.top_p)

    def __call__(self, log_probabilities: Float[Tensor, "rows vocab_size"], rows: list[int]) -> Int[Tensor, " rows"]:
        """Draw a token for each of these sequences."""
        device = log_probabilities.device
        if self.generator is not None and self.generator.device.type != device.type:
            raise ValueError(
                f"the generator is on {self.generator.device}, but the probabilities on {device}: "
                f"make it with torch.Generator({str(device)!r})"
            )
        probabilities = self.distribution(log_probabilities).exp()
        drawn = [
            torch.multinomial(of_row, 1, generator=self._generator(row, device))
            for row, of_row in zip(rows, probabilities, strict=True)
        ]
        return rearrange(drawn, "rows 1 -> rows")

    def _generator(self, row: int, device: torch.device) -> torch.Generator:
        if row not in self.generator_of:
            seed = int(torch.randint(2**63 - 1, (), generator=self.generator, device=device))
            self.generator_of[row] = torch.Generator(device).manual_seed(seed)
        return self.generator_of[row]
