"""Reach inside: replace an intermediate while the model runs, and see what becomes of the result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from einops import reduce
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.errors import ShapeError
from ttutor.inside.taps import ATTENTION_PARTS, Site, find_sites, open_taps

Replacement = Tensor | Callable[[Tensor], Tensor]


@contextmanager
def patch(model: nn.Module, replacements: Mapping[str, Replacement]) -> Iterator[None]:
    """Replace intermediates while the context is open.

    Args:
        model: any model of ours.
        replacements: for each name or pattern (see `ttutor.inside.taps`) the tensor to go on with, or a function from
            what the model computed to what it goes on with. Patched attention weights are used as they are,
            without dropout. Where patches meet at one place, the one opened later has the last word.

    Example:
        >>> from ttutor.encoder import Encoder
        >>> encoder, hidden = Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=1, norm="pre"), torch.randn(1, 5, 8)
        >>> silent = {"layers.0.self_attention": torch.zeros_like, "layers.0.feed_forward": torch.zeros_like}
        >>> with patch(encoder, silent):
        ...     torch.equal(encoder(hidden), encoder.final_norm(hidden))
        True
    """
    edits = [
        (site, partial(_replace, name, replacement))
        for pattern, replacement in replacements.items()
        for name, site in find_sites(model, pattern).items()
    ]
    with open_taps(edits, edit=True):
        yield


def _replace(name: str, replacement: Tensor | Callable[[Any], Any], value: Any) -> Any:
    new = replacement if isinstance(replacement, Tensor) else replacement(value)
    if not isinstance(value, Tensor):
        return new  # of a module with several outputs, such as an LSTM's state; its caller knows what it expects
    if not isinstance(new, Tensor):
        raise TypeError(f"the patch for {name!r} must be a tensor, but is {type(new).__name__}")
    if new.shape != value.shape:
        raise ShapeError(f"the patch for {name!r} is {tuple(new.shape)}, but the model computed {tuple(value.shape)}")
    if new.dtype != value.dtype:
        raise TypeError(f"the patch for {name!r} is {new.dtype}, but the model computed {value.dtype}")
    return new


@contextmanager
def ablate(
    model: nn.Module,
    *names: str,
    heads: Sequence[int] | None = None,
    tokens: Sequence[int] | None = None,
    by: str | Tensor = "zero",
) -> Iterator[None]:
    """Take away what an intermediate carries: a sublayer's output, some heads of an attention layer, some tokens.

    Args:
        model: any model of ours.
        names: what is taken away. ``"decoder.layers.0.feed_forward"`` silences a sublayer;
            ``"decoder.layers.0.self_attention.context"`` with ``heads=[2]`` one head; ``"**.self_attention.v"`` with
            ``tokens=[0]`` what the first token hands over, though it is still looked at.
        heads: only these heads, in one of an attention layer's ``q k v weights context``.
        tokens: only these positions (rows, of the weights).
        by: what stands there instead: ``"zero"``; ``"mean"``, the mean over batch and tokens in this very run; or a
            tensor that broadcasts, such as a mean over other data.

    Example:
        >>> from ttutor.encoder import Encoder
        >>> encoder, hidden = Encoder(d_model=8, n_heads=2, d_ff=16, n_layers=1), torch.randn(1, 5, 8)
        >>> with ablate(encoder, "layers.0.self_attention.context", heads=[1]):
        ...     without = encoder(hidden)
        >>> torch.allclose(without, encoder(hidden))
        False
    """
    if isinstance(by, str) and by not in ("zero", "mean"):
        raise ValueError(f'by must be "zero", "mean" or a tensor, but is {by!r}')
    sites = find_sites(model, *names)
    for name, site in sites.items():
        if heads is not None and site.part not in ATTENTION_PARTS:
            raise ValueError(
                f"{name!r} has no heads: heads are ablated in {', '.join(ATTENTION_PARTS)} of an attention layer, "
                "as in 'layers.0.self_attention.context'"
            )
    edits = [(site, partial(_without, name, site, heads, tokens, by)) for name, site in sites.items()]
    with open_taps(edits, edit=True):
        yield


def _without(
    name: str,
    site: Site,
    heads: Sequence[int] | None,
    tokens: Sequence[int] | None,
    by: str | Tensor,
    value: Float[Tensor, "batch ... tokens features"],
) -> Float[Tensor, "batch ... tokens features"]:
    """The value with its heads and tokens (all, where None) replaced."""
    if isinstance(by, Tensor):
        if not _broadcasts(by.shape, value.shape):
            raise ShapeError(
                f"by has shape {tuple(by.shape)}, which does not broadcast to {name!r}: {tuple(value.shape)}"
            )
        instead = by.to(value).expand_as(value)
    elif by == "mean":
        instead = reduce(value, "batch ... tokens features -> 1 ... 1 features", "mean").expand_as(value)
    else:
        instead = torch.zeros_like(value)
    gone = torch.ones_like(value, dtype=torch.bool)
    for axis, indices in ((1, heads), (-2, tokens)):
        if indices is None:
            continue
        size = value.shape[axis]
        if not all(-size <= index < size for index in indices):
            kind = "heads" if axis == 1 else "tokens"
            raise IndexError(f"{name!r} has {size} {kind}, so {kind}={list(indices)} cannot be ablated")
        kept = torch.ones(size, dtype=torch.bool, device=value.device)
        kept[[int(index) for index in indices]] = False
        gone.index_fill_(axis, kept.nonzero()[:, 0], False)
    return torch.where(gone, instead, value)


def _broadcasts(shape: torch.Size, wanted: torch.Size) -> bool:
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(size in (1, there) for size, there in pairs)


def ablation_effects(
    model: nn.Module, measure: Callable[[], Tensor], *, by: str | Tensor = "zero"
) -> dict[str, Float[Tensor, " heads"]]:
    """How much a number changes when each head alone is taken away: the bars of a head-ablation study.

    Michel et al. (2019), section 3.2.

    Args:
        model: the model that ``measure`` runs.
        measure: runs the model and gives a number, such as the loss on held-out text.
        by: as for `ablate`.

    Returns:
        For each layer's ``context``, the measure without each head minus the measure of the whole model.
    """
    with torch.no_grad():
        whole = measure()
        effects = {}
        for name, site in find_sites(model, "**.context").items():
            changes = []
            for head in range(site.module.n_heads):
                with ablate(model, name, heads=[head], by=by):
                    changes.append(measure() - whole)
            effects[name] = torch.stack(changes)
    return effects
