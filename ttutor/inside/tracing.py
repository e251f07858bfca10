"""Where does a model keep what it needs for its answer? Carry single intermediates from one run into another."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.errors import ShapeError
from ttutor.inside.capture import Captured, capture
from ttutor.inside.patching import Replacement, patch

Measure = Callable[[], Tensor]


@dataclass(frozen=True)
class Trace:
    """What came of restoring each intermediate at each token.

    Args:
        names: the intermediates, the rows of the table.
        source: the measure of the run that intermediates were taken from.
        target: the measure of the run that they were put into, before anything was put in.
        table: the measure with the intermediate of this row, at the token of this column, taken from the source.
    """

    names: list[str]
    source: float
    target: float
    table: Float[Tensor, "names tokens"]

    def recovered(self) -> Float[Tensor, "names tokens"]:
        """The table on a scale on which the target run is 0 and the source run 1."""
        if self.source == self.target:
            raise ZeroDivisionError(f"source and target run both measure {self.source}: there is nothing to recover")
        return (self.table - self.target) / (self.source - self.target)


def activation_patching(model: nn.Module, source: Measure, target: Measure, *names: str) -> Trace:
    """Put intermediates of one run into another, one name and one token at a time.

    Both runs go through the same model, on texts of equal length that differ where it matters. Vig et al. (2020) call
    this causal mediation analysis.

    Args:
        model: the model that both functions run.
        source: runs the model and gives a number, such as the logit of the right answer.
        target: the same for the other text.
        names: intermediates whose second-last axis is that of the tokens, such as ``"decoder.layers.*"``.
    """
    with torch.no_grad():
        with capture(model, *names) as seen:
            from_source = source()
        return _restore_each(model, target, seen, from_source.item())


def causal_trace(model: nn.Module, measure: Measure, corruption: Mapping[str, Replacement], *names: str) -> Trace:
    """Spoil a run, restore one clean intermediate at one token, and see how much of the answer comes back.

    Meng et al. (2022), section 2.1: the input embeddings of the subject are spoiled by noise, and for every layer and
    token the state of the clean run is restored; where the answer comes back, something decisive passes.

    Args:
        model: the model that ``measure`` runs.
        measure: runs the model and gives a number, such as the probability of the right answer.
        corruption: what spoils the run, as for `patch`. It must do the same at each run: draw the noise beforehand.
        names: intermediates whose second-last axis is that of the tokens, such as ``"decoder.layers.*"``.

    Each intermediate is restored alone; the paper restores ten neighbouring sublayers together.

    Example:
        >>> from ttutor.encoder import Encoder
        >>> encoder, hidden = Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=2), torch.randn(1, 5, 8)
        >>> trace = causal_trace(encoder, lambda: encoder(hidden)[0, -1, 0], {"layers.0.input": torch.zeros_like},
        ...                      "layers.*")
        >>> trace.table.shape, round(trace.recovered()[-1, -1].item(), 4)  # the last state alone decides
        (torch.Size([2, 5]), 1.0)
    """
    with torch.no_grad():
        with capture(model, *names) as seen:
            clean = measure()
        with patch(model, corruption):
            return _restore_each(model, measure, seen, clean.item())


def _restore_each(model: nn.Module, target: Measure, seen: Captured, source: float) -> Trace:
    """The table: for each name and token, the measure of the target run with that part of the source run."""
    names = list(seen)
    n_tokens = {seen[name].shape[-2] for name in names}
    if len(n_tokens) != 1:
        raise ValueError(f"the names must share one number of tokens, but these came: {sorted(n_tokens)}")
    untouched = target().item()
    rows = []
    for name in names:
        measured = []
        for token in range(*n_tokens):
            with patch(model, {name: partial(_at_token, seen[name], token)}):
                measured.append(target())
        rows.append(torch.stack(measured))
    return Trace(names, source, untouched, torch.stack(rows))


def _at_token(source: Tensor, token: int, value: Tensor) -> Tensor:
    if source.shape != value.shape:
        raise ShapeError(f"both runs must have one shape, but are {tuple(source.shape)} and {tuple(value.shape)}")
    restored = value.clone()
    restored[..., token, :] = source[..., token, :]
    return restored
