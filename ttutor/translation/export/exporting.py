"""Writing and reading an exported translator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ttutor.errors import FileError, SettingError
from ttutor.files import foreign_reader, new_folder
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.translation.engine import Engine
from ttutor.translation.export import ctranslate2, huggingface, onnx
from ttutor.translation.export.folder import (
    ANEW,
    TOKENIZER,
    Exported,
    card,
    check_free,
    portable_tokenizer,
    write_companions,
)
from ttutor.translation.translator import EngineTranslator, Translator


@dataclass(frozen=True)
class Form:
    """One form: what writes it, what runs it, how a person uses it, and whether it has eight bits."""

    write: Callable[..., None]
    engine: Callable[..., Engine]
    use: str
    quantizations: tuple[str, ...] = ("int8",)


FORMS = {
    "huggingface": Form(huggingface.write, huggingface.HuggingFaceEngine, huggingface.USE, ()),
    "ctranslate2": Form(ctranslate2.write, ctranslate2.CTranslate2Engine, ctranslate2.USE),
    "onnx": Form(onnx.write, onnx.onnx_engine, onnx.USE),
}


def export_translator(
    translator: Translator,
    folder: str | Path,
    to: str,
    *,
    quantization: str | None = None,
    about: Mapping[str, str] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a translator as a folder that another program runs; whole or not at all.

    In it are the weights, the tokenizer with the preparation of the text, ``ttutor.json``, by which `load_exported`
    reads it, and a card for people, with a few lines that use it.

    Args:
        translator: what to write.
        folder: where; it must not be there yet, or be empty.
        to: ``"huggingface"``, ``"ctranslate2"`` or ``"onnx"``.
        quantization: ``"int8"`` stores the matrices in eight bits; None keeps float32.
        about: rows of the card's table, such as the direction and the text it learned from.
        files: further files that must travel with the weights, such as the terms of their text.

    Raises:
        SettingError: there is no such form or number format, or the form has no such model (learned positions, untied
            embeddings).
        RunError: a package that the form needs does not load.
        FileError: the folder is taken or cannot be written.
    """
    if to not in FORMS:
        raise SettingError(f"the form must be one of {', '.join(FORMS)}, got {to!r}")
    if quantization is not None and quantization not in FORMS[to].quantizations:
        offered = ", ".join(FORMS[to].quantizations) or "none"
        raise SettingError(f"{to} has these quantizations: {offered}; got {quantization!r}")
    exported = Exported(to, quantization, translator.style, translator.model.config)
    tokenizer = portable_tokenizer(translator.tokenizer, translator.style)
    check_free(Path(folder))
    with new_folder(Path(folder)) as unfinished:
        FORMS[to].write(translator.model, tokenizer, unfinished, quantization)
        for name, content in (files or {}).items():
            (unfinished / name).write_bytes(content)
        use = FORMS[to].use.replace("THIS_FOLDER", Path(folder).name)
        write_companions(unfinished, exported, tokenizer, card(exported, about or {}, use, Path(folder).name))
    return Path(folder)


def load_exported(folder: str | Path, *, threads: int | None = None) -> EngineTranslator:
    """The translator in a folder that `export_translator` wrote, run by the program it was written for.

    Args:
        folder: the folder.
        threads: how many the program uses; it decides when left out.

    Raises:
        FileError: there is none, or it is damaged.
        RunError: its program is not installed.
    """
    folder = Path(folder)
    exported = Exported.read(folder)
    if exported.form not in FORMS:
        raise FileError(f"{folder} has the form {exported.form!r}, expected one of {', '.join(FORMS)}")
    tokenizer = SubwordTokenizer.load(folder / TOKENIZER)
    with foreign_reader(folder, ANEW, f"is not what this version of {exported.form} reads"):  # its files are whole
        engine = FORMS[exported.form].engine(folder, exported.config, threads)
    return EngineTranslator(engine, tokenizer, exported.style)
