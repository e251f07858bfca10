"""The folder of a language model: weights and config as `transformers` reads a GPT-2, and the tokenizer beside them."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from ttutor.errors import FileError, SettingError
from ttutor.files import make_folder
from ttutor.generation import Sampler, most_probable
from ttutor.generation.streaming import stream
from ttutor.interop import from_huggingface, save_huggingface
from ttutor.interop.folder import read_about
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.variants.gpt import GPT

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"


@dataclass(frozen=True)
class LanguageModel:
    """A model that continues text, and the tokenizer that it was trained with."""

    model: GPT
    tokenizer: SubwordTokenizer


def save_language_model(language_model: LanguageModel, folder: Path) -> None:
    """Write config, weights and tokenizer, each whole or not at all; earlier weights give way.

    The file of the weights says to which tokenizer and config it belongs, and holds a checksum of its own.

    Raises:
        FileError: the disk is full, the folder is read-only, or the like.
    """
    make_folder(folder)
    language_model.tokenizer.save(folder / TOKENIZER)
    save_huggingface(language_model.model, folder, replace=True, about=_signature(language_model))


def load_language_model(folder: str | Path) -> LanguageModel:
    """Read what `TextTraining` wrote.

    Raises:
        FileError: there is none in the folder, or a file of it is damaged.
    """
    folder = Path(folder)
    if not (folder / WEIGHTS).is_file():
        raise FileError(f"there is no language model in {folder}; train one on your text with `ttutor gpt my.txt`")
    model, signed = from_huggingface(folder), read_about(folder)
    if not isinstance(model, GPT):
        raise FileError(
            f"expected a GPT in {folder}, but there is a {type(model).__name__}; open it by from_huggingface"
        )
    read = LanguageModel(model, SubwordTokenizer.load(folder / TOKENIZER))
    for name, found in _signature(read).items():
        if signed.get(name, found) != found:
            raise FileError(
                f"a file in {folder} is damaged, or of another model: the {name} is not what the weights were written "
                "with; go on with the training by `ttutor gpt --resume`, or train anew"
            )
    return read


def _signature(language_model: LanguageModel) -> dict[str, str]:
    """The checksums of all that decides what a language model writes."""
    weights = hashlib.sha256()
    for name, tensor in sorted(language_model.model.state_dict().items()):
        weights.update(name.encode() + tensor.numpy().tobytes())
    config = json.dumps(asdict(language_model.model.config), sort_keys=True).encode()
    return {
        "tokenizer": language_model.tokenizer.digest,
        "config": hashlib.sha256(config).hexdigest(),
        "sum of the weights": weights.hexdigest(),
    }


def continue_text(
    language_model: LanguageModel,
    prompt: str,
    *,
    max_new_tokens: int = 200,
    temperature: float = 0.8,
    top_p: float = 0.95,
    seed: int = 0,
) -> Iterator[str]:
    """Write on from a prompt, piece by piece as the tokens come.

    What the model can see is as long as it was trained for: where that is full, the older half is forgotten.

    Args:
        language_model: as `load_language_model` gives it.
        prompt: what to go on from; none begins as a text does.
        max_new_tokens: how much to write.
        temperature: above 0, tokens are drawn, the larger the bolder; 0 takes the best one each time.
        top_p: draw from the best tokens that together have this probability.
        seed: the same seed writes the same.

    Raises:
        SettingError: a temperature below 0, a share outside (0, 1], or a length below 1.
    """
    if temperature < 0 or not 0 < top_p <= 1 or max_new_tokens < 1:
        raise SettingError(
            f"expected temperature >= 0, 0 < top_p <= 1 and at least one new token, but came {temperature}, {top_p} "
            f"and {max_new_tokens}"
        )
    model, tokenizer = language_model.model, language_model.tokenizer
    generator = torch.Generator().manual_seed(seed)
    token_ids = tokenizer.encode(prompt or "\n")
    window, n_prompt, told = model.config.max_len, len(token_ids), len(tokenizer.decode(token_ids))
    while len(token_ids) < n_prompt + max_new_tokens:
        seen = token_ids[-(window // 2) :] if len(token_ids) >= window else token_ids
        room = min(window - len(seen), n_prompt + max_new_tokens - len(token_ids))
        choose = Sampler(generator, temperature=temperature, top_p=top_p) if temperature else most_probable
        for new in stream(model, torch.tensor([seen]), max_new_tokens=room, choose=choose):
            token_ids.append(new.token_id)
            text = tokenizer.decode(token_ids)
            if not text.endswith("\N{REPLACEMENT CHARACTER}"):  # a character may take several tokens
                yield text[told:]
                told = len(text)
