"""Values as named JSON and safetensors: numbers, texts, None, tensors, and tuples, lists and dicts of these.

Everything else is named by its type and not sent. Floats travel as hexadecimal text, so that NaN, the infinities and
the last bit arrive. The judge can also send functions of the course: they travel by name, their source beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from .framing import BODY_CAP, HEADER_CAP, Malformed

DTYPES = {getattr(torch, name) for name in "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()}
MOST_TENSORS, MOST_AXES, MOST_PARTS, DEEPEST, LONGEST_TEXT, MOST_BITS = 4096, 16, 20_000, 64, 1 << 18, 512
FLAGS = {"array", "complex", "grad", "parameter"}
LAYOUT = {"strides", "no_leaf"}


class TooMuch(ValueError):
    """A value is larger than what is taken; the message says what the limit is."""


class Other:
    """Stands for a value that is not sent: subclasses carry the name of its type."""


class HandedFunction:
    """A function of the course that an answer is handed: it can be called, and shows nothing of what it holds."""

    __slots__ = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        _HELD[id(self)] = self, function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return _HELD[id(self)][1](*args, **keywords)


_HELD: dict[int, tuple[HandedFunction, Callable[..., Any]]] = {}


class Packer:
    """Turns values into JSON, and gathers their tensors.

    Args:
        from_judge: also send functions of the course, how tensors lie in memory, and whether they are leaves.
    """

    def __init__(self, *, from_judge: bool = False) -> None:
        self.from_judge = from_judge
        self.tensors: list[Any] = []
        self._parts = self._bytes = 0

    def body(self) -> bytes:
        """The tensors, packed, named by their numbers."""
        return safetensors.torch.save({str(number): tensor for number, tensor in enumerate(self.tensors)})

    def pack(self, value: Any, depth: int = 0) -> Any:
        """Return a value as JSON, or raise `TooMuch`."""
        self._parts += 1
        if depth > DEEPEST or self._parts > MOST_PARTS:
            raise TooMuch(f"a value may have {MOST_PARTS} parts, {DEEPEST} deep")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if value.bit_length() <= MOST_BITS else {"other": "huge_number"}
        if isinstance(value, str):
            if len(value) > LONGEST_TEXT:
                raise TooMuch(f"a text may have {LONGEST_TEXT} characters")
            return str(value)
        if isinstance(value, float):
            return {"float": float(value).hex()}
        if type(value) in (Tensor, nn.Parameter):
            return self._tensor(value)
        if type(value) is np.ndarray and value.dtype.name in {str(one).removeprefix("torch.") for one in DTYPES}:
            return self._tensor(torch.from_numpy(value.copy())) | {"array": True}
        if isinstance(value, (tuple, list)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [self.pack(part, depth + 1) for part in value]}
        if isinstance(value, dict):
            if not all(map(_is_plain, value)):
                raise TooMuch("the keys of a dict must be numbers, texts or tuples of these")
            return {"dict": [[self.pack(key, depth + 1), self.pack(part, depth + 1)] for key, part in value.items()]}
        if self.from_judge and callable(value):
            return self._function(value, depth)
        return {"other": type(value).__name__[:80]}

    def _function(self, value: Any, depth: int) -> dict[str, Any]:
        made = value if isinstance(value, partial) else partial(value)
        if made.func.__qualname__ != made.func.__name__:
            raise TypeError(f"{made.func} stands inside a function: let it stand in its module, bound by `partial`")
        return {
            "function": [made.func.__module__, made.func.__name__],
            "args": [self.pack(one, depth + 1) for one in made.args],
            "keywords": {name: self.pack(one, depth + 1) for name, one in made.keywords.items()},
        }

    def _tensor(self, tensor: Tensor) -> dict[str, Any]:
        plain = tensor.detach()
        is_sent = plain.layout == torch.strided and plain.device.type == "cpu" and not plain.is_quantized
        if not is_sent or (plain.dtype not in DTYPES and plain.dtype not in (torch.complex64, torch.complex128)):
            return {"other": f"Tensor_{plain.device.type}_{str(plain.dtype).removeprefix('torch.')}"}
        self._bytes += plain.numel() * plain.element_size()
        if self._bytes > BODY_CAP - HEADER_CAP or len(self.tensors) >= MOST_TENSORS or plain.ndim >= MOST_AXES:
            raise TooMuch(f"the tensors of a value may have {BODY_CAP >> 20} MiB, and there may be {MOST_TENSORS}")
        plain = plain.resolve_conj().resolve_neg()
        numbers = torch.view_as_real(plain) if plain.is_complex() else plain
        self.tensors.append(numbers.clone(memory_format=torch.contiguous_format))
        marks = {
            "complex": plain.is_complex(),
            "grad": tensor.requires_grad,
            "parameter": type(tensor) is nn.Parameter,
            "no_leaf": self.from_judge and not tensor.is_leaf,
        }
        spec = {"tensor": len(self.tensors) - 1} | {name: True for name, is_so in marks.items() if is_so}
        return spec | ({"strides": list(plain.stride())} if self.from_judge and not plain.is_contiguous() else {})


class Unpacker:
    """Turns JSON and tensors back into values; takes nothing that a `Packer` does not write, else raises `Malformed`.

    Args:
        body: the packed tensors.
        other: makes the stand-in for a value that was not sent, of the name of its type.
        function: gives the course's function of a module and a name; only the judge sends such, and how tensors lie
            in memory.
    """

    def __init__(
        self,
        body: bytes,
        other: Callable[[str], Any] = lambda name: Other(),
        function: Callable[[str, str], Any] | None = None,
    ) -> None:
        self.tensors, self.other, self.function = _tensors(body), other, function
        self._unused, self._parts = set(range(len(self.tensors))), 0

    def unpack(self, spec: Any, depth: int = 0) -> Any:
        """Return the value."""
        self._parts += 1
        if depth > DEEPEST + 1 or self._parts > 2 * MOST_PARTS:
            raise Malformed("a value has too many parts or is too deep")
        if spec is None or type(spec) in (bool, str) or (type(spec) is int and spec.bit_length() <= MOST_BITS):
            return spec
        if type(spec) is not dict or not spec:
            raise Malformed("a value must be one of those that the protocol has")
        if "tensor" in spec:
            return self._tensor(spec)
        if self.function is not None and set(spec) == {"function", "args", "keywords"}:
            args = [self.unpack(one, depth + 1) for one in spec["args"]]
            keywords = {name: self.unpack(one, depth + 1) for name, one in spec["keywords"].items()}
            return HandedFunction(partial(self.function(*spec["function"]), *args, **keywords))
        ((kind, content),) = spec.items() if len(spec) == 1 else (("", None),)
        if kind == "float" and type(content) is str and len(content) < 40:
            return _float(content)
        if kind in ("tuple", "list") and type(content) is list:
            parts = [self.unpack(part, depth + 1) for part in content]
            return tuple(parts) if kind == "tuple" else parts
        if kind == "dict" and type(content) is list:
            return self._dict(content, depth)
        if kind == "other" and type(content) is str and len(content) <= 80:
            return self.other(content)
        raise Malformed("a value must be one of those that the protocol has")

    def _dict(self, pairs: list[Any], depth: int) -> dict[Any, Any]:
        found = {}
        for pair in pairs:
            if type(pair) is not list or len(pair) != 2:
                raise Malformed("a dict must be a list of pairs")
            key = self.unpack(pair[0], depth + 1)
            if not _is_plain(key) or key in found:
                raise Malformed("a dict's keys must be plain, each once")
            found[key] = self.unpack(pair[1], depth + 1)
        return found

    def _tensor(self, spec: dict[str, Any]) -> Any:
        number, known = spec["tensor"], FLAGS | (LAYOUT if self.function is not None else set())
        marks = set(spec) - {"tensor"}
        if type(number) is not int or number not in self._unused:
            raise Malformed("a tensor must be one of those that came, each once")
        if not marks <= known or any(spec[name] is not True for name in marks - {"strides"}):
            raise Malformed("a tensor has a mark that is unknown")
        self._unused.discard(number)
        tensor = self.tensors[number]
        if "complex" in marks:
            if tensor.dtype not in (torch.float32, torch.float64) or tensor.shape[-1:] != (2,):
                raise Malformed("complex numbers must come as pairs")
            tensor = torch.view_as_complex(tensor)
        if "strides" in marks:
            tensor = _laid_out(tensor, spec["strides"])
        return self._marked(tensor, marks)

    def _marked(self, tensor: Tensor, marks: set[str]) -> Any:
        if "array" in marks:
            if marks != {"array"} or tensor.dtype == torch.bfloat16:
                raise Malformed("an array has no gradient, and not every dtype")
            return tensor.numpy()
        if marks & {"grad", "parameter"} and not (tensor.is_floating_point() or tensor.is_complex()):
            raise Malformed("a gradient cannot be asked of whole numbers")
        if "parameter" in marks:
            return nn.Parameter(tensor, requires_grad="grad" in marks)
        if "grad" not in marks:
            return tensor
        leaf = tensor.requires_grad_()
        return leaf * 1 if "no_leaf" in marks else leaf


def _tensors(body: bytes) -> list[Tensor]:
    """Read tensors of which nothing is known but that they should be safetensors."""
    if not 8 <= len(body) <= BODY_CAP or int.from_bytes(body[:8], "little") > HEADER_CAP:
        raise Malformed("the tensors have no header of an allowed size")
    try:
        found = safetensors.torch.load(bytes(body))
    except Exception as error:  # the library's own, KeyError for a dtype, OverflowError for a size
        raise Malformed(f"expected safetensors: {type(error).__name__}") from error
    if len(found) > MOST_TENSORS or set(found) != set(map(str, range(len(found)))):
        raise Malformed(f"expected at most {MOST_TENSORS} tensors, numbered from 0")
    tensors = [found[str(number)] for number in range(len(found))]
    for tensor in tensors:
        if tensor.dtype not in DTYPES or tensor.ndim > MOST_AXES:
            raise Malformed("a tensor has a dtype or a shape that is not taken")
        if tensor.dtype == torch.bool and bool((tensor.view(torch.uint8) > 1).any()):
            raise Malformed("a bool must be 0 or 1")
    return [tensor.clone() for tensor in tensors]  # each of its own, no view of the bytes


def _laid_out(tensor: Tensor, strides: list[int]) -> Tensor:
    """Lay a tensor out in memory as it was."""
    compact = tensor
    for axis, stride in enumerate(strides):
        if stride == 0 and tensor.shape[axis] > 1:
            compact = compact.narrow(axis, 0, 1)
    return torch.empty_strided(compact.shape, strides, dtype=tensor.dtype).copy_(compact).expand(tensor.shape)


def _float(text: str) -> float:
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError) as error:
        raise Malformed("a float must be hexadecimal text") from error


def _is_plain(key: Any) -> bool:
    return key is None or isinstance(key, (bool, int, float, str)) or (type(key) is tuple and all(map(_is_plain, key)))
