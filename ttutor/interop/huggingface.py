"""From a folder or a live model to ours, and back."""

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ttutor.efficient import efficient_attention
from ttutor.errors import FileError, SettingError, TtutorError
from ttutor.interop import decoder_configs, vit
from ttutor.interop.entries import ABSENT, completed
from ttutor.interop.families import Family, agree
from ttutor.interop.folder import read_folder, refuse_earlier_model, write_folder
from ttutor.interop.rules import to_ours, to_theirs
from ttutor.layers.unfilled import Unfilled

FAMILIES = ("bert", "clip", "gpt2", "marian", "modernbert", "t5")  # a module each
TABLES = {
    **dict.fromkeys(decoder_configs.TABLE, "modern_decoder"),  # a row each
    **dict.fromkeys(vit.TABLE, "vit"),
    "pegasus": "marian",  # with the norm before each sublayer
}
COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers")
"""What configs call the number of their layers, each of which has a tensor at least."""


def from_huggingface(
    source: nn.Module | str | Path, *, attend: Callable[..., Tensor] = efficient_attention
) -> nn.Module:
    """Our model with the weights of a published one, in evaluation mode and in the weights' dtype.

    GPT-2, BERT, ModernBERT, T5, Marian, Pegasus, ViT, DeiT, DINOv2, CLIP, and the decoders from Llama to gpt-oss, as
    `transformers` defines them.

    Args:
        source: a model of `transformers`, or a folder that its ``save_pretrained`` wrote: ``config.json`` and
            ``model.safetensors``, in one file or several.
        attend: the attention function of all layers; ``functools.partial(efficient_attention, backend="tiled")`` is
            one that always takes the same backend.

    Raises:
        SettingError: the family is unknown to us, or the config asks for what our model has not, or has an entry that
            is not known here; the message names it. What a config leaves out is what `transformers` takes for it.
        FileError: tensors are missing, too many or of another size; the message lists them.

    Example:
        >>> from_huggingface("a-folder-that-is-not-there")
        Traceback (most recent call last):
        ...
        ttutor.errors.FileError: there is no folder a-folder-that-is-not-there; ...
    """
    config, tensors = _live(source) if isinstance(source, nn.Module) else read_folder(Path(source))
    return assembled(config, tensors, attend)


def assembled(config: Mapping[str, Any], tensors: Mapping[str, Tensor], attend: Callable[..., Tensor]) -> nn.Module:
    """Our model made from a config and tensors of theirs; what it raises says `from_huggingface`."""
    family = _family(config.get("model_type"))
    config = completed(config)
    agree(config, **ABSENT)
    tensors = family.normalise(dict(tensors), config)
    sketch = _sketch(family, config, tensors)
    ours = to_ours(family.rules(sketch), tensors, sketch.state_dict())
    with Unfilled():
        model = family.build(config, tensors)
    model.to(next((tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()), torch.float32))
    model.load_state_dict(_with_ties(model.state_dict(), ours))
    for module in model.modules():
        if not isinstance(getattr(module, "attend", module), nn.Module):  # soft caps and sinks stay around it
            module.attend = attend  # type: ignore[assignment]
    return model.eval()


def _sketch(family: Family, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> nn.Module:
    """The model without numbers: a config with absurd sizes must not fill the memory, nor take for ever."""
    for table in (config, *(value for value in config.values() if isinstance(value, dict))):
        for name in COUNTS:
            count = table.get(name)
            if isinstance(count, int) and count > len(tensors):
                raise FileError(f"the config is damaged: {name} is {count:,}, but there are {len(tensors):,} tensors")
    try:
        with torch.device("meta"), Unfilled():
            return family.build(config, tensors)
    except KeyError as missing:
        raise SettingError(
            f"this {config['model_type']} config has no {missing}, which our model needs to know"
        ) from None
    except TtutorError:
        raise
    except (ArithmeticError, AttributeError, RuntimeError, TypeError, ValueError) as error:  # of what is no size
        raise SettingError(f"this {config['model_type']} config describes no model that can be: {error}") from error


def to_huggingface(model: nn.Module) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The config and the tensors that `transformers` would have for one of our models.

    Example:
        >>> from ttutor.variants.gpt import GPT, GPTConfig
        >>> model = GPT(GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> config, tensors = to_huggingface(model)
        >>> config["n_embd"], tensors["transformer.h.0.attn.c_attn.weight"].shape
        (12, torch.Size([12, 36]))
    """
    family, config = _describe(model)
    return config, to_theirs(family.rules(model), model.state_dict())


def save_huggingface(
    model: nn.Module, folder: str | Path, *, replace: bool = False, about: Mapping[str, str] | None = None
) -> Path:
    """Write one of our models as a folder that `transformers` reads with ``from_pretrained``.

    Args:
        model: what to write.
        folder: where; made if need be.
        replace: whether a model that is in it already gives way; otherwise the folder is refused.
        about: what the file of the weights says besides, in its metadata.
    """
    family, config = _describe(model)
    if not replace:
        refuse_earlier_model(Path(folder))
    tensors = to_theirs(family.rules(model), model.state_dict(), with_copies=False)
    return write_folder(Path(folder), config, tensors, about)


def _live(model: nn.Module) -> tuple[Mapping[str, Any], Mapping[str, Tensor]]:
    """Config and tensors of a model of `transformers` that is in memory."""
    config: Any = getattr(model, "config", None)
    if not hasattr(config, "to_dict") or not hasattr(config, "model_type"):
        raise TypeError(f"expected a model of transformers or a folder, but came {type(model).__name__}")
    described = config.to_dict()
    return {**described, "architectures": [type(model).__name__]}, model.state_dict()


def _with_ties(expected: Mapping[str, Tensor], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give a tensor to each name under which the model knows it, since a tied one has two."""
    by_storage = {expected[name].data_ptr(): tensor for name, tensor in ours.items()}
    return {name: by_storage[storage.data_ptr()] for name, storage in expected.items()}


def _family(model_type: object) -> Family:
    known = [*FAMILIES, *TABLES]
    if model_type not in known:
        raise SettingError(f"model_type must be one of {known}, but is {model_type!r}")
    return importlib.import_module(f"ttutor.interop.{TABLES.get(str(model_type), model_type)}").FAMILY


def _describe(model: nn.Module) -> tuple[Family, dict[str, Any]]:
    """The family of one of our models and its config in their words."""
    for model_type in (*FAMILIES, *TABLES):
        family = _family(model_type)
        if isinstance(model, family.model):
            dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
            return family, {"model_type": model_type, "dtype": dtype, **json.loads(json.dumps(family.describe(model)))}
    known = [*FAMILIES, *TABLES]
    raise SettingError(f"transformers has no counterpart of {type(model).__name__}; known are {known}")
