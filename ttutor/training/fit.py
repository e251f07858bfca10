"""The one short training loop that chapters use for small models; the translator has a trainer of its own."""

import math
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn
from tqdm import tqdm

from ttutor.errors import SYMPTOMS_PAGE
from ttutor.names import answers_other_names

__all__ = ["fit"]


@answers_other_names
def fit(
    model: nn.Module,
    batches: Iterable[object],
    loss: Callable[[nn.Module, object], Tensor],
    *,
    steps: int,
    learning_rate: float | Callable[[int], float] = 1e-3,
    clip_norm: float | None = 1.0,
    quiet: bool = False,
) -> list[float]:
    """Train a model for some steps with Adam; give the loss of every step.

    Args:
        model: what is trained, in place. It is left in evaluation mode. A small one is fastest on one thread, above
            all where other programs run: ``torch.set_num_threads(1)``.
        batches: where batches come from, on the model's device; begun again when it runs out, so a list will do.
        loss: maps the model and a batch to the loss, one number.
        steps: how many batches are used.
        learning_rate: a number, or a function from the step (1, 2, 3, ...) to a number.
        clip_norm: the gradient is scaled down to this norm where it is longer; None leaves it alone.
        quiet: show no progress bar; without a terminal there is none anyway, nor in a training of less than a second.

    Raises:
        TypeError: the first is no model, or the batches came as one tensor.
        ValueError: there are too few batches, the loss is not one number, or the number of steps is negative.
        FloatingPointError: loss or gradient is not finite; the message names the step, the weights stay as before it.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> inputs = torch.randn(64, 3)
        >>> batch = (inputs, inputs.sum(dim=-1, keepdim=True))
        >>> losses = fit(nn.Linear(3, 1), [batch], lambda model, b: (model(b[0]) - b[1]).square().mean(),
        ...              steps=300, learning_rate=0.05)
        >>> losses[0] > 0.5 and losses[-1] < 1e-3
        True
    """
    if not isinstance(model, nn.Module) or isinstance(batches, Tensor):
        came = f"{type(model).__name__} and {type(batches).__name__}"
        raise TypeError(f"expected a model and batches, such as a list or tensor.split(32), but came {came}")
    if steps < 0:
        raise ValueError(f"steps must not be negative, but is {steps}")
    rate = learning_rate if callable(learning_rate) else lambda step: learning_rate
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(1), foreach=True)  # on a CPU, too: the same bits sooner
    losses: list[float] = []
    model.train()
    bar = tqdm(total=steps, desc="training", unit="step", delay=1.0, leave=False, disable=True if quiet else None)
    for step, batch in enumerate(_repeated(batches, steps), start=1):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.zero_grad()
        value = loss(model, batch)
        if value.numel() != 1:
            raise ValueError(f"the loss must be one number, but has shape {tuple(value.shape)}; take its mean()")
        value.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf if clip_norm is None else clip_norm)
        if not (torch.isfinite(value) and torch.isfinite(norm)):
            raise FloatingPointError(
                f"the loss is {value.item()} and the gradient's norm {norm.item()} at step {step}; "
                f"a smaller learning rate may help; {SYMPTOMS_PAGE}"
            )
        optimizer.step()
        losses.append(value.item())
        bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
        bar.update()
    bar.close()
    model.eval()
    return losses


def _repeated(batches: Iterable[object], steps: int) -> Iterator[object]:
    """A batch for each step; they are begun again where they run out."""
    source = iter(batches)
    for step in range(steps):
        batch = next(source, None)
        if batch is None:
            source = iter(batches)
            batch = next(source, None)
        if batch is None:
            raise ValueError(
                f"`batches` was at its end after {step} of {steps} steps and gave nothing when it was begun again; "
                "a generator gives its batches once: pass a list"
            )
        yield batch
