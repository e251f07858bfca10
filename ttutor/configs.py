"""What the configs of all models share: checks whose message names every value that is out of range."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, TypeVar

from ttutor.names import AnsweringConfig, answer_other_names

__all__ = ["Config"]

Changed = TypeVar("Changed", bound="Config")
Checked = TypeVar("Checked", bound="Config")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(AnsweringConfig):
    """The sizes and choices of a model: plain values that never change. Each family has its own fields.

    A family lists what it demands in ``errors``, out of the small checks below.

    Example:
        >>> @dataclasses.dataclass(frozen=True, kw_only=True)
        ... class SmallConfig(Config):
        ...     d_model: int = 8
        ...     def errors(self):
        ...         yield from self.require_positive_int("d_model")
        >>> SmallConfig(d_model=0)
        Traceback (most recent call last):
        ...
        ValueError: SmallConfig: d_model must be a positive integer (d_model=0)
    """

    def __post_init__(self) -> None:
        errors = list(self.errors())
        if errors:
            raise ValueError(f"{type(self).__name__}: " + "; ".join(errors))

    def errors(self) -> Iterable[str]:
        """What is wrong with these values, a sentence each."""
        return ()

    @classmethod
    def checked(cls: type[Checked], config: object) -> Checked:
        """The config itself, where it is one of this family; a model calls this first."""
        if not isinstance(config, cls):
            name = cls.__name__
            raise TypeError(
                f"expected a {name}, but came {type(config).__name__} {config!r}: {name}(...) takes the sizes by name"
            )
        return config

    def widen_fourfold(self) -> None:
        """Four times ``d_model`` for a ``d_ff`` that was left out, as in nearly all models until 2022."""
        if self.d_ff is None and type(self.d_model) is int:  # type: ignore[attr-defined]
            object.__setattr__(self, "d_ff", 4 * self.d_model)  # type: ignore[attr-defined]

    def replace(self: Changed, **changes: Any) -> Changed:
        """The same config with some values changed; a ``d_ff`` that followed ``d_model`` stays as it is."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, object]:
        """The config as plain values, for a checkpoint's JSON."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def require_positive_int(self, *names: str) -> Iterable[str]:
        """Errors of fields that must be integers of at least 1."""
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                yield f"{name} must be a positive integer ({name}={value!r})"

    def require_multiple(self, name: str, divisor: str) -> Iterable[str]:
        """The error of a field that must be a multiple of another, if both are positive integers."""
        value, by = getattr(self, name), getattr(self, divisor)
        if type(value) is int and type(by) is int and by > 0 and value % by:
            yield f"{name} must be a multiple of {divisor} ({name}={value}, {divisor}={by})"

    def require_probability(self, *names: str) -> Iterable[str]:
        """Errors of fields that must be at least 0 and below 1."""
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < 1:
                yield f"{name} must be at least 0 and below 1 ({name}={value!r})"

    def require_positive_number(self, *names: str) -> Iterable[str]:
        """Errors of fields that must be numbers above 0, whole or not, and finite."""
        for name in names:
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 < value < math.inf:
                yield f"{name} must be a positive number ({name}={value!r})"

    def require_bool(self, *names: str) -> Iterable[str]:
        """Errors of fields that must be True or False; of other values many would silently count as True."""
        for name in names:
            value = getattr(self, name)
            if type(value) is not bool:
                yield f"{name} must be True or False ({name}={value!r})"

    def require_one_of(self, name: str, choices: Iterable[str]) -> Iterable[str]:
        """The error of a field that must be one of some words."""
        choices, value = sorted(choices), getattr(self, name)
        if value not in choices:
            yield f"{name} must be one of {choices} ({name}={value!r})"


answer_other_names(__name__)
