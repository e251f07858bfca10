"""Values as JSON and tensors: numbers, strings, bools, None, tensors, and tuples, lists and dicts of these.

Everything else is named by its type and not sent. Floats travel as hexadecimal text, so that NaN, the infinities and
the last bit arrive. Functions that the judge hands over become numbers, by which the worker can call them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .framing import BODY_CAP, Malformed
from .tensors import MOST_TENSORS, NAMES, pack, unpack

__all__ = ["Other", "Packer", "TooMuch", "Unpacker"]

ARRAYS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
MOST_NODES, DEEPEST, LONGEST_TEXT = 20_000, 64, 1 << 18


class TooMuch(ValueError):
    """A value is larger than what is taken; the message says what the limit is."""


class Other:
    """Stands for a value that is not sent: subclasses carry the name of its type."""


class Packer:
    """Turns values into JSON, and gathers their tensors.

    Args:
        number_of: gives the number of a function that the other side knows, or None.
        keep_layout: also send how tensors lie in memory, and whether they are leaves; what the judge does.
    """

    def __init__(self, number_of: Callable[[Any], int | None], *, keep_layout: bool = False) -> None:
        self.number_of, self.keep_layout = number_of, keep_layout
        self.tensors: list[Tensor] = []
        self.traced: list[Tensor] = []  # those that ask for gradients, as they came
        self._nodes = self._bytes = 0

    def body(self) -> bytes:
        """The tensors, packed."""
        return pack(self.tensors)

    def pack(self, value: Any, depth: int = 0) -> Any:
        """Return a value as JSON.

        Raises:
            TooMuch: it is too large, too deep or has too many parts.
        """
        self._nodes += 1
        if depth > DEEPEST or self._nodes > MOST_NODES:
            raise TooMuch(f"a value may have {MOST_NODES} parts, {DEEPEST} deep")
        if value is None or isinstance(value, (bool, int)):
            return int(value) if not (value is None or isinstance(value, bool)) else value
        if isinstance(value, str):
            return _short(str(value))
        if isinstance(value, float):
            return {"f": float(value).hex()}
        if type(value) in (Tensor, nn.Parameter):
            return self._tensor(value)
        if type(value) is np.ndarray and value.dtype in ARRAYS:
            return self._tensor(torch.from_numpy(value.copy())) | {"a": True}
        if isinstance(value, (tuple, list)):
            return {"t" if isinstance(value, tuple) else "l": [self.pack(part, depth + 1) for part in value]}
        if isinstance(value, dict):
            return {"d": [[self.pack(key, depth + 1), self.pack(part, depth + 1)] for key, part in value.items()]}
        number = self.number_of(value)
        return {"c": number} if number is not None else {"o": type(value).__name__[:80]}

    def _tensor(self, tensor: Tensor) -> dict[str, Any]:
        plain = tensor.detach()
        sent = plain.layout == torch.strided and plain.device.type == "cpu" and not plain.is_quantized
        if not sent or (plain.dtype not in NAMES and not plain.is_complex()):
            return {"o": f"Tensor_{plain.device.type}_{str(plain.dtype).removeprefix('torch.')}"}
        self._bytes += plain.numel() * plain.element_size()
        if self._bytes > BODY_CAP - (1 << 20) or len(self.tensors) >= MOST_TENSORS:
            raise TooMuch(f"the tensors of a value may have {BODY_CAP >> 20} MiB, and there may be {MOST_TENSORS}")
        plain = plain.resolve_conj().resolve_neg()
        self.tensors.append(torch.view_as_real(plain) if plain.is_complex() else plain)
        spec: dict[str, Any] = {"T": len(self.tensors) - 1}
        self.traced += [tensor] if tensor.requires_grad else []
        spec |= {"z": True} if plain.is_complex() else {}
        spec |= {"g": True} if tensor.requires_grad else {}
        spec |= {"p": True} if type(tensor) is nn.Parameter else {}
        if self.keep_layout:
            spec |= {"s": list(plain.stride())} if not plain.is_contiguous() else {}
            spec |= {"n": True} if tensor.requires_grad and not tensor.is_leaf else {}
        return spec


class Unpacker:
    """Turns JSON and tensors back into values; takes nothing that a `Packer` does not write.

    Args:
        body: the packed tensors.
        function: gives the function of a number that the other side sent, or None where there is none.
        other: makes the stand-in for a value that was not sent, of the name of its type.
        layout: also take how tensors lie in memory; only the judge sends that, and nobody sends it to the judge.

    Raises:
        Malformed: the body is no packed tensors.
    """

    def __init__(
        self,
        body: bytes,
        function: Callable[[int], Any | None],
        other: Callable[[str], Any] = lambda name: Other(),
        *,
        layout: bool = False,
    ) -> None:
        self.tensors, self.function, self.other, self.layout = unpack(body), function, other, layout
        self.leaves: list[Tensor] = []  # those that ask for gradients, in the order of `Packer.traced`
        self.used: set[int] = set()
        self._nodes = 0

    def unpack(self, spec: Any, depth: int = 0) -> Any:
        """Return the value.

        Raises:
            Malformed: it is none.
        """
        self._nodes += 1
        if depth > DEEPEST + 1 or self._nodes > 2 * MOST_NODES:
            raise Malformed("a value has too many parts or is too deep")
        if spec is None or type(spec) in (bool, int):
            return spec
        if type(spec) is str:
            return spec
        if type(spec) is not dict or not spec:
            raise Malformed("a value must be one of those that the protocol has")
        if "T" in spec:
            return self._tensor(spec)
        ((kind, content),) = spec.items() if len(spec) == 1 else (("", None),)
        if kind == "f" and type(content) is str and len(content) < 40:
            return _float(content)
        if kind in ("t", "l") and type(content) is list:
            parts = [self.unpack(part, depth + 1) for part in content]
            return tuple(parts) if kind == "t" else parts
        if kind == "d" and type(content) is list:
            return self._dict(content, depth)
        if kind == "o" and type(content) is str and len(content) <= 80:
            return self.other(content)
        if kind == "c" and type(content) is int and (found := self.function(content)) is not None:
            return found
        raise Malformed("a value must be one of those that the protocol has")

    def _dict(self, pairs: list[Any], depth: int) -> dict[Any, Any]:
        if not all(type(pair) is list and len(pair) == 2 for pair in pairs):
            raise Malformed("a dict must be a list of pairs")
        found = {}
        for key, part in pairs:
            name = self.unpack(key, depth + 1)
            if isinstance(name, (list, dict)) or (isinstance(name, tuple) and not _is_plain(name)):
                raise Malformed("a dict's keys must be plain")
            found[name] = self.unpack(part, depth + 1)
        return found

    def _tensor(self, spec: dict[str, Any]) -> Any:
        index = spec["T"]
        flags = {key: value for key, value in spec.items() if key not in (("T", "s") if self.layout else ("T",))}
        if type(index) is not int or not 0 <= index < len(self.tensors) or index in self.used:
            raise Malformed("a tensor must be one of those that came, each once")
        if not set(flags) <= set("zgpan" if self.layout else "zgpa") or any(
            value is not True for value in flags.values()
        ):
            raise Malformed("a tensor has a mark that is unknown")
        self.used.add(index)
        tensor = self.tensors[index]
        if "z" in flags:
            if tensor.dtype not in (torch.float32, torch.float64) or tensor.shape[-1:] != (2,):
                raise Malformed("complex numbers must come as pairs")
            tensor = torch.view_as_complex(tensor)
        if "s" in spec:
            tensor = _laid_out(tensor, spec["s"])
        return self._marked(tensor, flags)

    def _marked(self, tensor: Tensor, flags: dict[str, bool]) -> Any:
        wants = "g" in flags
        if "a" in flags and (wants or tensor.dtype == torch.bfloat16):
            raise Malformed("an array has no gradient, and not every dtype")
        if "a" in flags:
            return tensor.numpy()
        if (wants or "p" in flags) and not (tensor.is_floating_point() or tensor.is_complex()):
            raise Malformed("a gradient cannot be asked of whole numbers")
        if "p" in flags:
            tensor = nn.Parameter(tensor, requires_grad=wants)
        if not wants:
            return tensor
        self.leaves.append(tensor.requires_grad_())
        return tensor * 1 if "n" in flags else tensor


def _laid_out(tensor: Tensor, strides: Any) -> Tensor:
    """Lay a tensor out in memory as it was; the judge alone sends this."""
    compact = tensor
    for axis, stride in enumerate(strides):
        if stride == 0 and tensor.shape[axis] > 1:
            compact = compact.narrow(axis, 0, 1)
    base = torch.empty_strided(compact.shape, strides, dtype=tensor.dtype)
    return base.copy_(compact).expand(tensor.shape)


def _float(text: str) -> float:
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError) as error:
        raise Malformed("a float must be hexadecimal text") from error


def _short(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise TooMuch(f"a text may have {LONGEST_TEXT} characters")
    return text


def _is_plain(key: tuple[Any, ...]) -> bool:
    return all(part is None or type(part) in (bool, int, float, str) for part in key)
