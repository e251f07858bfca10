"""GGUF, the file of llama.cpp: sizes, tokenizer and weights of a model in one file, the weights in few bits each.

The package `gguf` reads the fields and makes float32 of every number format that it knows; no code is ever run. Here
the fields become a config of the family "llama" and the tensors get the names and the order that it has in
`transformers`, so that what loads those models loads this one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from einops import rearrange
from numpy.typing import NDArray
from torch import Tensor, nn

from ttutor.efficient import efficient_attention
from ttutor.errors import FileError, SettingError, TtutorError
from ttutor.interop.huggingface import assembled
from ttutor.positions import RotaryScaling

WHOLE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
"""What stands once in a model, by its name in the file."""
IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""What stands in every layer."""
FACTORS = "rope_freqs.weight"
"""By how much each rotary frequency is divided, which Llama 3.1 and its kin store as a tensor."""
LARGEST_COUNT = 2**31
KINDS = {bool: "true or false", float: "a number", str: "a text", list: "a list"}


@dataclass(frozen=True, eq=False)
class GGUFFile:
    """An open file.

    Attributes:
        path: where it lies.
        fields: everything that it says of the model and the tokenizer, by its names.
        stored: its tensors as they lie there, in the objects of `gguf`.
    """

    path: Path
    fields: Mapping[str, Any]
    stored: tuple[Any, ...]

    def field(self, name: str, kind: type, default: Any = None) -> Any:
        """One field, which must be of this kind; without a default it must be there.

        A whole number counts something or numbers a token, and is never below 0.
        """
        value: Any = self.fields.get(name)
        value = default if value is None else value
        if value is None:
            raise SettingError(f"{self.path} has no field {name}, which our model needs to know")
        if kind is float and type(value) is int:
            value = float(value)
        in_range = not isinstance(value, int) or 0 <= value < LARGEST_COUNT
        if type(value) is not kind or not in_range:
            wanted = f"a whole number below {LARGEST_COUNT:,}" if kind is int else KINDS[kind]
            raise FileError(f"{self.path} is damaged: {name} must be {wanted}, but is {_short(value)}; fetch it again")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts that must be there."""
        found = self.field(name, list)
        if not all(isinstance(one, str) for one in found):
            raise FileError(f"{self.path} is damaged: {name} must be a list of texts; fetch it again")
        return found

    def formats(self) -> dict[str, int]:
        """How many tensors there are of each number format."""
        kinds = [tensor.tensor_type.name for tensor in self.stored]
        return {kind: kinds.count(kind) for kind in sorted(set(kinds))}

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Its tensors in float32, one after the other, by the names of the file."""
        from gguf.quants import dequantize

        for tensor in self.stored:
            try:
                numbers = np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
            except NotImplementedError:
                raise FileError(
                    f"{self.path}: {tensor.name} has the number format {tensor.tensor_type.name}, which the package "
                    "gguf cannot read; take the model in another format, such as Q8_0"
                ) from None
            except Exception as fault:  # as in `read_gguf`
                raise FileError(f"{self.path} is damaged in {tensor.name}: {_said(fault)}; fetch it again") from None
            yield tensor.name, torch.from_numpy(numbers.reshape([int(size) for size in reversed(tensor.shape)]))


def read_gguf(path: str | Path) -> GGUFFile:
    """Open a GGUF file; its weights are read when they are asked for.

    Raises:
        FileError: there is no such file, or it is no GGUF file, or is damaged.
    """
    from gguf import GGUFReader

    class PlainReader(GGUFReader):
        """Reads from a plain view of the mapped file, whose hundred thousand slices cost half as much."""

        @property
        def data(self) -> Any:
            return self._plain

        @data.setter
        def data(self, mapped: Any) -> None:
            self._plain = _Whole(np.asarray(mapped))

    path = Path(path)
    if not path.is_file():
        raise FileError(f"there is no file {path}; give a GGUF file, whose name mostly ends in .gguf")
    try:
        with np.errstate(over="raise"):
            reader = PlainReader(path)
            fields = {name: field.contents() for name, field in reader.fields.items()}
    except OSError as fault:
        raise FileError(f"{path} cannot be read: {fault.strerror or fault}") from None
    except Exception as fault:  # what the package raises for a damaged file may be anything
        raise FileError(f"{path} is no GGUF file, or is damaged: {_said(fault)}; fetch it again") from None
    in_order = sorted(reader.tensors, key=lambda tensor: int(tensor.data_offset))
    for before, after in pairwise(in_order):
        if int(before.data_offset) + int(before.n_bytes) > int(after.data_offset):
            raise FileError(f"{path} is damaged: {before.name} lies over {after.name}; fetch it again")
    return GGUFFile(path, fields, tuple(reader.tensors))


