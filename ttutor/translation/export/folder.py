"""What travels with the weights in every form: the tokenizer with the text's preparation, what the model is, a card."""

import hashlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, normalizers, processors

from ttutor.corpora.text_style import ENDS, TextStyle
from ttutor.errors import FileError, RunError
from ttutor.schemas import read_as
from ttutor.tokenization import EOS_ID, SPECIAL_TOKENS
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.run_folder import EXPORT
from ttutor.transformer import TransformerConfig

TOKENIZER, CARD = "tokenizer.json", "README.md"
FORMAT = "ttutor-export-2"
KEPT = "\ue000"
"""A letter for private use, in whose place the tokenizer of an exported model holds a word for a moment."""
ANEW = "remove the folder and export the model anew with `ttutor export`"


@dataclass(frozen=True)
class Exported:
    """What ``ttutor.json`` says of an exported model.

    Attributes:
        form: the program that runs it.
        quantization: ``"int8"``, or None for float32.
        style: how the training text wrote its sentences.
        config: the sizes of the model.
    """

    form: str
    quantization: str | None
    style: TextStyle
    config: TransformerConfig

    def write(self, folder: Path) -> None:
        """Write ``ttutor.json``, with the checksum of every file that stands in the folder by now but the card."""
        files = {path.name: _sha256(path.read_bytes()) for path in sorted(folder.iterdir()) if path.name != CARD}
        body = ExportFile(FORMAT, self.form, self.quantization, self.style, self.config.to_dict(), files)
        text = json.dumps({**asdict(body), "sha256": body.checksum()}, indent=1) + "\n"
        (folder / EXPORT).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Exported":
        """What the folder's ``ttutor.json`` says, once every file of the folder is known to be the exported one.

        So no other program's reader ever meets a damaged file.

        Raises:
            FileError: the folder is none that ttutor exported, or a file of it is missing or damaged.
        """
        path = folder / EXPORT
        try:
            data = path.read_bytes()
        except OSError as error:
            raise FileError(
                f"{folder} holds no exported model ({error.strerror or error}); make one with `ttutor export`"
            ) from None
        body = read_as(ExportFile, data, path, ANEW, format_=FORMAT)
        if body.sha256 != body.checksum():
            raise FileError(f"{path} is damaged: its checksum differs; {ANEW}")
        for name, checksum in body.files.items():
            try:
                whole = _sha256((folder / name).read_bytes()) == checksum
            except OSError as error:
                raise FileError(f"{folder / name} cannot be read ({error.strerror or error}); {ANEW}") from None
            if not whole:
                raise FileError(f"{folder / name} is damaged: it is not the file that was exported; {ANEW}")
        return cls(body.form, body.quantization, body.style, TransformerConfig(**body.config))


@dataclass(frozen=True)
class ExportFile:
    """What stands in ``ttutor.json``: `Exported`, the checksum of each file of the folder, and its own."""

    format: str
    form: str
    quantization: str | None
    style: TextStyle
    config: dict[str, Any]
    files: dict[str, str]
    sha256: str = ""

    def checksum(self) -> str:
        """Of everything but itself."""
        return _sha256(json.dumps({**asdict(self), "sha256": ""}, sort_keys=True).encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def is_exported(folder: str | Path) -> bool:
    """Whether the folder is one that `export_translator` wrote."""
    return (Path(folder) / EXPORT).is_file()


def needed(package: str) -> ModuleType:
    """Import a package of the extra ``serve``, or say how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise RunError(f'{package} does not load ({error}); get it with: pip install "ttutor[serve]"') from None


def portable_tokenizer(tokenizer: SubwordTokenizer, style: TextStyle) -> Tokenizer:
    """The tokenizer as other programs use it: it prepares the text, adds the end mark, and reads back plain text."""
    portable = Tokenizer.from_str(tokenizer.to_json())
    steps: list[Any] = []
    if style.lower_case and not style.word_i:  # a sign that no text has keeps the word I from it
        steps = [_replaced(r"(?<!\S)I(?!\S)", KEPT), normalizers.Lowercase(), _replaced(KEPT, "I")]
    elif style.lower_case:
        steps = [normalizers.Lowercase(), _replaced(r"(?<!\S)i(?!\S)", style.word_i)]
    if style.form:
        steps.append(normalizers.NFC() if style.form == "NFC" else normalizers.NFD())
    steps += [*([_replaced(r"\s+", " ")] if style.plain_blanks else []), normalizers.Strip()]
    if not style.final_mark:
        steps.append(_replaced(rf"[{''.join(ENDS)}\s]+$", ""))
    portable.normalizer = normalizers.Sequence([*steps, normalizers.Prepend(" ")])
    end = SPECIAL_TOKENS[EOS_ID]
    portable.post_processor = processors.TemplateProcessing(single=f"$A {end}", special_tokens=[(end, EOS_ID)])
    portable.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    return portable


def _replaced(pattern: str, by: str) -> normalizers.Replace:
    return normalizers.Replace(Regex(pattern), by)


def check_free(folder: Path) -> None:
    """Make sure that an export may be written here.

    Raises:
        FileError: there is something in that place already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"{folder} is there already: choose another folder by --out, or remove it")


def write_companions(folder: Path, exported: Exported, tokenizer: Tokenizer, card: str) -> None:
    """Write the tokenizer, the card and, last, ``ttutor.json`` beside the weights."""
    (folder / TOKENIZER).write_text(tokenizer.to_str(), encoding="utf-8")
    (folder / CARD).write_text(card, encoding="utf-8")
    exported.write(folder)


def card(exported: Exported, about: Mapping[str, str], use: str, name: str) -> str:
    """What the model is, where it comes from and how to use it, as Markdown."""
    config, style = exported.config, exported.style
    facts = {
        **about,
        "architecture": f"encoder-decoder Transformer, norm {config.norm}, {config.n_layers} layers each side, "
        f"width {config.d_model}, {config.n_heads} heads, feed-forward {config.d_ff}",
        "vocabulary": f"{config.vocab_size:,} byte-pair tokens, shared by both languages",
        "longest sentence": f"{config.max_len - 1:,} tokens",
        "numbers": exported.quantization or "float32",
        "text": "; ".join(
            [
                "lower case throughout" if style.lower_case else "as it stands",
                "with final marks" if style.final_mark else "final marks removed",
            ]
        ),
    }
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    return f"""# A translator made with ttutor

| | |
|---|---|
{rows}

`tokenizer.json` prepares the text in this way and adds the end mark, so any program that reads it prepares sentences
as in training. A capital or a final mark that the training text did not have is put back by ttutor alone.

## Use

{use.strip()}

With ttutor itself: `ttutor translate --run {quote(name)} "A sentence."`
"""
