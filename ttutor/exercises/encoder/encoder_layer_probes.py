"""What is true of every right encoder layer, whatever its code looks like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ttutor.exercises.exercise import Property, Trial
from ttutor.exercises.probes import batch_independent, depends

__all__ = ["properties"]


def properties(reference: Callable[..., torch.Tensor]) -> tuple[Property, ...]:
    """The layer's properties in the order in which they are asked; the last one needs a right layer to compare with."""
    return (
        Property(
            id="identity_without_writing",
            says="Where no sublayer writes, the stream must pass unchanged: follow it from input to output. "
            "Which line does something to it?",
            broken=_stream_that_is_lost,
        ),
        Property(
            id="norms_come_first",
            says="A norm in front makes a sublayer blind to the size of its input. What exactly does this "
            "sublayer read?",
            broken=_size_that_matters,
        ),
        depends(
            "In an encoder every token sees every other, earlier and later ones: what keeps yours from it?",
            _everywhere,
            id="looks_both_ways",
        ),
        batch_independent(
            "Over which axes do you attend, and over which do you normalise? The sequences of a batch must not "
            "influence each other.",
            id="sequences_apart",
        ),
        Property(
            id="maps_in_their_places",
            says="Each of the four maps has one task: queries, keys, values, and the merged heads. Which weight "
            "stands where in your code?",
            broken=_map_with_another_task,
        ),
        Property(
            id="one_half_is_off",
            says="The two halves can be tried apart, by setting the output weights of the other to zero; the "
            "half that is right needs no more of your time.",
            broken=lambda trial: _half_that_is_off(trial, reference),
        ),
    )


def _silenced(inputs, *, attention, network):
    """The same inputs with the output weights of one sublayer, or of both, at zero."""
    hidden, norm_1, maps, norm_2, (w_1, b_1, w_2, b_2), n_heads = inputs
    maps = (*maps[:3], torch.zeros_like(maps[3])) if attention else maps
    last = (torch.zeros_like(w_2), torch.zeros_like(b_2)) if network else (w_2, b_2)
    return hidden, norm_1, maps, norm_2, (w_1, b_1, *last), n_heads


def _stream_that_is_lost(trial: Trial) -> str | None:
    """Let neither sublayer write: the input must come out as it is."""
    silenced = _silenced(trial.inputs, attention=True, network=True)
    gap = (trial.run(*silenced) - trial.inputs[0]).abs().max().item()
    if gap < 1e-4:
        return None
    return f"With the output weights of both sublayers at zero, your layer is off its input by up to {gap:.2g}."


def _size_that_matters(trial: Trial) -> str | None:
    """Double the input: what the sublayer behind a norm writes may not change."""
    for silent, name in (("network", "attention"), ("attention", "the feed-forward network")):
        inputs = _silenced(trial.inputs, attention=silent == "attention", network=silent == "network")
        hidden, *rest = inputs
        once, twice = trial.run(hidden, *rest) - hidden, trial.run(2 * hidden, *rest) - 2 * hidden
        if (once - twice).abs().max() > 1e-2 * once.abs().max():
            return f"With the input doubled, {name} writes something else, by up to {(once - twice).abs().max():.2g}."
    return None


def _everywhere(hidden, *_):
    """The map in which every output moves with every token."""
    return torch.ones(hidden.shape[1], hidden.shape[1], dtype=torch.bool)


def _map_with_another_task(trial: Trial) -> str | None:
    """Set one map of attention to zero after another, with the network silent, and look at what is still written."""
    hidden, norm_1, maps, *rest = _silenced(trial.inputs, attention=False, network=True)
    for number, name in enumerate(("w_query", "w_key", "w_value", "w_output")):
        without = tuple(torch.zeros_like(part) if place == number else part for place, part in enumerate(maps))
        written = trial.run(hidden, norm_1, without, *rest) - hidden
        if number < 2 and (written - written[:, :1]).abs().max() > 1e-4:
            return f"With `{name}` at zero all scores are equal, but the tokens still receive different things."
        if number >= 2 and written.abs().max() > 1e-4:
            most = written.abs().max().item()
            return f"With `{name}` at zero attention should write nothing, but it writes up to {most:.2g}."
    return None


def _half_that_is_off(trial: Trial, reference: Callable[..., torch.Tensor]) -> str | None:
    """Silence one half after the other: is exactly one of them wrong by itself?"""
    is_off = {}
    for name in ("attention", "network"):
        inputs = _silenced(trial.inputs, attention=name == "network", network=name == "attention")
        gap = (trial.run(*inputs) - reference(*inputs)).abs().max().item()
        is_off[name] = gap > 1e-3
    if is_off["attention"] == is_off["network"]:
        return None
    wrong, right = ("attention", "the network") if is_off["attention"] else ("the network", "attention")
    return f"With {wrong} silent your layer is right, with {right} silent it is off: the trouble is in {wrong}."