def _said(fault: Exception) -> str:
    """What an error of somebody else says, or at least what it is called."""
    return str(fault) or type(fault).__name__


def _short(value: object) -> str:
    """A value in a message, of which a list may have a hundred thousand entries."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}..."


class _Whole:
    """The bytes of a file, of which nobody gets fewer than asked for.

    A slice of an array ends where the array does, and the package would go on with nothing in its hands: for a list
    that says that it has 2^40 entries, it would do that 2^40 times.
    """

    def __init__(self, plain: NDArray[np.uint8]) -> None:
        self.plain = plain

    def __getitem__(self, wanted: slice) -> NDArray[np.uint8]:
        if not 0 <= wanted.start <= wanted.stop <= len(self.plain):
            raise ValueError(f"it has {len(self.plain):,} bytes, but says that more belong to it")
        return self.plain[wanted]


def from_gguf(source: str | Path | GGUFFile, *, attend: Callable[..., Tensor] = efficient_attention) -> nn.Module:
    """Our model with the weights of a GGUF file, in evaluation mode and in float32.

    The file's architecture must be "llama": Llama, SmolLM, and what else is a Llama under another name. Its weights may
    have any number format that `gguf` reads; what rounding to few bits has cost stays lost.

    Args:
        source: the file, or what `read_gguf` made of it.
        attend: as for `from_huggingface`.

    Raises:
        SettingError: another architecture, a field that is missing or says what cannot be, or a part that our model has
            not; it is named.
        FileError: there is no such file, or it is damaged, or tensors are missing, too many or of another size; the
            message lists them.

    Example:
        >>> from_gguf("a-file-that-is-not-there.gguf")
        Traceback (most recent call last):
        ...
        ttutor.errors.FileError: there is no file a-file-that-is-not-there.gguf; ...
    """
    file = source if isinstance(source, GGUFFile) else read_gguf(source)
    try:
        config = llama_config(file)
        return assembled(config, _renamed(file, config), attend)
    except (TtutorError, ValueError) as fault:
        if str(file.path) in str(fault):
            raise
        kind = type(fault) if isinstance(fault, TtutorError) else FileError
        raise kind(f"{file.path}: {fault}") from None


def llama_config(file: GGUFFile) -> dict[str, Any]:
    """The config that `transformers` would have for a file of the architecture "llama"."""
    architecture = file.field("general.architecture", str)
    if architecture != "llama":
        raise SettingError(f"the architecture of a GGUF file must be 'llama', but {file.path} has {architecture!r}")
    if file.field("split.count", int, 1) > 1:
        raise SettingError(f"{file.path} is one of {file.fields['split.count']} parts: join them with llama-gguf-split")
    if file.field("llama.expert_count", int, 0) > 0:
        raise SettingError(f"{file.path} is a mixture of experts (llama.expert_count), which is not read from GGUF")
    for name in ("llama.attention.head_count", "llama.attention.head_count_kv"):
        if isinstance(file.fields.get(name), list):
            raise SettingError(f"all layers must have as many heads, but {file.path} says {_short(file.fields[name])}")
    n_heads = file.field("llama.attention.head_count", int)
    d_model = file.field("llama.embedding_length", int)
    d_head = file.field("llama.attention.key_length", int, d_model // max(n_heads, 1))
    d_rotary = file.field("llama.rope.dimension_count", int, d_head)
    if d_rotary != d_head:
        raise SettingError(
            f"all {d_head} features of a head must be turned, but llama.rope.dimension_count is {d_rotary}"
        )
    sizes = {tensor.name: [int(size) for size in tensor.shape] for tensor in file.stored}
    n_layers = file.field("llama.block_count", int)
    _agree_with_tensors(file, sizes, n_layers=n_layers, d_model=d_model, width=n_heads * d_head)
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": sizes["token_embd.weight"][-1],
        "hidden_size": d_model,
        "num_attention_heads": n_heads,
        "num_key_value_heads": file.field("llama.attention.head_count_kv", int, n_heads),
        "head_dim": d_head,
        "num_hidden_layers": n_layers,
        "intermediate_size": file.field("llama.feed_forward_length", int),
        "max_position_embeddings": file.field("llama.context_length", int),
        "rms_norm_eps": file.field("llama.attention.layer_norm_rms_epsilon", float),
        "tie_word_embeddings": "output.weight" not in sizes,
        "rope_theta": file.field("llama.rope.freq_base", float, 10_000.0),
        "rope_scaling": _rope_scaling(file, d_head),
    }


def _agree_with_tensors(
    file: GGUFFile, sizes: Mapping[str, list[int]], *, n_layers: int, d_model: int, width: int
) -> None:
    """Compare the sizes in the fields with the tensors, before a model of absurd sizes is begun."""
    if "token_embd.weight" not in sizes:
        raise FileError(f"{file.path} has no tensor token_embd.weight, the table of embeddings")
    expected: dict[str, list[int | None]] = {
        "token_embd.weight": [d_model, None],
        "blk.0.attn_q.weight": [d_model, width],
    }
    for name, wanted in expected.items():
        found: Any = sizes.get(name, wanted)
        if len(found) != 2 or any(size not in (None, come) for size, come in zip(wanted, found, strict=True)):
            raise FileError(f"{file.path} is damaged: by its fields {name} has the sizes {wanted}, but it has {found}")
    if n_layers > len(file.stored):
        raise FileError(f"{file.path} is damaged: it says {n_layers:,} layers, but has {len(file.stored)} tensors")


def _rope_scaling(file: GGUFFile, d_head: int) -> dict[str, Any] | None:
    """How rotary positions are stretched: by one factor, by Llama 3's rule, or not at all."""
    kind = file.field("llama.rope.scaling.type", str, "none")
    if kind == "linear":
        return {"rope_type": "linear", "factor": file.field("llama.rope.scaling.factor", float)}
    if kind != "none":
        raise SettingError(f"llama.rope.scaling.type must be none or linear, but is {kind!r}")
    factors = next((tensor.data for tensor in file.stored if tensor.name == FACTORS), None)
    if factors is None:
        return None
    # The rule itself is not in the file, only what it comes to; of its numbers one differs from model to model.
    scaling = RotaryScaling(factor=float(factors.max()), trained_len=8192, few_turns=1.0, many_turns=4.0)
    base = file.field("llama.rope.freq_base", float, 10_000.0)
    frequencies = base ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    if len(factors) != d_head // 2 or not np.allclose(frequencies / scaling(frequencies), factors, rtol=1e-3):
        raise SettingError(f"{file.path} divides rotary frequencies ({FACTORS}) by another rule than Llama 3's")
    return {
        "rope_type": "llama3",
        "factor": scaling.factor,
        "original_max_position_embeddings": scaling.trained_len,
        "low_freq_factor": scaling.few_turns,
        "high_freq_factor": scaling.many_turns,
    }


def _renamed(file: GGUFFile, config: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors under the names of `transformers`; one that has none there keeps its own, and is then refused."""
    renamed = {}
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for name, tensor in file.tensors():
        if name == FACTORS:
            continue
        parts = name.split(".")
        if name in WHOLE:
            name = WHOLE[name]
        elif parts[0] == "blk" and len(parts) == 4 and parts[2] in IN_LAYER:
            name = f"model.layers.{parts[1]}.{IN_LAYER[parts[2]]}.{parts[3]}"
            if parts[2] in heads and parts[3] == "weight":
                tensor = _halves(tensor, heads[parts[2]])
        renamed[name] = tensor
    return renamed


def _halves(weight: Tensor, n_heads: int) -> Tensor:
    """Undo llama.cpp's order of a head's features: there the two that turn together are neighbours."""
    if weight.ndim != 2 or n_heads < 1 or weight.shape[0] % (2 * n_heads):
        return weight  # of a wrong size, which is said where all sizes are compared
    pattern = "(heads pair half) d_model -> (heads half pair) d_model"
    return rearrange(weight, pattern, heads=n_heads, half=2).contiguous()
