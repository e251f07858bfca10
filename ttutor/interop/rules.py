"""Rules that turn the tensors of a published model into ours, and back.

A family is a list of rules; each names tensors of theirs, tensors of ours, and how the one becomes the other, mostly as
a pair of einops patterns. Read forwards the list loads a model, read backwards it saves one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from einops import EinopsError, rearrange
from torch import Tensor

from ttutor.errors import FileError


@dataclass(frozen=True)
class Rule:
    """Some tensors of theirs that say the same as some tensors of ours.

    Attributes:
        theirs, ours: the names.
        forwards: makes our tensors from theirs.
        backwards: makes their tensors from ours.
        is_optional: their tensors may be missing, since they only repeat what is known from elsewhere.
    """

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    forwards: Callable[..., tuple[Tensor, ...]]
    backwards: Callable[..., tuple[Tensor, ...]]
    is_optional: bool = False


def same(theirs: str, ours: str) -> Rule:
    """The same tensor under another name."""
    return Rule((theirs,), (ours,), lambda tensor: (tensor,), lambda tensor: (tensor,))


def rearranged(theirs: str, ours: str, forwards: str, backwards: str, **sizes: int) -> Rule:
    """The same numbers in another order, by an einops pattern for each direction."""
    return Rule(
        (theirs,),
        (ours,),
        lambda tensor: (rearrange(tensor, forwards, **sizes),),
        lambda tensor: (rearrange(tensor, backwards, **sizes),),
    )


def linear(theirs: str, ours: str, *, bias: bool = True) -> Iterator[Rule]:
    """A linear map whose tensors are called alike on both sides."""
    yield same(f"{theirs}.weight", f"{ours}.weight")
    if bias:
        yield same(f"{theirs}.bias", f"{ours}.bias")


def norm(theirs: str, ours: str, *, bias: bool = True) -> Iterator[Rule]:
    """A norm: what they call its weight we call its gain."""
    yield same(f"{theirs}.weight", f"{ours}.gain")
    if bias:
        yield same(f"{theirs}.bias", f"{ours}.bias")


def fused(theirs: str, ours: tuple[str, ...], forwards: str, backwards: str, **sizes: int) -> Rule:
    """One tensor of theirs that holds several of ours, by patterns whose first axis on our side runs over them.

    Args:
        theirs, ours: the names.
        forwards, backwards: the patterns; an axis called ``parts`` has as many places as there are tensors of ours.
        **sizes: of other axes that the patterns split.
    """
    sizes |= {"parts": len(ours)} if "parts" in forwards else {}
    return Rule(
        (theirs,),
        ours,
        lambda tensor: tuple(rearrange(tensor, forwards, **sizes)),
        lambda *tensors: (rearrange(list(tensors), backwards, **sizes),),
    )


def copied(theirs: str, ours: str) -> Rule:
    """A tensor that they store once more, as a tied projection; where it is there it must agree with the first."""
    return Rule((theirs,), (ours,), lambda tensor: (tensor,), lambda tensor: (tensor.clone(),), is_optional=True)


def fixed(theirs: str, value: Tensor) -> Rule:
    """A tensor that they store although it is known beforehand; where it is there it must have this value."""

    def agrees(tensor: Tensor) -> tuple[Tensor, ...]:
        """Nothing to load, if the value is the known one."""
        expected = value.to(tensor.dtype)
        if tensor.shape != expected.shape or not torch.allclose(tensor, expected, rtol=0, atol=1e-5):
            raise FileError(f"{theirs} should hold fixed values that the model computes itself, but holds others")
        return ()

    return Rule((theirs,), (), agrees, lambda: (value.clone(),), is_optional=True)


def to_ours(rules: Iterable[Rule], theirs: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors, made from theirs.

    Args:
        rules: of the family.
        theirs: their tensors by name.
        expected: tensors of our model by name, for their shapes.
    """
    ours: dict[str, Tensor] = {}
    rules, used, faults = list(rules), set(), []
    for rule in rules:
        missing = [name for name in rule.theirs if name not in theirs]
        if missing:
            faults += [] if rule.is_optional else [f"missing: {name}" for name in missing]
            continue
        used |= set(rule.theirs)
        whole = [f"{name} ({theirs[name].dtype})" for name in rule.theirs if not theirs[name].is_floating_point()]
        if whole:
            faults.append(f"quantised, which our model cannot hold: {', '.join(whole)}")
            continue
        try:
            made = rule.forwards(*(theirs[name] for name in rule.theirs))
        except FileError as fault:
            faults.append(str(fault))
            continue
        except EinopsError:  # the tensor has other axes than the pattern
            faults.append(_does_not_fit(rule, theirs))
            continue
        for name, tensor in zip(rule.ours, made, strict=True):
            if tensor.shape != expected[name].shape:
                faults.append(
                    f"wrong size: {', '.join(rule.theirs)} gives {tuple(tensor.shape)} for {name}, "
                    f"which is {tuple(expected[name].shape)} by the config"
                )
            elif name in ours and not torch.equal(ours[name], tensor):
                faults.append(f"two values: {', '.join(rule.theirs)} should be what {name} has already, but differs")
            ours.setdefault(name, tensor)
    faults += [f"surplus: {name}" for name in sorted(set(theirs) - used)]
    _complain(faults)
    return ours


def to_theirs(rules: Iterable[Rule], ours: Mapping[str, Tensor], *, with_copies: bool = True) -> dict[str, Tensor]:
    """Their tensors, made from ours.

    Args:
        rules: of the family.
        ours: our tensors by name.
        with_copies: whether to give also the tensors that they store only as copies of others.
    """
    theirs: dict[str, Tensor] = {}
    for rule in rules:
        if with_copies or not (rule.is_optional and rule.ours):
            made = rule.backwards(*(ours[name] for name in rule.ours))
            theirs.update(zip(rule.theirs, (tensor.contiguous() for tensor in made), strict=True))
    return theirs


def _does_not_fit(rule: Rule, theirs: Mapping[str, Tensor]) -> str:
    sizes = ", ".join(f"{name} {tuple(theirs[name].shape)}" for name in rule.theirs)
    return f"wrong size: {sizes} cannot be read as {', '.join(rule.ours)}"


def _complain(faults: list[str], shown: int = 40) -> None:
    if faults:
        more = [f"... and {len(faults) - shown} more"] if len(faults) > shown else []
        raise FileError("these weights do not fit the model:\n  " + "\n  ".join(faults[:shown] + more))
