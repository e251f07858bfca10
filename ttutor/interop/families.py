"""What a family of published models is to us: how its config and its tensors are read and written."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ttutor.errors import SettingError
from ttutor.interop.rules import Rule


@dataclass(frozen=True)
class Family:
    """How to read and write one family.

    Attributes:
        model_type: what a config of theirs calls the family.
        model: our class, or classes where the family has several heads.
        build: makes our model, weights still random, from their config and the names of their tensors.
        describe: makes their config from our model.
        rules: the tensors, for a model of ours.
        normalise: renames tensors of older or smaller checkpoints, with this config, to the names that the rules use.
    """

    model_type: str
    model: type[nn.Module] | tuple[type[nn.Module], ...]
    build: Callable[[Mapping[str, Any], Mapping[str, Tensor]], nn.Module]
    describe: Callable[[Any], dict[str, Any]]
    rules: Callable[[Any], Iterable[Rule]]
    normalise: Callable[[dict[str, Tensor], Mapping[str, Any]], dict[str, Tensor]] = lambda tensors, config: tensors


def agree(theirs: Mapping[str, Any], **demands: object) -> None:
    """Check that a config asks for nothing but what our model does; where it is silent, that is their default.

    Args:
        theirs: the config.
        demands: the one value of each entry that our model supports.
    """
    others = [
        f"{name}={theirs[name]!r} (only {value!r} is supported)"
        for name, value in demands.items()
        if name in theirs and theirs[name] != value and (theirs[name] or value)  # null, false and [] say the same
    ]
    if others:
        raise SettingError(f"this {theirs.get('model_type')} model has what ours has not: " + "; ".join(others))


def choose(theirs: Mapping[str, Any], name: str, choices: Mapping[str, str]) -> str:
    """Translate one word of a config, such as the name of an activation, into ours.

    Args:
        theirs: the config.
        name: which entry.
        choices: our word for each of theirs.
    """
    word = theirs.get(name)
    if word not in list(choices):
        raise SettingError(f"{name} must be one of {sorted(choices)}, but is {word!r}")
    return choices[word]


def architecture_of(theirs: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """The one architecture that a config names, if we have it."""
    named = theirs.get("architectures") or [None]
    if not isinstance(named, list) or len(named) != 1 or named[0] not in known:
        raise SettingError(f"architectures must hold one of {list(known)}, but is {theirs.get('architectures')}")
    return named[0]
